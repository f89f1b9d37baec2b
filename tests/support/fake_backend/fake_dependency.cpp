// SPDX-License-Identifier: Apache-2.0

// A library that is no plugin, and that another one needs.
extern "C" __attribute__((visibility("default"))) int fake_dependency() { return 1; }
