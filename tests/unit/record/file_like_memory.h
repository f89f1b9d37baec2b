// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>
#include <lockstep/verify.h>

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace lockstep::testing {

/// A recorded file and the same trace taken in memory (written beside it) mean the same.
inline void expect_file_like_memory(const std::string& path) {
  Trace file = read_trace(path), memory = read_trace(path + ".memory");
  ASSERT_EQ(file.entries.size(), memory.entries.size());
  for (std::size_t i = 0; i < file.entries.size(); ++i) {
    file.entries[i].time_ns = memory.entries[i].time_ns;  // since another beginning
    ASSERT_EQ(file.entries[i], memory.entries[i])
        << i << ": " << to_json(file.entries[i]) << to_json(memory.entries[i]);
  }
  const auto by_number = [](const StreamDefinition& left, const StreamDefinition& right) {
    return left.stream < right.stream;
  };
  std::sort(file.streams.begin(), file.streams.end(), by_number);
  EXPECT_EQ(file.streams, memory.streams);
  DiffOptions options;
  options.view.kind = ViewOptions::Kind::kEnqueued;
  options.view.core_kinds_only = false;
  options.per_stream = true;
  const bool whole = file.footer.present;
  EXPECT_EQ(diff_files(path, path + ".memory", options).equal, whole);
  if (!whole) file.footer = memory.footer;
  EXPECT_TRUE(diff(file, memory, options).equal);
  for (const VerifyReport& report : {verify_traces(file, memory, VerifyLevel::kOrder),
                                     verify_traces(memory, file, VerifyLevel::kOrder)}) {
    EXPECT_EQ(report.verified, VerifyLevel::kOrder) << to_text(report);
    for (const VerifyFinding& finding : report.findings) ADD_FAILURE() << finding.message;
  }
}

}  // namespace lockstep::testing
