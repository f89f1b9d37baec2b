// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device-side headers as text, embedded by the build.

#include <span>
#include <string_view>

namespace lockstep::hostjit {

struct EmbeddedFile {
  std::string_view name;  // as it is included: "lockstep_hostjit/prelude.h", "lockstep/kernel.h"
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace lockstep::hostjit
