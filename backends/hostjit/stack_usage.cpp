// SPDX-License-Identifier: Apache-2.0
#include "stack_usage.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "hostjit.h"

namespace lockstep::hostjit {
namespace {

constexpr std::uint64_t kLargeFrame = 1024;
constexpr std::uint64_t kSmallFramesFit = 16 * 1024;  // of the smallest stack that may be asked for
constexpr std::uint64_t kMaxLocalBytes = 512 * 1024;

struct Frame {
  std::string_view function;  // as the compiler prints it: declared (gcc) or mangled (clang)
  std::uint64_t bytes = 0;
};

// `file:line:column:function<tab>bytes<tab>qualifiers`; clang leaves the column out.
Frame parse(std::string_view line) {
  Frame frame;
  const std::size_t first = line.find('\t');
  if (first == std::string_view::npos) return frame;
  const std::string_view number = line.substr(first + 1, line.find('\t', first + 1) - first - 1);
  std::from_chars(number.data(), number.data() + number.size(), frame.bytes);
  frame.function = line.substr(0, first);
  for (int part = 0; part < 3; ++part) {
    const std::size_t colon = frame.function.find(':');
    const bool is_place = part == 0 || frame.function.find_first_not_of("0123456789") == colon;
    if (colon == std::string_view::npos || !is_place) break;
    frame.function.remove_prefix(colon + 1);
  }
  return frame;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The loops over whole blocks run on the caller's stack, never on a fiber's.
bool is_block_loop(std::string_view function) {
  return contains(function, "lockstep_hostjit") &&
         (contains(function, "block_small") || contains(function, "block_large"));
}

}  // namespace

std::uint64_t stack_bytes_of_unit(const std::string& folder) {
  std::uint64_t large = 0, small = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".su") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const Frame frame = parse(line);
      if (is_block_loop(frame.function)) continue;
      if (frame.bytes < kLargeFrame) {
        small += frame.bytes;
        continue;
      }
      if (frame.bytes > kMaxLocalBytes) {
        throw Error(ErrorCode::kCompileFailed,
                    std::string(frame.function) + " needs " + std::to_string(frame.bytes) +
                        " bytes of local memory for each thread, the limit is " +
                        std::to_string(kMaxLocalBytes) +
                        " as on a GPU: make its local arrays smaller, or give it global memory");
      }
      large += frame.bytes;
    }
  }
  // Kernels that need nothing of their own share stacks.
  return large + (small > kSmallFramesFit ? small : 0);
}

}  // namespace lockstep::hostjit
