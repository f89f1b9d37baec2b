// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// \file
/// The two streams of the command line: data on standard output, messages on standard error.
namespace lockstep::cli {

enum class ColorMode : std::uint8_t { kAuto, kAlways, kNever };
enum class Color : std::uint8_t { kRed, kGreen, kYellow, kBold, kDim };

/// Not thread-safe; one a process.
class Console {
 public:
  explicit Console(ColorMode mode = ColorMode::kAuto);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Buffered standard output. \throws BrokenPipe, or Failure (kInternal) when it cannot be
  /// written.
  void print(std::string_view text);
  /// Must be called before the program ends: a full disk shows up here.
  void flush();

  void error(std::string_view message);
  void warning(std::string_view message);
  void note(std::string_view message);

  /// The text in a colour where standard output takes colours, else as it is.
  std::string paint(Color color, std::string_view text) const;
  bool colors() const noexcept { return color_out_; }

 private:
  void message(std::string_view severity, Color color, std::string_view text);

  std::string buffer_;
  bool color_out_ = false;
  bool color_err_ = false;
};

}  // namespace lockstep::cli
