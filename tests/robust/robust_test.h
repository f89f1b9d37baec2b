// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/process.h"
#include "support/temp_folder.h"

namespace lockstep::testing {

/// Runs a scenario of robust/program.h. Environment of ours that the caller does not set is absent.
ProcessResult robust_program(const std::vector<std::string>& arguments,
                             ProcessOptions options = {});
/// Runs the built `lockstep`, e.g. as `lockstep record … -- robust_program …`.
ProcessResult lockstep_cli(const std::vector<std::string>& arguments, ProcessOptions options = {});
std::vector<std::string> recorded(const std::string& output,
                                  const std::vector<std::string>& arguments);

constexpr bool sanitized(std::string_view with = {}) {
  constexpr std::string_view kBuild = LOCKSTEP_ROBUST_SANITIZE;
  return with.empty() ? !kBuild.empty() : kBuild.find(with) != std::string_view::npos;
}

/// What a process said, for the message of a failed check.
std::string all_of(const ProcessResult& result);

/// A file system of its own in a folder of its own. Needs the right to mount.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& bytes);
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk();

  bool mounted() const noexcept { return problem_.empty(); }
  const std::string& problem() const noexcept { return problem_; }  ///< why it is not
  void make_read_only();
  std::string operator/(const std::string& name) const { return folder_ / "disk" + "/" + name; }
  std::string path() const { return folder_ / "disk"; }

 private:
  TempFolder folder_;
  std::string problem_;
};

}  // namespace lockstep::testing
