// SPDX-License-Identifier: Apache-2.0
// Trace files: write, read and compare, beside what zstd alone takes for the same bytes.
#include <lockstep/lockstep.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zstd.h>

#include "harness.h"

extern char** environ;

namespace {

namespace ls = lockstep;
namespace fs = std::filesystem;

constexpr std::uint64_t kEntries = 200'000;          // a round
constexpr std::uint64_t kLargeEntries = 10'000'000;  // for peak memory
constexpr double kRateLimit = 2;                     // million entries a second a core
constexpr double kMemoryLimit = 256;                 // MB
constexpr double kBytesLimit = 64;                   // an entry

/// The recordings, one after the other, with numbers of graphs that do not meet.
struct Recordings {
  std::vector<ls::LaunchTraceEntry> entries;
  std::vector<ls::GraphDefinition> graphs;
  std::map<std::uint32_t, ls::StreamDefinition> streams;
};

Recordings read_recordings() {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(LOCKSTEP_BENCH_TRACES)) {
    if (file.path().extension() == ".jsonl") files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  Recordings all;
  std::int32_t next_graph = 0;
  for (const fs::path& file : files) {
    ls::Trace trace = ls::read_trace(file);
    const std::int32_t first = next_graph;
    for (auto& [key, graph] : trace.graphs) {
      graph.graph += first;
      next_graph = std::max(next_graph, graph.graph + 1);
      all.graphs.push_back(std::move(graph));
    }
    for (ls::LaunchTraceEntry& entry : trace.entries) {
      if (entry.graph >= 0) entry.graph += first;
      all.entries.push_back(std::move(entry));
    }
    for (const ls::StreamDefinition& stream : trace.streams)
      all.streams.emplace(stream.stream, stream);
  }
  if (all.entries.empty()) throw std::runtime_error("no recordings in " LOCKSTEP_BENCH_TRACES);
  return all;
}

/// kStamped: with number and time, as a recorder writes them, so that no line is like another.
enum class Lines { kRepeated, kStamped };

void write(const fs::path& path, const Recordings& recordings, std::uint64_t count,
           Lines lines = Lines::kRepeated) {
  ls::TraceInfo header;
  header.producer = "trace_bench";
  ls::TraceWriter writer(path, header, {.force = true});
  for (const auto& [number, stream] : recordings.streams) writer.write(stream);
  for (const ls::GraphDefinition& graph : recordings.graphs) writer.write(graph);
  std::vector<ls::LaunchTraceEntry> entries = recordings.entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    ls::LaunchTraceEntry& entry = entries[i % entries.size()];
    if (lines == Lines::kStamped) {
      entry.sequence = i;
      entry.time_ns = static_cast<std::int64_t>(i * 5003);
    }
    writer.write(entry);
  }
  writer.finish();
}

void read(const fs::path& path, std::uint64_t count) {
  ls::TraceReader reader(path);
  std::uint64_t entries = 0;
  while (const auto item = reader.next()) {
    if (std::holds_alternative<ls::LaunchTraceEntry>(*item)) ++entries;
  }
  if (entries != count || reader.truncated())
    throw std::runtime_error("read " + std::to_string(entries) + " entries, not " +
                             std::to_string(count));
}

void compare(const fs::path& left, const fs::path& right) {
  if (!ls::diff_files(left, right).equal) throw std::runtime_error("equal traces differ");
}

std::string bytes_of(const fs::path& path) {
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

/// What zstd alone takes to read a file. Keeps the text when asked to.
void decompress(const fs::path& path, std::string* text) {
  const std::string bytes = bytes_of(path);
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  while (in.pos < in.size) {
    ZSTD_outBuffer out = {piece.data(), piece.size(), 0};
    const std::size_t result = ZSTD_decompressStream(context, &out, &in);
    if (ZSTD_isError(result) != 0) throw std::runtime_error(ZSTD_getErrorName(result));
    if (text != nullptr) text->append(piece.data(), out.pos);
  }
  ZSTD_freeDCtx(context);
}

std::size_t compress(const std::string& text, std::vector<char>& room) {
  constexpr std::size_t kFrame = 1 << 20;  // as the writer cuts
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size(); at += kFrame) {
    const std::size_t part = std::min(kFrame, text.size() - at);
    size += ZSTD_compress(room.data(), room.size(), text.data() + at, part, 3);
  }
  return size;
}

/// Peak memory in MB of this program as a child that does one thing.
double peak_memory(const char* self, const std::string& what, const fs::path& path) {
  std::string verb = "--child-" + what, file = path.string(), program = self;
  char* arguments[] = {program.data(), verb.data(), file.data(), nullptr};
  pid_t child = 0;
  if (const int code = posix_spawn(&child, self, nullptr, nullptr, arguments, environ); code != 0)
    throw std::runtime_error(std::string("cannot run ") + self + ": " + std::strerror(code));
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0)
    throw std::runtime_error("the child that was to " + what + " failed");
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

