// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_entry.h>

#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <fmt/format.h>
#include <memory>
#include <ostream>

#include "src/trace/demangle.h"
#include "src/trace/entry_rules.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 15> kKindNames = {"kernel",
                                                         "memcpy",
                                                         "memset",
                                                         "graph_launch",
                                                         "host_func",
                                                         "event_record",
                                                         "event_wait",
                                                         "alloc",
                                                         "free",
                                                         "synchronize",
                                                         "mark",
                                                         "stream_memop",
                                                         "external_semaphore",
                                                         "prefetch",
                                                         "opaque"};

std::string dimensions(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return fmt::format("{}×{}×{}", x, y, z);
}

std::string bytes_text(const LaunchTraceEntry& entry) {
  const Extent extent = effective_extent(entry);
  if (extent.height == 1 && extent.depth == 1) return fmt::format("{} B", extent.width);
  return fmt::format("{}×{}×{} B", extent.width, extent.height, extent.depth);
}

/// Cuts the template arguments that make kernel names unreadable, from the end, at a character
/// border of UTF-8.
std::string shorten(std::string text, std::size_t width) {
  if (width == 0 || text.size() <= width) return text;
  std::size_t cut = width;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0u) == 0x80u) --cut;
  text.resize(cut);
  return text + "…";
}

/// A terminal must not obey what a trace file says: control characters are shown, not sent.
std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += character;
    }
  }
  return result;
}

/// The result type that a mangled template carries is noise for a kernel: it is always void.
/// The parameter list says less than it takes room.
std::string without_signature(const std::string& text) {
  std::size_t begin = text.rfind("void ", 0) == 0 ? 5 : 0;
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char character = text[i];
    if (character == '<') ++depth;
    if (character == '>') --depth;
    const bool anonymous = text.compare(i, 21, "(anonymous namespace)") == 0;
    if (anonymous) {
      i += 20;
      continue;
    }
    if (character == '(' && depth <= 0 && i > begin) return text.substr(begin, i - begin);
  }
  return text.substr(begin);
}

}  // namespace

std::string_view to_string(OperationKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kKindNames.size() ? kKindNames[index] : std::string_view{};
}

OperationKind operation_kind_from_string(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == text) return static_cast<OperationKind>(i);
  }
  return OperationKind::kUnknown;
}

std::string_view to_string(MemcpyKind kind) noexcept {
  switch (kind) {
    case MemcpyKind::kNone:
      return {};
    case MemcpyKind::kHtoD:
      return "HtoD";
    case MemcpyKind::kDtoH:
      return "DtoH";
    case MemcpyKind::kDtoD:
      return "DtoD";
    case MemcpyKind::kHtoH:
      return "HtoH";
  }
  return {};
}

std::string demangle(const std::string& name) {
  // Names are input from files: __cxa_demangle is given plausible ones of sane length only.
  constexpr std::size_t kLongestMangledName = 16384;
  if (name.rfind("_Z", 0) != 0 || name.size() > kLongestMangledName) return name;
  if (name.find('\0') != std::string::npos) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::string display_name(const std::string& name, std::size_t width) {
  const std::string text = demangle(name);
  return shorten(printable(text == name ? name : without_signature(text)), width);
}

std::string describe(const LaunchTraceEntry& entry, std::size_t name_width) {
  std::string text;
  const std::string name = display_name(entry.name, name_width);
  switch (entry.kind) {
    case OperationKind::kKernelLaunch:
      text = fmt::format("kernel  {}   {} / {}", name,
                         dimensions(entry.grid_x, entry.grid_y, entry.grid_z),
                         dimensions(entry.block_x, entry.block_y, entry.block_z));
      if (has_cluster(entry)) {
        text += " cluster " + dimensions(entry.cluster_x, entry.cluster_y, entry.cluster_z);
      }
      if (entry.cooperative) text += " cooperative";
      if (entry.shared_mem_bytes != 0) text += fmt::format(" shared {} B", entry.shared_mem_bytes);
      break;
    case OperationKind::kMemcpy:
      text = fmt::format("memcpy  {} {}", to_string(entry.memcpy_kind), bytes_text(entry));
      break;
    case OperationKind::kMemset:
      text = fmt::format("memset  {} value 0x{:0{}x}", bytes_text(entry), entry.memset_value,
                         2 * entry.memset_value_size);
      break;
    case OperationKind::kGraphLaunch:
      text = fmt::format("graph_launch  graph {} version {}", entry.graph, entry.graph_version);
      break;
    case OperationKind::kEventRecord:
    case OperationKind::kEventWait:
      text = fmt::format("{}  event {}", to_string(entry.kind), entry.event);
      break;
    case OperationKind::kUnknown:
      text = fmt::format("{}  {}", printable(entry.kind_text), name);
      break;
    default:
      text = fmt::format("{}  {}", to_string(entry.kind), name);
      break;
  }
  return text;
}

std::string set_value_problem(std::uint64_t value, std::uint64_t value_size) {
  if (value_size != 1 && value_size != 2 && value_size != 4) {
    return fmt::format("value_size is {}, it must be 1, 2 or 4", value_size);
  }
  if ((value >> (8 * value_size)) != 0) {
    return fmt::format("value {} does not fit {} bytes", value, value_size);
  }
  return {};
}

std::string extent_problem(const Extent& extent, std::uint64_t byte_size) {
  std::uint64_t rows = 0, bytes = 0;
  if (!__builtin_mul_overflow(extent.height, extent.depth, &rows) &&
      !__builtin_mul_overflow(extent.width, rows, &bytes) && bytes == byte_size) {
    return {};
  }
  return fmt::format("extent [{},{},{}] does not cover {} bytes", extent.width, extent.height,
                     extent.depth, byte_size);
}

std::string to_string(const LaunchTraceEntry& entry) {
  return fmt::format("{}   stream {}", describe(entry, 0), entry.stream_index);
}

std::ostream& operator<<(std::ostream& out, const LaunchTraceEntry& entry) {
  return out << to_string(entry);
}

}  // namespace lockstep
