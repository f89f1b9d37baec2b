// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

/// \file
/// Files being written: in place and created exclusively, or aside and renamed.
namespace lockstep {

class OutputFile {
 public:
  enum class Mode : std::uint8_t {
    kInPlace,  ///< others see it grow; what was written survives a crash
    kAside,    ///< others see nothing until finish()
  };

  /// An existing regular file is replaced only with `force`; devices and pipes are written to.
  /// \throws Error kInputOutput naming the path and the system's reason.
  OutputFile(const std::filesystem::path& path, Mode mode, bool force);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Compresses into independent zstd frames with a checksum each.
class ZstdFrames {
 public:
  explicit ZstdFrames(int level);
  ~ZstdFrames();
  /// One whole frame of `text`, valid until the next call.
  std::string_view frame(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
