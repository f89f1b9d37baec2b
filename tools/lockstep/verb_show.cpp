// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "entry_selection.h"
#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kNameWidth = 56;
constexpr std::size_t kOperationWidth = 86;

std::string flags_text(const LaunchTraceEntry& entry) {
  std::string text;
  for (const auto& [flag, word] : {std::pair{EntryFlag::kCaptured, "captured"},
                                   {EntryFlag::kReplayed, "replayed"},
                                   {EntryFlag::kFailed, "failed"},
                                   {EntryFlag::kPending, "pending"},
                                   {EntryFlag::kInternal, "internal"},
                                   {EntryFlag::kWarmup, "warmup"},
                                   {EntryFlag::kStale, "stale"},
                                   {EntryFlag::kDisabled, "disabled"}}) {
    if (entry.has(flag)) text += fmt::format(" {}", word);
  }
  return text;
}

/// What is counted while a trace goes by.
struct Counts {
  std::uint64_t selected = 0;
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::uint32_t, std::uint64_t> streams;
  std::map<std::pair<std::string, std::string>, std::uint64_t> names;  ///< (kind, name)

  void add(const LaunchTraceEntry& entry, bool with_names) {
    ++selected;
    ++kinds[kind_name(entry)];
    ++streams[entry.stream_index];
    if (with_names) ++names[{kind_name(entry), entry.name}];
  }

  std::vector<std::tuple<std::uint64_t, std::string, std::string>> by_count() const {
    std::vector<std::tuple<std::uint64_t, std::string, std::string>> rows;
    for (const auto& [key, count] : names) rows.emplace_back(count, key.first, key.second);
    std::stable_sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
      return std::get<0>(left) > std::get<0>(right);
    });
    return rows;
  }
};

std::string join_counts(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", printable(name), count);
  }
  return text;
}

class Show {
 public:
  Show(Console& console, const CommonOptions& common, const ShowOptions& options)
      : console_(console),
        options_(options),
        selection_(EntrySelection::parse(options)),
        reader_(options.file, selection_.view),
        json_(common.json) {}

  int run() {
    try {
      reader_.for_each([this](std::uint64_t position, const LaunchTraceEntry& entry) {
        if (selection_.wants(position, entry)) take(position, entry);
      });
    } catch (const Error&) {
      // Of what can be read; there is nothing to sum up when nothing can.
      if (!json_ && reader_.file_entries() != 0) print_summary();
      throw;
    }
    if (json_) {
      print_json();
    } else {
      print_summary();
    }
    if (!reader_.truncated()) return kDone;
    console_.flush();
    console_.warning(fmt::format("{} is truncated: it ends without a footer after {}",
                                 options_.file,
                                 counted(reader_.file_entries(), "entry", "entries")));
    return kUnreadable;
  }

 private:
  void take(std::uint64_t position, const LaunchTraceEntry& entry) {
    counts_.add(entry, options_.stat);
    if (json_ || options_.stat) return;
    print_head();
    const std::string what = describe(entry, options_.full_names ? 0 : kNameWidth);
    console_.print(fmt::format("{:>8}  {}  stream {}{}\n", position, padded(what, kOperationWidth),
                               entry.stream_index, console_.paint(Color::kDim, flags_text(entry))));
  }

  /// Before the first entry, so that something stands there while a large file is read.
  void print_head() {
    if (std::exchange(head_printed_, true)) return;
    const TraceInfo& info = reader_.trace().info;
    const auto line = [this](std::string_view label, const std::string& text) {
      if (!text.empty()) {
        console_.print(fmt::format("{}{}\n", console_.paint(Color::kBold, padded(label, 10)),
                                   printable(text)));
      }
    };
    line("trace", options_.file);
    line("producer", info.producer);
    line("command", fmt::format("{}", fmt::join(info.command, " ")));
    if (info.pid != 0) line("pid", std::to_string(info.pid));
    for (const TraceDevice& device : info.devices) {
      line("device", fmt::format("{}: {}{}{}", device.ordinal, device.name,
                                 device.arch.empty() ? "" : ", ", device.arch));
    }
    line("driver", info.driver);
    if (info.simulated) line("simulated", "yes: no real device ran this");
    console_.print("\n");
  }

  void print_summary() {
    print_head();
    if (options_.stat) {
      for (const auto& [count, kind, name] : counts_.by_count()) {
        console_.print(fmt::format("{:>8}  {}  {}\n", count, padded(printable(kind), 12),
                                   display_name(name, options_.full_names ? 0 : kNameWidth)));
      }
    }
    if (options_.graphs) print_graphs();
    if (counts_.selected != 0 || options_.graphs) console_.print("\n");
    console_.print(fmt::format("{} of {} in the {} view{}{}\n", counts_.selected,
                               counted(reader_.view_entries(), "entry", "entries"),
                               view_name(options_.selection), counts_.kinds.empty() ? "" : ": ",
                               join_counts(counts_.kinds)));
    console_.print(fmt::format("the file holds {}{}{}\n",
                               counted(reader_.file_entries(), "entry", "entries"),
                               reader_.kinds().empty() ? "" : ": ", join_counts(reader_.kinds())));
    for (const auto& [stream, count] : counts_.streams) {
      console_.print(fmt::format("stream {}: {}\n", stream, counted(count, "entry", "entries")));
    }
    if (!options_.graphs) {
      for (const auto& [key, graph] : reader_.trace().graphs) {
        console_.print(graph_line(graph) + "\n");
      }
    }
    print_undefined_graphs();
    const TraceFooter& footer = reader_.trace().footer;
    if (!footer.present) return;
    console_.print(fmt::format("complete: {} dropped, {} stalls, {} racing\n", footer.dropped,
                               footer.stalls, footer.racing));
    if (!footer.coverage.empty()) {
      console_.print(fmt::format("coverage: {}\n", printable(footer.coverage)));
    }
  }

