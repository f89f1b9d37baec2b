// SPDX-License-Identifier: Apache-2.0
// Every kind of entry with every field that it can have, through a file and back.
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>
#include <lockstep/verify.h>

#include <functional>
#include <gmock/gmock.h>
#include <iterator>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::IsEmpty;
using Kinds = std::vector<OperationKind>;

struct Field {
  const char* name;
  Kinds kinds;  ///< those that have it, empty = all
  std::function<void(LaunchTraceEntry&)> set;
};

TraceArgument place(std::uint32_t buffer) {
  TraceArgument pointer{TraceArgument::Tag::kPointer, 8, buffer, 64, {}};
  return pointer;
}

/// As docs/trace-format.md has it.
std::vector<Field> fields() {
  using enum OperationKind;
  using Entry = LaunchTraceEntry;
  std::vector<Field> result = {
      {"stream", {}, [](Entry& e) { e.stream_index = 9; }},
      {"grid", {kKernelLaunch}, [](Entry& e) { e.grid_x = 2, e.grid_y = 3, e.grid_z = 4; }},
      {"block", {kKernelLaunch}, [](Entry& e) { e.block_x = 5, e.block_y = 6, e.block_z = 7; }},
      {"shared", {kKernelLaunch}, [](Entry& e) { e.shared_mem_bytes = 8; }},
      {"cluster", {kKernelLaunch}, [](Entry& e) { e.cluster_x = 2, e.cluster_y = 1; }},
      {"cooperative", {kKernelLaunch}, [](Entry& e) { e.cooperative = true; }},
      {"args",
       {kKernelLaunch},
       [](Entry& e) {
         const TraceArgument scalar{TraceArgument::Tag::kScalar, 1, 0, 0, {std::byte{1}}};
         const TraceArgument by_value{TraceArgument::Tag::kStruct, 1, 0, 0, {std::byte{2}}};
         const TraceArgument half{TraceArgument::Tag::kPointer, 4, 1, 2, {}};
         e.arguments = {scalar, place(1), by_value, half, TraceArgument{place(0)}};
       }},
      {"args_hash", {kKernelLaunch}, [](Entry& e) { e.argument_hash = 0xabcdef; }},
      {"direction", {kMemcpy}, [](Entry& e) { e.memcpy_kind = MemcpyKind::kHtoH; }},
      {"copied",
       {kMemcpy},
       [](Entry& e) {
         e.memcpy_byte_size = 144, e.extent = {12, 3, 4};
       }},
      {"peer_device", {kMemcpy}, [](Entry& e) { e.peer_device = 1; }},
      {"source", {kMemcpy}, [](Entry& e) { e.source = place(2); }},
      {"destination",
       {kMemcpy, kMemset, kPrefetch, kFree},
       [](Entry& e) { e.destination = place(3); }},
      {"set",
       {kMemset},
       [](Entry& e) {
         e.memset_byte_size = 144, e.extent = {12, 3, 4};
         e.memset_value = 0xabcd, e.memset_value_size = 2;
       }},
      {"event", {kEventRecord, kEventWait, kSynchronize}, [](Entry& e) { e.event = 3; }},
      {"mark", {kMark}, [](Entry& e) { e.mark = "push"; }},
      {"allocated", {kAlloc, kPrefetch}, [](Entry& e) { e.alloc_byte_size = 4096; }},
      {"device", {}, [](Entry& e) { e.device = 3; }},
      {"thread", {}, [](Entry& e) { e.thread_index = 4; }},
      {"seq", {}, [](Entry& e) { e.sequence = 1000000000000; }},
      {"t", {}, [](Entry& e) { e.time_ns = -5; }},
      {"graph", {}, [](Entry& e) { e.graph = 1; }},
      {"version", {}, [](Entry& e) { e.graph_version = 2; }},
      {"node", {}, [](Entry& e) { e.node = 6; }},
      {"branch", {}, [](Entry& e) { e.branch = 7; }},
      {"launch", {}, [](Entry& e) { e.launch = 8; }},
      {"attrs", {}, [](Entry& e) { e.attributes = R"({"priority":-1})"; }},
      {"unknown",
       {},
       [](Entry& e) {
         e.unknown = {{"deep", R"({"a":[1,2.5,null]})"}};
       }},
  };
  for (unsigned bit = 0; bit < 8; ++bit) {
    result.push_back({"flag", {}, [bit](Entry& e) { e.set(static_cast<EntryFlag>(1u << bit)); }});
  }
  return result;
}

