// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which standard a program is compiled by is its own to say, not our package files'.
#if __cplusplus < 202002L
#error "Lockstep's headers need C++20: compile with -std=c++20 or later"
#endif

/// \file
/// Marks what the core library exports. Everything else is hidden.
#define LOCKSTEP_API __attribute__((visibility("default")))
/// Members of exported classes that only the library itself calls: without the detour over its
/// table of procedure links.
#define LOCKSTEP_INTERNAL __attribute__((visibility("hidden")))