  std::uint64_t launches_of(std::int32_t graph, std::uint32_t version) const {
    const auto found = reader_.launches().find({graph, version});
    return found == reader_.launches().end() ? 0 : found->second;
  }

  std::string graph_line(const GraphDefinition& graph) const {
    return fmt::format("graph {} version {}: {}, {}, {}", graph.graph, graph.version,
                       counted(graph.nodes.size(), "node", "nodes"),
                       counted(graph.edges.size(), "edge", "edges"),
                       counted(launches_of(graph.graph, graph.version), "launch", "launches"));
  }

  void print_graphs() {
    for (const auto& [key, graph] : reader_.trace().graphs) {
      console_.print("\n" + console_.paint(Color::kBold, graph_line(graph)) + "\n");
      for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        std::string after;
        for (const auto& [from, to] : graph.edges) {
          if (to == node) after += fmt::format("{}{}", after.empty() ? "  after " : ", ", from);
        }
        const std::string what = describe(graph.nodes[node], options_.full_names ? 0 : kNameWidth);
        console_.print(fmt::format("{:>8}  {}{}{}\n", node, padded(what, kOperationWidth), after,
                                   console_.paint(Color::kDim, flags_text(graph.nodes[node]))));
      }
    }
  }

  void print_undefined_graphs() {
    for (const auto& [key, count] : reader_.launches()) {
      if (reader_.trace().find_graph(key.first, key.second) != nullptr) continue;
      console_.print(fmt::format("graph {} version {}: not defined in the file, {}\n", key.first,
                                 key.second, counted(count, "launch", "launches")));
    }
  }

  static std::string counts_json(const std::map<std::string, std::uint64_t>& counts) {
    JsonObject object;
    for (const auto& [name, count] : counts) object.number(name, count);
    return object.str();
  }

  static std::string info_json(const TraceInfo& info) {
    std::vector<std::string> devices;
    for (const TraceDevice& device : info.devices) {
      devices.push_back(JsonObject()
                            .number("ordinal", device.ordinal)
                            .text("name", device.name)
                            .text("arch", device.arch)
                            .text("uuid", device.uuid)
                            .str());
    }
    return JsonObject()
        .text("producer", info.producer)
        .texts("command", info.command)
        .number("pid", info.pid)
        .array("devices", devices)
        .text("driver", info.driver)
        .boolean("simulated", info.simulated)
        .str();
  }

  std::string graph_json(const GraphDefinition& graph) const {
    JsonObject object;
    object.number("graph", graph.graph)
        .number("version", graph.version)
        .number("nodes", graph.nodes.size())
        .number("edges", graph.edges.size())
        .number("launches", launches_of(graph.graph, graph.version));
    if (!options_.graphs) return object.str();
    std::vector<std::string> nodes, edges;
    for (const LaunchTraceEntry& node : graph.nodes) nodes.push_back(json_string(describe(node)));
    for (const auto& [from, to] : graph.edges) edges.push_back(fmt::format("[{},{}]", from, to));
    return object.array("node_list", nodes).array("edge_list", edges).str();
  }

  void print_json() {
    const Trace& trace = reader_.trace();
    std::vector<std::string> streams, graphs, names;
    for (const auto& [stream, count] : counts_.streams) {
      streams.push_back(JsonObject().number("stream", stream).number("entries", count).str());
    }
    for (const auto& [key, graph] : trace.graphs) graphs.push_back(graph_json(graph));
    for (const auto& [count, kind, name] : counts_.by_count()) {
      names.push_back(
          JsonObject().text("kind", kind).text("name", name).number("count", count).str());
    }
    JsonObject footer;
    footer.number("entries", trace.footer.entries)
        .number("dropped", trace.footer.dropped)
        .number("stalls", trace.footer.stalls)
        .number("racing", trace.footer.racing)
        .json("coverage", trace.footer.coverage);
    JsonObject object;
    object.text("schema", "lockstep/show/1")
        .text("file", options_.file)
        .json("info", info_json(trace.info))
        .boolean("truncated", reader_.truncated())
        .json("footer", trace.footer.present ? footer.str() : std::string())
        .number("file_entries", reader_.file_entries())
        .json("file_kinds", counts_json(reader_.kinds()))
        .text("view", view_name(options_.selection))
        .number("view_entries", reader_.view_entries())
        .number("entries", counts_.selected)
        .json("kinds", counts_json(counts_.kinds))
        .array("streams", streams)
        .array("graphs", graphs);
    if (options_.stat) object.array("names", names);
    console_.print(object.str() + "\n");
  }

  Console& console_;
  const ShowOptions& options_;
  EntrySelection selection_;
  ViewReader reader_;
  bool json_;
  bool head_printed_ = false;
  Counts counts_;
};

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const ShowOptions& options) {
  if (options.jsonl) {
    if (common.json) throw Failure(kUsage, "--json and --jsonl exclude each other");
    if (options.stat || options.graphs) {
      throw Failure(kUsage, "--jsonl writes entries; --stat and --graphs do not go with it");
    }
    return print_slice(console, options);
  }
  return Show(console, common, options).run();
}

}  // namespace lockstep::cli
