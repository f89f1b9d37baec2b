// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the compiler's -fstack-usage says of a unit.

#include <cstdint>
#include <string>

namespace lockstep::hostjit {

// Reads the *.su files of `folder`. Returns bytes that the frames of any chain of calls take
// together, provided that it does not recurse; small ones only where they might be too many for the
// room that every stack has. Throws Error(kCompileFailed) for a function above the local memory
// that a GPU gives a thread.
std::uint64_t stack_bytes_of_unit(const std::string& folder);

}  // namespace lockstep::hostjit
