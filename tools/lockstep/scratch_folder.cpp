// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

#include "exit_code.h"

namespace lockstep::cli {

ScratchFolder::ScratchFolder() {
  // What the standard library offers refuses a folder that is none without naming it.
  const char* chosen = std::getenv("TMPDIR");
  const std::filesystem::path parent = chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
  std::string pattern = (parent / "lockstep-XXXXXX").native();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw Failure(kInternal, fmt::format("cannot make a temporary folder in {}: {}; set TMPDIR to "
                                         "a folder that can be written",
                                         parent.native(), std::strerror(errno)));
  }
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::cli
