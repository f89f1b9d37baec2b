// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernels.h"
#include "memory.h"

// The kernels by which AMD's runtime copies and fills memory itself. Their sources travel in
// libamdhip64 as text and call a library whose code can be read in rocm-device-libs (opencl.bc);
// what follows does the same to memory. ROCm 6 changed the arguments of two of them.
namespace hsa_sim {
namespace {

class Arguments {
 public:
  explicit Arguments(const void* address) : address_(static_cast<const char*>(address)) {}
  template <typename T>
  T at(std::size_t offset) const {
    T value;
    std::memcpy(&value, address_ + offset, sizeof value);
    return value;
  }
  std::uint64_t number(std::size_t offset) const { return at<std::uint64_t>(offset); }
  std::uint32_t word(std::size_t offset) const { return at<std::uint32_t>(offset); }

 private:
  const char* address_;
};

// Checks that an agent may touch the ranges; throws the reason as text.
struct Fault {
  std::string why;
};
char* reach(std::uint64_t address, std::uint64_t bytes) {
  auto* const memory_address = reinterpret_cast<char*>(address);
  if (bytes > 0 && !memory().covers(memory_address, bytes)) {
    throw Fault{"memory fault: " + std::to_string(bytes) +
                " bytes that are not all memory that was allocated or locked"};
  }
  return memory_address;
}
void move(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::memmove(reach(to, bytes), reach(from, bytes), bytes);
}

// `count` times the pattern, one after the other.
void fill(std::uint64_t to, std::uint64_t pattern, std::uint64_t pattern_bytes,
          std::uint64_t count) {
  if (pattern_bytes == 0 || count == 0) return;
  char* const begin = reach(to, pattern_bytes * count);
  const char* const source = reach(pattern, pattern_bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(begin + i * pattern_bytes, source, pattern_bytes);
  }
}

// Four pointers of which one is set say how long a unit is.
struct Units {
  std::uint64_t address = 0, bytes = 1;
};
Units units_of(const Arguments& arguments) {
  for (const std::size_t log2 : {3U, 2U, 1U, 0U}) {
    if (const std::uint64_t address = arguments.number(log2 * 8)) {
      return {address, std::uint64_t{1} << log2};
    }
  }
  throw Fault{"a fill of nothing"};
}

// Work-items whose number reaches the count do nothing, and there are no more than the grid has.
std::uint64_t items(const hsa_kernel_dispatch_packet_t& packet, std::uint64_t count) {
  return std::min<std::uint64_t>(packet.grid_size_x, count);
}

void fill_first_generation(const Arguments& arguments, const hsa_kernel_dispatch_packet_t& packet) {
  const Units units = units_of(arguments);
  const std::uint64_t pattern_units = arguments.word(40);
  fill(units.address + arguments.number(48) * units.bytes, arguments.number(32),
       pattern_units * units.bytes, items(packet, arguments.number(56)));
}
void fill_later(const Arguments& arguments) {
  const std::uint64_t begin = arguments.number(0), end = arguments.number(24);
  const std::uint64_t pattern_bytes = std::uint64_t{arguments.word(16)} * arguments.word(20);
  if (pattern_bytes == 0 || end <= begin) return;
  fill(begin, arguments.number(8), pattern_bytes,
       (end - begin + pattern_bytes - 1) / pattern_bytes);
}
void fill_rows(const Arguments& arguments) {
  const Units units = units_of(arguments);
  const std::uint64_t pattern_bytes = arguments.word(40) * units.bytes;
  for (std::uint64_t y = 0; y < arguments.number(64); ++y) {
    for (std::uint64_t x = 0; x < arguments.number(56); ++x) {
      const std::uint64_t unit = arguments.number(48) + y * arguments.number(72) + x;
      fill(units.address + unit * units.bytes, arguments.number(32), pattern_bytes, 1);
    }
  }
}

void copy_first_generation(const Arguments& arguments, const hsa_kernel_dispatch_packet_t& packet) {
  const std::uint64_t from = arguments.number(0) + arguments.number(16);
  const std::uint64_t to = arguments.number(8) + arguments.number(24);
  const std::uint64_t count = arguments.number(32), done = items(packet, count);
  const std::uint32_t rest = arguments.word(40);
  // Words, of which the last work-item copies `rest` bytes; 8 says that all are bytes.
  const bool last = done == count && done > 0;
  move(to, from, rest == 8 ? done : last ? (done - 1) * 4 + rest : done * 4);
}
void copy_later(const Arguments& arguments) {
  const std::uint64_t from = arguments.number(0), to = arguments.number(8);
  const std::uint64_t size = arguments.number(16), end = arguments.number(32);
  const std::uint32_t rest = arguments.word(24);
  if (end > to) move(to, from, end - to);
  if (rest != 0) move(to + size - rest, from + size - rest, rest);
}
void copy_words(const Arguments& arguments, const hsa_kernel_dispatch_packet_t& packet) {
  const std::uint64_t unit = arguments.word(40) == 16 ? 16 : 4;
  move(arguments.number(8) + arguments.number(24) * unit,
       arguments.number(0) + arguments.number(16) * unit,
       items(packet, arguments.number(32)) * unit);
}

// Rows of bytes, or of words of 4 or 16 bytes. A side is (row pitch, slice pitch, offset, –), all
// in units; the size (x, y, z, bytes of a unit). Each of the three begins at a multiple of 32
// bytes.
void copy_rows(const Arguments& arguments, bool bytes) {
  constexpr std::size_t kSource = 32, kDestination = 64, kSize = 96;
  const std::uint64_t unit = bytes ? 1 : arguments.number(kSize + 24) == 16 ? 16 : 4;
  const auto row = [&](std::size_t pointer, std::size_t side, std::uint64_t y, std::uint64_t z) {
    const std::uint64_t at =
        arguments.number(side + 16) + y * arguments.number(side) + z * arguments.number(side + 8);
    return arguments.number(pointer) + at * unit;
  };
  for (std::uint64_t z = 0; z < arguments.number(kSize + 16); ++z) {
    for (std::uint64_t y = 0; y < arguments.number(kSize + 8); ++y) {
      move(row(8, kDestination, y, z), row(0, kSource, y, z), arguments.number(kSize) * unit);
    }
  }
}

}  // namespace

bool run_builtin_kernel(const LoadedKernel& kernel, const hsa_kernel_dispatch_packet_t& packet,
                        std::string* why) {
  constexpr std::string_view kPrefix = "__amd_rocclr_";
  std::string_view name = kernel.name;
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const Arguments arguments(packet.kernarg_address);
  try {
    if (name == "fillBufferAligned") {
      kernel.first_generation ? fill_first_generation(arguments, packet) : fill_later(arguments);
    } else if (name == "fillBufferAligned2D") {
      fill_rows(arguments);
    } else if (name == "copyBuffer") {
      kernel.first_generation ? copy_first_generation(arguments, packet) : copy_later(arguments);
    } else if (name == "copyBufferAligned") {
      copy_words(arguments, packet);
    } else if (name == "copyBufferRect") {
      copy_rows(arguments, true);
    } else if (name == "copyBufferRectAligned") {
      copy_rows(arguments, false);
    } else if (name == "initHeap" || name == "gwsInit") {
      // Heaps and barriers of the hardware that no body uses.
    } else {
      *why = kernel.name + " is a kernel of AMD's runtime that is not simulated";
    }
  } catch (const Fault& fault) {
    *why = kernel.name + ": " + fault.why;
  }
  return true;
}

}  // namespace hsa_sim
