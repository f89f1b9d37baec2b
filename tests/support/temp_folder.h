// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::testing {

/// A fresh folder of its own for one test, removed with everything in it at the end.
class TempFolder {
 public:
  /// `label` becomes part of the folder's name: any bytes that a file name may hold.
  explicit TempFolder(const std::string& label = "test");
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The bytes of a file. \throws std::system_error
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace lockstep::testing
