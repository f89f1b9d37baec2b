// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// \file
/// The scenarios of the program that the robustness tests run: `robust_program SCENARIO
/// [ARGUMENT…]`.
namespace lockstep::robust {

using Arguments = std::vector<std::string>;

inline constexpr char kSource[] = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void add(int* p, int value) { *p += value; }
)";

/// Launches until it is killed, telling how far it is in the file it is given.
int launch_until_killed(const Arguments& arguments);
/// Launches so many times, waits, prints "done".
int launch_some(const Arguments& arguments);
/// Forks three workers that each launch another number of times.
int fork_workers(const Arguments& arguments);
/// A loop that reads 4 bytes back in each round, or once at its end.
int read_back(const Arguments& arguments);

/// Every kind of object alive in a global, then the end that is asked for.
int end_with_everything(const Arguments& arguments);
/// Forks at a moment that is asked for; the child tries to work.
int fork_at(const Arguments& arguments);

/// Records so many launches and prints the peak of its memory in KiB.
int record_many(const Arguments& arguments);
/// Writes a trace of so many entries to a file, and prints the same.
int write_many(const Arguments& arguments);
/// Compares two traces, and prints the same.
int compare_many(const Arguments& arguments);

/// Allocates in every way there is; a failure ends it with a typed message and code 3.
int allocate_everything(const Arguments& arguments);
/// Prints which parts of the environment it obeyed.
int tell_environment(const Arguments& arguments);

}  // namespace lockstep::robust
