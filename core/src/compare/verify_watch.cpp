// SPDX-License-Identifier: Apache-2.0
#include "src/compare/verify_watch.h"

#include <lockstep/error.h>
#include <lockstep/tracer.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "src/record/local_recorder.h"

namespace lockstep::verifying {
namespace {

using runtime::HostNotice;

constexpr std::string_view kMarkName = "lockstep: stream of a notice";

/// Each stream once, in the order of the notices.
std::vector<std::uint64_t> streams_of(const std::vector<HostNotice>& notices) {
  std::vector<std::uint64_t> streams;
  for (const HostNotice& notice : notices) {
    if (notice.stream != 0 &&
        std::find(streams.begin(), streams.end(), notice.stream) == streams.end()) {
      streams.push_back(notice.stream);
    }
  }
  return streams;
}

bool is_ours(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kMark && entry.name == kMarkName;
}

std::string call_of(const HostNotice& notice) {
  const std::string object = notice.event != nullptr ? "Event"
                             : notice.stream != 0    ? "Stream"
                                                     : "Device";
  return object + (notice.kind == HostNotice::Kind::kRecord  ? "::record"
                   : notice.kind == HostNotice::Kind::kQuery ? "::query"
                                                             : "::synchronize");
}

}  // namespace

void mark_streams(const std::vector<HostNotice>& notices) {
  const lockstep_recorder& table = *record::LocalRecorder::get().api().table;
  const std::uint32_t name = table.intern(kMarkName.data(), kMarkName.size());
  for (const std::uint64_t stream : streams_of(notices)) {
    lockstep_record record{};
    record.struct_size = sizeof(record);
    record.kind = LOCKSTEP_RECORD_MARK;
    record.name = name;
    record.stream = stream;
    table.end(table.begin(&record), 0, 0, -1);
  }
}

void add_notices(Trace& trace, const std::vector<HostNotice>& notices, const void* backend) {
  std::map<std::uint64_t, std::uint32_t> numbers;
  std::vector<LaunchTraceEntry> marks;
  std::copy_if(trace.entries.begin(), trace.entries.end(), std::back_inserter(marks), is_ours);
  trace.entries.erase(std::remove_if(trace.entries.begin(), trace.entries.end(), is_ours),
                      trace.entries.end());
  const std::vector<std::uint64_t> streams = streams_of(notices);
  if (marks.size() != streams.size()) {
    throw Error(ErrorCode::kOutOfMemory,
                "verify: the recorder lost marks of its own; make room or verify a shorter step");
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    numbers.emplace(streams[i], marks[i].stream_index);
  }

  const std::uint64_t self = Tracer::this_thread();
  std::map<std::uint64_t, std::uint32_t> threads = {{self, 0u}};
  std::map<const void*, std::int64_t> events;
  std::vector<LaunchTraceEntry> added;
  bool any = false;
  for (const HostNotice& notice : notices) {
    // What this thread waited for is in the trace.
    if (notice.kind == HostNotice::Kind::kWait && notice.thread == self) continue;
    if (notice.backend != backend) continue;
    any |= notice.kind != HostNotice::Kind::kRecord;
    LaunchTraceEntry& entry = added.emplace_back();
    entry.kind = notice.kind == HostNotice::Kind::kRecord ? OperationKind::kEventRecord
                                                          : OperationKind::kSynchronize;
    entry.name = call_of(notice);
    entry.device = notice.device;
    entry.sequence = notice.sequence;
    entry.thread_index =
        threads.try_emplace(notice.thread, static_cast<std::uint32_t>(threads.size()))
            .first->second;
    if (notice.event != nullptr) {
      const auto number = kFirstWatchedEvent + static_cast<std::int64_t>(events.size());
      entry.event = events.try_emplace(notice.event, number).first->second;
    }
    if (notice.stream != 0) {
      entry.stream_index = numbers.at(notice.stream);
    } else if (notice.event == nullptr) {
      entry.unknown.emplace_back("scope", "\"device\"");
    }
  }
  if (!any) return;
  // Of equal numbers the notice comes first: its number is that of the entry after it.
  std::vector<LaunchTraceEntry> merged;
  merged.reserve(trace.entries.size() + added.size());
  std::merge(
      std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()),
      std::make_move_iterator(trace.entries.begin()), std::make_move_iterator(trace.entries.end()),
      std::back_inserter(merged),
      [](const LaunchTraceEntry& a, const LaunchTraceEntry& b) { return a.sequence < b.sequence; });
  trace.entries = std::move(merged);
}

}  // namespace lockstep::verifying
