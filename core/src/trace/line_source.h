// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

/// \file
/// Lines of a plain or zstd-compressed file, in bounded memory.
namespace lockstep {

class LineSource {
 public:
  enum class Status : std::uint8_t {
    kLine,  ///< a whole line
    kEnd,   ///< nothing more: the file ended with a line feed
    kCut,   ///< nothing more: the last line or frame is not whole
  };

  /// \throws Error kNotFound, kInputOutput.
  explicit LineSource(const std::filesystem::path& path);
  ~LineSource();
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;

  /// The next line without its line feed, valid until the next call and followed by kLinePadding
  /// readable bytes. \throws Error kInputOutput, kInvalidFile (damaged frame, line too long).
  Status next(std::string_view& line);
  /// The next line behind those that this has given, at first behind those of next(), which goes on
  /// where it was. A regular file is read a second time; what cannot be is kept until next() gives
  /// it. The end that this comes to is next()'s too, should the file grow meanwhile.
  Status look_ahead(std::string_view& line);
  /// What stands in front of the cut, for a message; valid after kCut.
  std::string_view cut_text() const noexcept;
  /// Lines that next() gave.
  std::uint64_t lines_read() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