Kinds all_kinds() {
  Kinds kinds = {OperationKind::kUnknown};
  for (int kind = 0; !to_string(static_cast<OperationKind>(kind)).empty(); ++kind) {
    kinds.push_back(static_cast<OperationKind>(kind));
  }
  return kinds;
}

LaunchTraceEntry plain(OperationKind kind) {
  LaunchTraceEntry entry = of_kind(kind, "name");
  if (kind == OperationKind::kUnknown) entry.kind_text = "teleport";
  if (kind == OperationKind::kMemcpy || kind == OperationKind::kMemset) entry.extent = {0, 1, 1};
  if (kind == OperationKind::kMemset) entry.memset_value_size = 1;
  return entry;
}

bool has(const Field& field, OperationKind kind) {
  return field.kinds.empty() || testing::Value(field.kinds, testing::Contains(kind));
}

std::vector<LaunchTraceEntry> through_a_file(const std::vector<LaunchTraceEntry>& entries) {
  const TemporaryFolder folder;
  write_trace(folder / "t.jsonl", trace_of(entries));
  return read_trace(folder / "t.jsonl").entries;
}

class FieldsOfAKind : public testing::TestWithParam<OperationKind> {};

TEST_P(FieldsOfAKind, SurviveOneByOneAndTogether) {
  std::vector<LaunchTraceEntry> entries = {plain(GetParam())};
  LaunchTraceEntry all = plain(GetParam());
  std::vector<const char*> names = {"none"};
  for (const Field& field : fields()) {
    if (!has(field, GetParam())) continue;
    entries.push_back(plain(GetParam()));
    field.set(entries.back());
    field.set(all);
    names.push_back(field.name);
  }
  entries.push_back(all);
  names.push_back("all");
  for (LaunchTraceEntry& entry : entries) entry.semantic_hash = semantic_hash(entry);
  const std::vector<LaunchTraceEntry> read = through_a_file(entries);
  ASSERT_EQ(read.size(), entries.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i], entries[i]) << names[i] << ": " << to_json(read[i]);
  }
}

// A field that another kind has means nothing here. Were it written all the same, the reader would
// have to take it for a key that it does not know.
TEST_P(FieldsOfAKind, AreAllThatIsWritten) {
  LaunchTraceEntry own = plain(GetParam()), every = own;
  for (const Field& field : fields()) {
    if (std::string_view(field.name) == "unknown") continue;
    field.set(every);
    if (has(field, GetParam())) field.set(own);
  }
  own.semantic_hash = every.semantic_hash = semantic_hash(own);
  const std::vector<LaunchTraceEntry> read = through_a_file({every});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_THAT(read[0].unknown, IsEmpty()) << to_json(every);
  if (GetParam() == OperationKind::kMemcpy || GetParam() == OperationKind::kMemset) return;
  own.extent = read[0].extent;
  EXPECT_EQ(read[0], own) << to_json(every);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FieldsOfAKind, testing::ValuesIn(all_kinds()),
                         [](const auto& parameter) {
                           const std::string name(to_string(parameter.param));
                           return name.empty() ? "unknown" : name;
                         });

/// A synchronise of an event is what orders `b`, on another stream, behind `a`.
Trace ordered_by_synchronising(bool with_event) {
  LaunchTraceEntry record = of_kind(OperationKind::kEventRecord, "hostEventRecord");
  LaunchTraceEntry wait = of_kind(OperationKind::kSynchronize, "hostSynchronise");
  record.event = 0;
  if (with_event) wait.event = 0;
  wait.stream_index = 1;
  return trace_of({kernel("a"), record, wait, kernel("b", 1)});
}

TEST(Fields, SynchronisingWithAnEventOrdersInAFileAsInMemory) {
  const TemporaryFolder folder;
  const Trace memory = ordered_by_synchronising(true);
  write_trace(folder / "t.jsonl", memory);
  const Trace file = read_trace(folder / "t.jsonl");
  EXPECT_EQ(file.entries, memory.entries);
  EXPECT_TRUE(verify_traces(memory, file, VerifyLevel::kOrder).ok());
  EXPECT_TRUE(verify_traces(file, memory, VerifyLevel::kOrder).ok());
  const VerifyReport lost =
      verify_traces(file, ordered_by_synchronising(false), VerifyLevel::kOrder);
  EXPECT_EQ(lost.verified, VerifyLevel::kMultiset) << to_text(lost);
}

}  // namespace
}  // namespace lockstep
