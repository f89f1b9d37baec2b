// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_arguments.h"

#include <cstring>
#include <fmt/format.h>
#include <xxhash.h>

namespace lockstep::verifying {
namespace {

using Tag = TraceArgument::Tag;

bool is_known_memory(const TraceArgument& side) {
  return side.tag == Tag::kPointer && side.buffer != 0;
}

bool kernel_arguments_known(const LaunchTraceEntry& entry) {
  // A kernel without parameters has an empty list and that list's hash. Any other hash without its
  // list depends on how buffers were numbered, and says too little.
  static const std::uint64_t no_parameters = argument_hash(std::vector<TraceArgument>{});
  return !entry.arguments.empty() || entry.argument_hash == no_parameters;
}

std::string show_bytes(const TraceArgument& argument) {
  if (argument.bytes.empty()) return "(no bytes)";
  std::string hex = "0x";
  for (auto at = argument.bytes.rbegin(); at != argument.bytes.rend(); ++at) {
    hex += fmt::format("{:02x}", static_cast<unsigned>(*at));
  }
  if (argument.tag != Tag::kScalar) return hex;
  if (argument.bytes.size() == 4) {
    std::uint32_t whole = 0;
    float real = 0;
    std::memcpy(&whole, argument.bytes.data(), 4);
    std::memcpy(&real, argument.bytes.data(), 4);
    return fmt::format("{} (as float {}, {})", whole, real, hex);
  }
  if (argument.bytes.size() == 8) {
    std::uint64_t whole = 0;
    double real = 0;
    std::memcpy(&whole, argument.bytes.data(), 8);
    std::memcpy(&real, argument.bytes.data(), 8);
    return fmt::format("{} (as double {}, {})", whole, real, hex);
  }
  return hex;
}

std::string show_pointer(const TraceArgument& argument) {
  if (argument.buffer == 0 && argument.offset == 0) return "null";
  if (argument.buffer == 0) return fmt::format("unknown memory + {}", argument.offset);
  return fmt::format("buffer {} + {}", argument.buffer, argument.offset);
}

std::string_view tag_name(Tag tag) {
  switch (tag) {
    case Tag::kScalar:
      return "a scalar";
    case Tag::kPointer:
      return "a pointer";
    case Tag::kStruct:
      return "a struct";
  }
  return "something else";
}

template <typename T>
void mix(std::vector<std::byte>& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

}  // namespace

bool has_known_arguments(const LaunchTraceEntry& entry) {
  switch (entry.kind) {
    case OperationKind::kKernelLaunch:
      return kernel_arguments_known(entry);
    case OperationKind::kMemcpy:
      // Host memory is often nobody's buffer: only device sides have to be known.
      return (entry.memcpy_kind == MemcpyKind::kHtoD || entry.memcpy_kind == MemcpyKind::kHtoH ||
              is_known_memory(entry.source)) &&
             (entry.memcpy_kind == MemcpyKind::kDtoH || entry.memcpy_kind == MemcpyKind::kHtoH ||
              is_known_memory(entry.destination));
    case OperationKind::kMemset:
      return is_known_memory(entry.destination);
    default:
      return true;
  }
}

std::uint64_t argument_signature(const LaunchTraceEntry& entry) {
  std::vector<std::byte> bytes;
  std::unordered_map<std::uint32_t, std::uint32_t> seen;
  const auto add_pointer = [&](const TraceArgument& argument) {
    const auto ordinal =
        argument.buffer == 0 ? 0 : seen.try_emplace(argument.buffer, seen.size() + 1).first->second;
    mix(bytes, ordinal);
    mix(bytes, argument.offset);
  };
  if (entry.kind == OperationKind::kKernelLaunch) {
    for (const TraceArgument& argument : entry.arguments) {
      mix(bytes, argument.tag);
      mix(bytes, argument.size);
      if (argument.tag == Tag::kPointer) add_pointer(argument);
      if (argument.tag == Tag::kScalar) {
        bytes.insert(bytes.end(), argument.bytes.begin(), argument.bytes.end());
      }
    }
  } else {
    // A host side may be known on one side of the comparison only.
    if (entry.memcpy_kind == MemcpyKind::kDtoD || entry.memcpy_kind == MemcpyKind::kDtoH) {
      add_pointer(entry.source);
    }
    if (entry.memcpy_kind == MemcpyKind::kHtoD || entry.memcpy_kind == MemcpyKind::kDtoD ||
        entry.kind == OperationKind::kMemset) {
      add_pointer(entry.destination);
    }
  }
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::optional<ArgumentDifference> BufferBijection::unify_pointer(const TraceArgument& eager,
                                                                 const TraceArgument& replay,
                                                                 const std::string& name,
                                                                 Trail& trail) {
  const auto differs = [&](const std::string& why) {
    return ArgumentDifference{ArgumentDifference::What::kBuffer,
                              fmt::format("{}: {} in eager, {} in replay{}", name,
                                          show_pointer(eager), show_pointer(replay), why)};
  };
  if (eager.offset != replay.offset) return differs(": the offsets differ");
  if ((eager.buffer == 0) != (replay.buffer == 0)) return differs("");
  if (eager.buffer == 0) return std::nullopt;
  const auto forward = to_replay_.find(eager.buffer);
  if (forward != to_replay_.end() && forward->second != replay.buffer) {
    return differs(fmt::format(", but eager's buffer {} is replay's buffer {} elsewhere",
                               eager.buffer, forward->second));
  }
  const auto backward = to_eager_.find(replay.buffer);
  if (backward != to_eager_.end() && backward->second != eager.buffer) {
    return differs(fmt::format(", but replay's buffer {} is eager's buffer {} elsewhere",
                               replay.buffer, backward->second));
  }
  if (forward == to_replay_.end()) {
    to_replay_.emplace(eager.buffer, replay.buffer);
    to_eager_.emplace(replay.buffer, eager.buffer);
    trail.emplace_back(eager.buffer, replay.buffer);
  }
  return std::nullopt;
}

std::optional<ArgumentDifference> BufferBijection::unify(const LaunchTraceEntry& eager,
                                                         const LaunchTraceEntry& replay,
                                                         Trail* trail) {
  Trail named;
  std::optional<ArgumentDifference> difference;
  const auto finish = [&] {
    if (difference) {
      undo(named);
    } else if (trail != nullptr) {
      trail->insert(trail->end(), named.begin(), named.end());
    }
    return difference;
  };
  if (eager.kind != OperationKind::kKernelLaunch) {
    if (is_known_memory(eager.source) && is_known_memory(replay.source)) {
      difference = unify_pointer(eager.source, replay.source, "source", named);
    }
    if (!difference && is_known_memory(eager.destination) && is_known_memory(replay.destination)) {
      difference = unify_pointer(eager.destination, replay.destination, "destination", named);
    }
    return finish();
  }
  if (!kernel_arguments_known(eager) || !kernel_arguments_known(replay)) return std::nullopt;
  using What = ArgumentDifference::What;
  if (eager.arguments.size() != replay.arguments.size()) {
    difference = {What::kScalar, fmt::format("{} arguments in eager, {} in replay",
                                             eager.arguments.size(), replay.arguments.size())};
    return finish();
  }
  for (std::size_t i = 0; i < eager.arguments.size() && !difference; ++i) {
    const TraceArgument& left = eager.arguments[i];
    const TraceArgument& right = replay.arguments[i];
    const std::string name = fmt::format("argument {}", i);
    if (left.tag != right.tag) {
      difference = {What::kScalar, fmt::format("{}: {} in eager, {} in replay", name,
                                               tag_name(left.tag), tag_name(right.tag))};
    } else if (left.size != right.size) {
      difference = {What::kScalar, fmt::format("{}: {} bytes in eager, {} in replay", name,
                                               left.size, right.size)};
    } else if (left.tag == Tag::kPointer) {
      difference = unify_pointer(left, right, name, named);
    } else if (left.bytes != right.bytes) {
      difference = {
          left.tag == Tag::kStruct ? What::kStruct : What::kScalar,
          fmt::format("{}: {} in eager, {} in replay", name, show_bytes(left), show_bytes(right))};
    }
  }
  return finish();
}

void BufferBijection::undo(const Trail& trail) {
  for (const auto& [eager, replay] : trail) {
    to_replay_.erase(eager);
    to_eager_.erase(replay);
  }
}

}  // namespace lockstep::verifying
