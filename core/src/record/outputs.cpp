// SPDX-License-Identifier: Apache-2.0
#include "src/record/outputs.h"

#include <algorithm>
#include <string>

#include "src/trace/stream_numbers.h"

namespace lockstep::record {
namespace {

bool is_provisional(std::uint32_t stream) { return stream >= TraceBuilder::kProvisional; }

void finish_call(LaunchTraceEntry& entry, std::uint16_t flags, std::int32_t graph,
                 std::int32_t node) {
  constexpr auto kPending = static_cast<unsigned>(EntryFlag::kPending);
  entry.flags = static_cast<std::uint16_t>((entry.flags & ~kPending) | flags);
  if (graph >= 0) {
    entry.graph = graph;
    entry.node = node;
  }
}

}  // namespace

void MemoryOutput::add(const StreamDefinition& stream) { trace_.streams.push_back(stream); }

void MemoryOutput::resolve(std::uint32_t, const StreamDefinition& stream) { add(stream); }

void MemoryOutput::add(GraphDefinition&& graph) {
  const auto key = std::make_pair(graph.graph, graph.version);
  trace_.graphs.insert_or_assign(key, std::move(graph));
}

void MemoryOutput::add(LaunchTraceEntry&& entry) {
  if (entry.has(EntryFlag::kPending)) pending_.emplace(entry.sequence, trace_.entries.size());
  trace_.entries.push_back(std::move(entry));
}

void MemoryOutput::amend(std::uint64_t sequence, std::uint16_t flags, std::int32_t graph,
                         std::int32_t node) {
  const auto found = pending_.find(sequence);
  if (found == pending_.end()) return;
  finish_call(trace_.entries[found->second], flags, graph, node);
  pending_.erase(found);
}

Trace MemoryOutput::trace(const TraceBuilder& builder) const {
  Trace trace = trace_;
  const auto finals = builder.final_streams();
  for (LaunchTraceEntry& entry : trace.entries) {
    if (is_provisional(entry.stream_index)) entry.stream_index = finals.at(entry.stream_index);
  }
  std::vector<StreamDefinition> streams;
  for (StreamDefinition& stream : trace.streams) {
    if (!is_provisional(stream.stream)) streams.push_back(stream);
  }
  for (StreamDefinition& stream : trace.streams) {
    if (!is_provisional(stream.stream)) continue;
    stream.stream = finals.at(stream.stream);
    const auto same = [&](const StreamDefinition& other) { return other.stream == stream.stream; };
    if (std::none_of(streams.begin(), streams.end(), same)) streams.push_back(stream);
  }
  std::sort(streams.begin(), streams.end(),
            [](const auto& left, const auto& right) { return left.stream < right.stream; });
  trace.streams = std::move(streams);
  return trace;
}

template <class Action>
void FileOutput::guarded(Action&& action) {
  if (failure_) return;
  try {
    action();
  } catch (const Error& error) {
    failure_ = error;
    waiting_.clear();
  }
}

void FileOutput::add(const StreamDefinition& stream) {
  if (is_provisional(stream.stream)) provisional_.try_emplace(stream.stream);
  push(stream);
}

void FileOutput::resolve(std::uint32_t provisional, const StreamDefinition& stream) {
  provisional_.at(provisional).number = stream.stream;
  push(Resolution{provisional, stream});
}

void FileOutput::add(GraphDefinition&& graph) { push(std::move(graph)); }
void FileOutput::add(LaunchTraceEntry&& entry) {
  if (!waiting_.empty() || entry.has(EntryFlag::kPending) || waits(entry.stream_index)) {
    push(std::move(entry));
    return;
  }
  guarded([&] {
    write(entry);
    ++written_;
  });
}

bool FileOutput::waits(std::uint32_t stream) const {
  if (!is_provisional(stream)) return false;
  const Provisional& known = provisional_.at(stream);
  return !known.written && !known.number;
}

bool FileOutput::may_change(const Item& item) const {
  if (const auto* entry = std::get_if<LaunchTraceEntry>(&item)) {
    return entry->has(EntryFlag::kPending) || waits(entry->stream_index);
  }
  const auto* stream = std::get_if<StreamDefinition>(&item);
  return stream != nullptr && waits(stream->stream);
}

void FileOutput::write(StreamDefinition& stream) {
  if (is_provisional(stream.stream)) {
    Provisional& known = provisional_.at(stream.stream);
    known.written = !known.number;
    if (known.written) {
      stream.unknown.emplace_back(kProvisionalKey, "true");
    } else {
      stream.stream = *known.number;
    }
  }
  writer_.write(stream);
}

void FileOutput::write(Resolution& resolution) {
  // Else its stream has had its number from the first line on.
  if (!provisional_.at(resolution.provisional).written) return;
  resolution.stream.unknown.emplace_back(kReplacesKey, std::to_string(resolution.provisional));
  writer_.write(resolution.stream);
}

void FileOutput::write(LaunchTraceEntry& entry) {
  if (is_provisional(entry.stream_index)) {
    const Provisional& known = provisional_.at(entry.stream_index);
    if (!known.written) entry.stream_index = *known.number;
  }
  writer_.write(entry);
}

void FileOutput::push(Item&& item) {
  guarded([&] {
    waiting_.push_back(std::move(item));
    if (waiting_.size() > kMost) release_front(1);
    settle();
  });
}

void FileOutput::write_meta(const TraceInfo& info) {
  guarded([&] { writer_.write_meta(info); });
}

void FileOutput::flush() {
  guarded([&] { writer_.flush(); });
}

void FileOutput::finish(const TraceFooter& footer) {
  guarded([&] {
    release_front(waiting_.size());
    writer_.finish(footer);
  });
}

void FileOutput::settle() {
  while (!waiting_.empty() && !may_change(waiting_.front())) release_front(1);
}

void FileOutput::release_front(std::size_t count) {
  for (; count > 0; --count) {
    std::visit([this](auto& value) { write(value); }, waiting_.front());
    waiting_.pop_front();
    ++written_;
  }
}

void FileOutput::release_old() {
  guarded([&] {
    if (old_ > written_) release_front(std::min<std::size_t>(old_ - written_, waiting_.size()));
    settle();
    old_ = written_ + waiting_.size();
  });
}

void FileOutput::amend(std::uint64_t sequence, std::uint16_t flags, std::int32_t graph,
                       std::int32_t node) {
  guarded([&] {
    for (Item& item : waiting_) {
      auto* entry = std::get_if<LaunchTraceEntry>(&item);
      if (entry == nullptr || entry->sequence != sequence) continue;
      finish_call(*entry, flags, graph, node);
      settle();
      return;
    }
  });
}

}  // namespace lockstep::record
