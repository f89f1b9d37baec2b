// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lockstep::cli {

/// A folder in the system's place for temporary files (TMPDIR, else /tmp), gone with everything in
/// it at the end.
class ScratchFolder {
 public:
  /// \throws Failure (kInternal) naming the folder, the reason and TMPDIR.
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::cli
