// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// A target is one function over bytes: libFuzzer's entry point in clang builds, and a function of
/// the replay test, which runs it over the committed corpus with any compiler.
#ifdef LOCKSTEP_FUZZ_REPLAY
#define LOCKSTEP_FUZZ_TARGET(function)
#else
#define LOCKSTEP_FUZZ_TARGET(function)                                                \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    function(data, size);                                                             \
    return 0;                                                                         \
  }
#endif

namespace lockstep::fuzz {

void trace_reader(const std::uint8_t* data, std::size_t size);
void diff(const std::uint8_t* data, std::size_t size);
void rules(const std::uint8_t* data, std::size_t size);
void waivers(const std::uint8_t* data, std::size_t size);
void manifest(const std::uint8_t* data, std::size_t size);
void report(const std::uint8_t* data, std::size_t size);
void command_line(const std::uint8_t* data, std::size_t size);

}  // namespace lockstep::fuzz
