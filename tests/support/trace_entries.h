// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/error.h>
#include <lockstep/trace.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

/// \file
/// Entries, traces and folders that tests need again and again.
namespace lockstep::testing_support {

/// The code of the error that `act` throws, and its text; kOk when it throws none.
inline ErrorCode code_of(const std::function<void()>& act, std::string* what = nullptr) {
  try {
    act();
  } catch (const Error& error) {
    if (what != nullptr) *what = error.what();
    return error.code();
  }
  return ErrorCode::kOk;
}

inline LaunchTraceEntry kernel(const std::string& name, std::uint32_t stream = 0) {
  LaunchTraceEntry entry;
  entry.name = name;
  entry.grid_x = entry.grid_y = entry.grid_z = 1;
  entry.block_x = 32, entry.block_y = entry.block_z = 1;
  entry.stream_index = stream;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry copy(MemcpyKind kind, std::uint64_t bytes, std::uint32_t stream = 0) {
  LaunchTraceEntry entry;
  entry.kind = OperationKind::kMemcpy;
  entry.name = "hostMemcpyAsync";
  entry.memcpy_kind = kind;
  entry.memcpy_byte_size = bytes;
  entry.extent = {bytes, 1, 1};
  entry.stream_index = stream;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry of_kind(OperationKind kind, const std::string& name) {
  LaunchTraceEntry entry;
  entry.kind = kind;
  entry.name = name;
  entry.semantic_hash = semantic_hash(entry);
  return entry;
}

inline LaunchTraceEntry graph_launch(std::int32_t graph, std::uint32_t version = 1,
                                     std::uint32_t stream = 0) {
  LaunchTraceEntry entry = of_kind(OperationKind::kGraphLaunch, "cuGraphLaunch");
  entry.graph = graph;
  entry.graph_version = version;
  entry.stream_index = stream;
  return entry;
}

/// A whole trace of these entries, as one that was taken to its end.
inline Trace trace_of(std::vector<LaunchTraceEntry> entries) {
  Trace trace;
  trace.info.producer = "test";
  trace.entries = std::move(entries);
  trace.footer.present = true;
  trace.footer.entries = trace.entries.size();
  return trace;
}

inline Trace kernels(const std::vector<std::string>& names) {
  std::vector<LaunchTraceEntry> entries;
  for (const std::string& name : names) entries.push_back(kernel(name));
  return trace_of(std::move(entries));
}

/// A folder of its own for one test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string place = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    if (::mkdtemp(place.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + place);
    path_ = place;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A file in memory, for tests that write thousands of them.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("lockstep-test", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error("memfd_create failed");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  void assign(std::string_view bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, bytes.data(), bytes.size(), 0) != size) {
      throw std::runtime_error("cannot write a file in memory");
    }
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::filesystem::path recording(const std::string& name) {
  return std::filesystem::path(LOCKSTEP_TEST_DATA_DIR) / "traces" / (name + ".jsonl");
}

}  // namespace lockstep::testing_support
