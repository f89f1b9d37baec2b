// SPDX-License-Identifier: Apache-2.0
#include "trace_input.h"

#include <lockstep/error.h>
#include <lockstep/trace_file.h>

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <variant>

#include "exit_code.h"
#include "text.h"

namespace lockstep::cli {
namespace {

std::vector<std::string> all_kind_names() {
  std::vector<std::string> names = {"all"};
  for (int kind = 0; kind <= static_cast<int>(OperationKind::kOpaque); ++kind) {
    names.emplace_back(to_string(static_cast<OperationKind>(kind)));
  }
  return names;
}

void copy_trace(const std::filesystem::path& from, const std::filesystem::path& to) {
  TraceReader reader(from);
  TraceWriter writer(to, reader.info());
  std::optional<TraceFooter> footer;
  while (auto item = reader.next()) {
    std::visit(
        [&](const auto& value) {
          using Item = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Item, TraceFooter>) {
            footer = value;
          } else if constexpr (std::is_same_v<Item, TraceInfo>) {
            writer.write_meta(value);
          } else {
            writer.write(value);
          }
        },
        *item);
  }
  if (footer && !reader.truncated()) return writer.finish(*footer);
  writer.flush();
}

}  // namespace

std::string view_name(const SelectionOptions& selection) {
  return selection.view.empty() ? "executed" : selection.view;
}

ViewOptions parse_selection(const SelectionOptions& selection) {
  ViewOptions options;
  options.kind =
      selection.view == "enqueued" ? ViewOptions::Kind::kEnqueued : ViewOptions::Kind::kExecuted;
  if (selection.kinds.empty()) return options;
  for (const std::string& name : split(selection.kinds, ',')) {
    const OperationKind kind = operation_kind_from_string(name);
    if (name == "all") {
      options.core_kinds_only = false;
    } else if (kind == OperationKind::kUnknown) {
      const std::vector<std::string> names = all_kind_names();
      throw Failure(kUsage, fmt::format("there is no kind '{}'{}; there are {}", name,
                                        did_you_mean(name, names), fmt::join(names, ", ")));
    } else {
      options.kinds.push_back(kind);
    }
  }
  if (!options.core_kinds_only) options.kinds.clear();
  return options;
}

void check_input(const std::filesystem::path& path, std::string_view what) {
  std::error_code reason;
  const auto status = std::filesystem::status(path, reason);
  if (std::filesystem::is_directory(status)) {
    throw Failure(kUnreadable, fmt::format("{}: is a folder, not {}", path.native(), what));
  }
  if (access(path.c_str(), R_OK) != 0) {
    throw Failure(kUnreadable,
                  fmt::format("cannot read {}: {}", path.empty() ? "''" : path.native(),
                              std::strerror(errno)));
  }
}

void check_output(const std::filesystem::path& path, bool force) {
  if (path.empty()) throw Failure(kUsage, "the output file has no name");
  std::error_code reason;
  if (std::filesystem::is_directory(path, reason)) {
    throw Failure(kUsage, fmt::format("{}: is a folder; name a file in it", path.native()));
  }
  if (!force && std::filesystem::exists(std::filesystem::symlink_status(path, reason))) {
    throw Failure(kUsage, fmt::format("{} exists; --force replaces it", path.native()));
  }
  const std::filesystem::path folder = path.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, reason)) {
    throw Failure(kUsage, fmt::format("{}: there is no such folder", folder.native()));
  }
}

std::string read_text_file(const std::filesystem::path& path, std::string_view what) {
  check_input(path, what);
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    throw Failure(kUnreadable, fmt::format("cannot read {}", path.native()));
  }
  return bytes;
}

bool can_read_twice(const std::filesystem::path& path) {
  std::error_code reason;
  return std::filesystem::is_regular_file(path, reason);
}

RereadableTrace::RereadableTrace(const std::string& path) : file_(path) {
  check_input(file_);
  if (can_read_twice(file_)) return;
  file_ = copy_.emplace().path() / "copy.jsonl";
  copy_trace(path, file_);
}

std::string kind_name(const LaunchTraceEntry& entry) {
  return entry.kind == OperationKind::kUnknown ? entry.kind_text
                                               : std::string(to_string(entry.kind));
}

ViewReader::ViewReader(std::filesystem::path path, const ViewOptions& options)
    : path_(std::move(path)), filter_(options) {
  check_input(path_);
}

void ViewReader::for_each(const Sink& sink) {
  TraceReader reader(path_);
  trace_.info = reader.info();
  while (auto item = reader.next()) {
    if (auto* entry = std::get_if<LaunchTraceEntry>(&*item)) {
      count(*entry);
      filter_.push(*entry, [&](const LaunchTraceEntry& shown) { sink(position_++, shown); });
    } else if (auto* graph = std::get_if<GraphDefinition>(&*item)) {
      define(std::move(*graph));
    } else if (auto* stream = std::get_if<StreamDefinition>(&*item)) {
      trace_.streams.push_back(std::move(*stream));
    } else if (auto* footer = std::get_if<TraceFooter>(&*item)) {
      trace_.footer = std::move(*footer);
    } else {
      trace_.info = reader.info();
    }
  }
  trace_.info = reader.info();
  truncated_ = reader.truncated();
}

void ViewReader::define(GraphDefinition&& graph) {
  filter_.define(graph);
  trace_.graphs.insert_or_assign({graph.graph, graph.version}, std::move(graph));
}

void ViewReader::count(const LaunchTraceEntry& entry) {
  ++file_entries_;
  ++kinds_[kind_name(entry)];
  if (entry.kind != OperationKind::kGraphLaunch) return;
  ++launches_[{entry.graph, entry.graph_version}];
  if (trace_.find_graph(entry.graph, entry.graph_version) == nullptr) read_late_definitions();
}

/// Recordings define a graph before its first launch. A file that somebody put together by hand may
/// not: the rest of it is looked through once.
void ViewReader::read_late_definitions() {
  if (std::exchange(looked_ahead_, true) || !can_read_twice(path_)) return;
  TraceReader reader(path_);
  try {
    while (auto item = reader.next()) {
      if (auto* graph = std::get_if<GraphDefinition>(&*item)) define(std::move(*graph));
    }
  } catch (const Error& error) {
    // The reading that looked ahead meets the same place in its turn, and reports it there.
    if (error.code() != ErrorCode::kInvalidFile) throw;
  }
}

}  // namespace lockstep::cli
