// SPDX-License-Identifier: Apache-2.0
#include "src/trace/stream_numbers.h"

#include <lockstep/error.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace lockstep {
namespace {

constexpr std::string_view kDefine = "\"define\"";

/// Cheap, and true for every line that is a stream definition: most lines are none.
bool may_define_stream(std::string_view line) {
  while (true) {
    const void* found = ::memmem(line.data(), line.size(), kDefine.data(), kDefine.size());
    if (found == nullptr) return false;
    line.remove_prefix(
        static_cast<std::size_t>(static_cast<const char*>(found) - line.data() + kDefine.size()));
    const std::size_t value = line.find_first_not_of(" \t\r:");
    if (value != std::string_view::npos && line.substr(value).starts_with("\"stream\""))
      return true;
  }
}

}  // namespace

StreamNumbers::Said StreamNumbers::read_keys(StreamDefinition& definition) {
  Said said;
  std::erase_if(definition.unknown, [&](const auto& member) {
    const auto& [key, value] = member;
    if (key == kProvisionalKey) {
      if (value != "true") throw DecodeError("\"provisional\" must be true where it stands");
      said.provisional = true;
      return true;
    }
    if (key != kReplacesKey) return false;
    std::uint32_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, reason] = std::from_chars(value.data(), end, number);
    if (reason != std::errc() || stop != end) {
      throw DecodeError("\"replaces\" must be the number of a stream");
    }
    said.replaces = number;
    return true;
  });
  if (said.provisional && said.replaces) {
    throw DecodeError("\"provisional\" and \"replaces\" exclude each other");
  }
  return said;
}

void StreamNumbers::note(const Said& said, std::uint32_t stream) {
  if (said.provisional) {
    provisional_.try_emplace(stream);
    return;
  }
  next_ = std::max(next_, std::uint64_t{stream} + 1);
  if (!said.replaces) return;
  const auto found = provisional_.find(*said.replaces);
  if (found != provisional_.end() && !found->second.number) found->second.number = stream;
}

void StreamNumbers::look_for(const Stream& stream, LineSource& source) {
  if (!decoder_) decoder_.emplace(false);
  DecodedLine item;
  std::string_view line;
  while (!stream.number && !seen_all_) {
    try {
      if (source.look_ahead(line) != LineSource::Status::kLine) {
        seen_all_ = true;
      } else if (may_define_stream(line) && decoder_->decode(line, item) == LineKind::kStream) {
        const Said said = read_keys(item.stream);
        note(said, item.stream.stream);
      }
    } catch (const DecodeError&) {
      seen_all_ = true;  // who reads comes to that line in turn, and says so
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidFile) throw;
      seen_all_ = true;
    }
  }
  if (seen_all_) number_the_rest();
}

void StreamNumbers::number_the_rest() {
  for (auto& [number, stream] : provisional_) {
    if (stream.number) continue;
    if (next_ > std::numeric_limits<std::uint32_t>::max()) {
      throw DecodeError("there is no number left for a provisional stream");
    }
    stream.number = static_cast<std::uint32_t>(next_++);
  }
}

bool StreamNumbers::take(StreamDefinition& definition, LineSource& source) {
  const Said said = read_keys(definition);
  note(said, definition.stream);
  if (said.provisional) {
    Stream& stream = provisional_.at(definition.stream);
    if (!stream.number) look_for(stream, source);
    definition.stream = *stream.number;
    return true;
  }
  if (!said.replaces) return true;
  const auto found = provisional_.find(*said.replaces);
  if (found == provisional_.end()) {
    throw DecodeError(fmt::format("stream {} replaces {}, which is no provisional stream",
                                  definition.stream, *said.replaces));
  }
  if (found->second.replaced || found->second.number != definition.stream) {
    throw DecodeError(fmt::format("stream {} replaces {}, which is replaced already",
                                  definition.stream, *said.replaces));
  }
  found->second.replaced = true;
  return false;
}

std::uint32_t StreamNumbers::final_number(std::uint32_t stream) const {
  const auto found = provisional_.find(stream);
  return found == provisional_.end() || !found->second.number ? stream : *found->second.number;
}

}  // namespace lockstep
