// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Marks what the core library exports. Everything else is hidden.
#define LOCKSTEP_API __attribute__((visibility("default")))
/// Members of exported classes that only the library itself calls: without the detour over its
/// table of procedure links.
#define LOCKSTEP_INTERNAL __attribute__((visibility("hidden")))
