// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "types.h"

// Names of AMD's architectures: gfx90a, and with features gfx90a:sramecc+:xnack-.
namespace lockstep::hip {

enum class Feature : std::uint8_t { kAny, kOff, kOn };

struct Target {
  std::string base;  // gfx90a
  Feature sramecc = Feature::kAny, xnack = Feature::kAny;
  std::string text() const;
};

// False for what is no such name: it must never reach a compiler that crashes on it.
bool parse_target(std::string_view text, Target* target);
// Code that leaves a feature open runs on either setting of it.
bool runs_on(const Target& code, const Target& device);

// "gfx90a" of the low byte of e_flags; "" when it is not known.
std::string architecture_of_mach(std::uint32_t mach);
// Of a code object's e_flags (code object version 4 and later).
Target target_of_flags(std::uint32_t flags);

// Whether the run-time compiler of this release makes code for `base` (gfx90a). Releases before 7
// end the process on an architecture that they do not know, so that they are only asked for ones
// that are known to work; from 7 on they answer with an error.
bool compiler_knows(std::string_view base, const Version& version);
// The architectures of that list, for messages; "" where the compiler answers for itself.
std::string known_architectures(const Version& version);

// True for devices of NVIDIA behind a runtime that forwards to CUDA: sm_90.
bool is_cuda_architecture(std::string_view architecture);

}  // namespace lockstep::hip