bench::Table measure_memory(const char* self, const fs::path& folder) {
  bench::Table table{
      "10 million entries with numbers and times, one process each", "MB peak", {}, {}, {}};
  const fs::path path = folder / "large.jsonl.zst";
  // The writer first: it makes what the others read.
  for (const char* what : {"write", "read", "diff"}) {
    const double peak = peak_memory(self, what, path);
    table.bars.push_back({std::string("peak memory, ") + what,
                          "MB",
                          {peak, peak, peak},
                          bench::Bar::Direction::kAtMost,
                          kMemoryLimit});
  }
  const double bytes =
      static_cast<double>(fs::file_size(path)) / static_cast<double>(kLargeEntries);
  table.bars.push_back({"file size",
                        "bytes an entry",
                        {bytes, bytes, bytes},
                        bench::Bar::Direction::kAtMost,
                        kBytesLimit});
  fs::remove(path);
  return table;
}

bench::Table measure_speed(const fs::path& folder) {
  const Recordings recordings = read_recordings();
  const fs::path path = folder / "small.jsonl.zst";
  write(path, recordings, kEntries);
  const fs::path stamped = folder / "stamped.jsonl.zst";
  write(stamped, recordings, kEntries, Lines::kStamped);
  std::string text;
  decompress(path, &text);
  std::vector<char> room(ZSTD_compressBound(1 << 20));
  const auto nanoseconds = [](const std::function<void()>& work) {
    return bench::cpu_seconds(work) * 1e9 / kEntries;
  };
  bench::Table table = bench::measure(
      "trace files (.jsonl.zst), the recordings repeated", "ns of CPU an entry",
      {{"zstd alone, compressing", [&] { return nanoseconds([&] { compress(text, room); }); }},
       {"zstd alone, decompressing",
        [&] { return nanoseconds([&] { decompress(path, nullptr); }); }},
       {"write", [&] { return nanoseconds([&] { write(path, recordings, kEntries); }); }},
       {"read", [&] { return nanoseconds([&] { read(path, kEntries); }); }},
       {"diff of two files, per entry of each",
        [&] { return nanoseconds([&] { compare(path, path); }) / 2; }},
       {"write, numbers and times",
        [&] {
          return nanoseconds([&] { write(stamped, recordings, kEntries, Lines::kStamped); });
        }},
       {"read, numbers and times", [&] { return nanoseconds([&] { read(stamped, kEntries); }); }},
       {"diff, numbers and times",
        [&] { return nanoseconds([&] { compare(stamped, stamped); }) / 2; }}});
  for (const char* what :
       {"write", "read", "diff of two files, per entry of each", "write, numbers and times",
        "read, numbers and times", "diff, numbers and times"}) {
    const bench::Interval time = table.spread(what);
    table.bars.push_back({what,
                          "million entries a second a core",
                          {1e3 / time.high, 1e3 / time.median, 1e3 / time.low},
                          bench::Bar::Direction::kAtLeast,
                          kRateLimit});
  }
  const double size = static_cast<double>(fs::file_size(stamped)) / static_cast<double>(kEntries);
  table.notes.push_back("with numbers and times: " + std::to_string(size) +
                        " bytes an entry in the file");
  return table;
}

struct FolderOfThisRun {
  explicit FolderOfThisRun(fs::path at) : path(std::move(at)) { fs::create_directory(path); }
  ~FolderOfThisRun() {
    std::error_code ignored;  // nothing to do about a folder that cannot be removed
    fs::remove_all(path, ignored);
  }
  FolderOfThisRun(const FolderOfThisRun&) = delete;
  FolderOfThisRun& operator=(const FolderOfThisRun&) = delete;
  const fs::path path;
};

int run(const char* self, const std::string& json_path) {
  const bool memory_files = fs::is_directory("/dev/shm");
  const fs::path base = memory_files ? fs::path("/dev/shm") : fs::temp_directory_path();
  const fs::path folder = base / ("lockstep-trace-bench-" + std::to_string(getpid()));
  const FolderOfThisRun cleanup(folder);
  // Children first: a child's peak begins at what its parent holds when it is made.
  bench::Table memory = measure_memory(self, folder);
  std::vector<bench::Table> tables = {measure_speed(folder), std::move(memory)};
  if (!memory_files) {
    for (bench::Table& table : tables)
      table.notes.push_back("no /dev/shm: files in " + base.string());
  }
  return bench::report(tables, json_path) ? 0 : 1;
}

int run_child(const std::string& verb, const fs::path& path) {
  if (verb == "--child-write") write(path, read_recordings(), kLargeEntries, Lines::kStamped);
  if (verb == "--child-read") read(path, kLargeEntries);
  if (verb == "--child-diff") compare(path, path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3) return run_child(argv[1], argv[2]);
    return run("/proc/self/exe", argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trace_bench: %s\n", error.what());
    return 5;
  }
}
