// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/testing.h>
#include <lockstep/trace_file.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::testing {
namespace {

std::string describe(const Trace& left, const Trace& right, const DiffOptions& options,
                     const DiffReport& report) {
  return to_text(report, view(left, options.view), view(right, options.view));
}

/// The trace without what differs from run to run.
Trace for_golden(const Trace& trace) {
  Trace golden;
  golden.info.producer = trace.info.producer;
  golden.streams = trace.streams;
  golden.graphs = trace.graphs;
  for (auto& [key, graph] : golden.graphs) {
    for (LaunchTraceEntry& node : graph.nodes) node.time_ns = 0;
  }
  for (LaunchTraceEntry entry : trace.entries) {
    const bool kept = is_core_kind(entry.kind) || entry.kind == OperationKind::kGraphLaunch ||
                      entry.kind == OperationKind::kMark || entry.kind == OperationKind::kOpaque;
    if (!kept) continue;
    entry.time_ns = 0;
    entry.sequence = 0;
    entry.thread_index = 0;
    golden.entries.push_back(std::move(entry));
  }
  golden.footer.present = true;
  golden.footer.entries = golden.entries.size();
  return golden;
}

void write_golden(const std::filesystem::path& path, const Trace& actual) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  TraceWriterOptions options;
  options.force = true;
  write_trace(path, for_golden(actual), options);
}

}  // namespace

::testing::AssertionResult traces_equal(const Trace& expected, const Trace& actual,
                                        const DiffOptions& options) {
  const DiffReport report = diff(expected, actual, options);
  if (report.equal) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << describe(expected, actual, options, report);
}

GoldenMode golden_mode() {
  const char* text = std::getenv("LOCKSTEP_GOLDEN");
  const std::string_view value = text == nullptr ? "check" : text;
  if (value == "check") return GoldenMode::kCheck;
  if (value != "new" && value != "update") {
    throw Error(ErrorCode::kInvalidArgument,
                "LOCKSTEP_GOLDEN is `" + std::string(value) + "`; it may be check, new or update");
  }
  if (std::getenv("CI") != nullptr) {
    throw Error(ErrorCode::kInvalidArgument, "LOCKSTEP_GOLDEN=" + std::string(value) +
                                                 " is refused while CI is set: golden files are "
                                                 "changed where somebody reads the change");
  }
  return value == "new" ? GoldenMode::kNew : GoldenMode::kUpdate;
}

::testing::AssertionResult matches_golden(const std::filesystem::path& path, const Trace& actual,
                                          const DiffOptions& options) {
  const GoldenMode mode = golden_mode();
  if (!std::filesystem::exists(path)) {
    if (mode == GoldenMode::kCheck) {
      return ::testing::AssertionFailure()
             << path.string() << " does not exist; LOCKSTEP_GOLDEN=new writes it";
    }
    write_golden(path, actual);
    return ::testing::AssertionSuccess() << "written: " << path.string();
  }
  const Trace golden = read_trace(path);
  const DiffReport report = diff(golden, actual, options);
  if (report.equal) return ::testing::AssertionSuccess();
  if (mode == GoldenMode::kUpdate) {
    write_golden(path, actual);
    return ::testing::AssertionSuccess() << "updated: " << path.string();
  }
  return ::testing::AssertionFailure()
         << path.string() << ": another trace; LOCKSTEP_GOLDEN=update replaces it\n"
         << describe(golden, actual, options, report);
}

::testing::Matcher<const LaunchTraceEntry&> LaunchOf(const std::string& name,
                                                     std::optional<Dim3> grid,
                                                     std::optional<Dim3> block) {
  return ::testing::Truly([=](const LaunchTraceEntry& entry) {
    return entry.kind == OperationKind::kKernelLaunch &&
           (entry.name.find(name) != std::string::npos ||
            display_name(entry.name).find(name) != std::string::npos) &&
           (!grid || entry.grid() == *grid) && (!block || entry.block() == *block);
  });
}

::testing::Matcher<const LaunchTraceEntry&> CopyOf(MemcpyKind direction,
                                                   std::optional<std::uint64_t> bytes) {
  return ::testing::Truly([=](const LaunchTraceEntry& entry) {
    return entry.kind == OperationKind::kMemcpy && entry.memcpy_kind == direction &&
           (!bytes || entry.memcpy_byte_size == *bytes);
  });
}

::testing::Matcher<const LaunchTraceEntry&> SetOf(std::optional<std::uint64_t> bytes) {
  return ::testing::Truly([=](const LaunchTraceEntry& entry) {
    return entry.kind == OperationKind::kMemset && (!bytes || entry.memset_byte_size == *bytes);
  });
}

}  // namespace lockstep::testing
