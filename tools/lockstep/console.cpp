// SPDX-License-Identifier: Apache-2.0
#include "console.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "exit_code.h"
#include "text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

/// NO_COLOR (any value but the empty one) and TERM=dumb switch colours off, CLICOLOR_FORCE on; the
/// option decides before all of them.
bool takes_colors(ColorMode mode, int descriptor) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const auto value = [](const char* name) -> std::string_view {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
  };
  if (!value("NO_COLOR").empty()) return false;
  const std::string_view force = value("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return value("TERM") != "dumb" && isatty(descriptor) == 1;
}

std::string_view sequence(Color color) {
  switch (color) {
    case Color::kRed:
      return "\x1b[31m";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kBold:
      return "\x1b[1m";
    case Color::kDim:
      return "\x1b[2m";
  }
  return {};
}

std::string painted(bool on, Color color, std::string_view text) {
  return on ? fmt::format("{}{}\x1b[0m", sequence(color), text) : std::string(text);
}

/// Returns 0 or errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

Console::Console(ColorMode mode)
    : color_out_(takes_colors(mode, STDOUT_FILENO)),
      color_err_(takes_colors(mode, STDERR_FILENO)) {}

void Console::print(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Console::flush() {
  const int reason = write_all(STDOUT_FILENO, buffer_);
  buffer_.clear();
  if (reason == EPIPE) throw BrokenPipe();
  if (reason != 0) {
    throw Failure(kInternal, fmt::format("cannot write standard output: {}; what was printed is "
                                         "not complete",
                                         std::strerror(reason)));
  }
}

void Console::error(std::string_view text) { message("error", Color::kRed, text); }
void Console::warning(std::string_view text) { message("warning", Color::kYellow, text); }
void Console::note(std::string_view text) { message("note", Color::kBold, text); }

std::string Console::paint(Color color, std::string_view text) const {
  return painted(color_out_, color, text);
}

void Console::message(std::string_view severity, Color color, std::string_view text) {
  // Where standard error cannot be written there is nobody left to tell.
  (void)write_all(STDERR_FILENO,
                  fmt::format("lockstep: {}: {}\n", painted(color_err_, color, severity),
                              printable(text, /*keep_lines=*/true)));
}

}  // namespace lockstep::cli
