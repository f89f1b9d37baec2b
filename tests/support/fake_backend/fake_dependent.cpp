// SPDX-License-Identifier: Apache-2.0

// A plugin whose dependency is not found when it is loaded.
extern "C" int fake_dependency();
extern "C" __attribute__((visibility("default"))) const void* lockstep_backend_query() {
  return fake_dependency() != 0 ? nullptr : "";
}
