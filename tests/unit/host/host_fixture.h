// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

// Drives the built host plugin through its C table, with a recorder that keeps what it is told.
namespace lockstep::host_test {

// What a call reported to the recorder.
struct Recorded {
  lockstep_record record{};
  std::string name;
  std::vector<std::vector<unsigned char>> arguments;
  bool ended = false;
  std::uint32_t flags = 0;
  std::uint64_t graph = 0;
  std::int32_t node = -1;
};
struct DefinedGraph {
  std::uint64_t graph = 0;
  std::uint32_t version = 0;
  std::vector<lockstep_record> nodes;
  std::vector<lockstep_graph_edge> edges;
};

void start_recording();
std::vector<Recorded> stop_recording();
// Always kept, recording or not.
std::vector<DefinedGraph> defined_graphs();
std::vector<lockstep_record> memory_reports();
std::string text_of(std::uint32_t interned);

// The plugin's table, initialized. Aborts the test program with a message when it cannot be had.
const lockstep_backend& backend();
// The same without starting it, and a host that offers the given interface versions.
const lockstep_backend* query(std::uint32_t abi_min, std::uint32_t abi_max, lockstep_error* error);

struct Result {
  lockstep_code code = LOCKSTEP_OK;
  lockstep_capture_rule rule = 0;
  std::int64_t native = 0;
  std::string call;
  std::string message;
  std::string log;
  bool ok() const { return code == LOCKSTEP_OK; }
};
::testing::AssertionResult succeeded(const Result& result);

Result to_result(lockstep_code code, const lockstep_error& error);
// Calls a slot with its arguments and an error record after them.
template <typename Slot, typename... Arguments>
Result call(Slot slot, Arguments... arguments) {
  static thread_local std::array<char, 1 << 16> log;
  lockstep_error error{};
  error.struct_size = sizeof(error);
  error.log = log.data();
  error.log_capacity = log.size();
  log[0] = '\0';
  const lockstep_code code = slot(arguments..., &error);
  return to_result(code, error);
}

template <auto Slot>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    (backend().*Slot)(handle);
  }
};
using Stream = std::unique_ptr<lockstep_stream, Destroy<&lockstep_backend::stream_destroy>>;
using Event = std::unique_ptr<lockstep_event, Destroy<&lockstep_backend::event_destroy>>;
using Module = std::unique_ptr<lockstep_module, Destroy<&lockstep_backend::module_destroy>>;
using Graph = std::unique_ptr<lockstep_graph, Destroy<&lockstep_backend::graph_destroy>>;
using Exec = std::unique_ptr<lockstep_graph_exec, Destroy<&lockstep_backend::graph_exec_destroy>>;

struct LaunchConfig {
  lockstep_dim3 grid{1, 1, 1};
  lockstep_dim3 block{1, 1, 1};
  std::uint64_t shared = 0;
};

class HostTest : public ::testing::Test {
 public:
  HostTest();
  ~HostTest() override;

  const lockstep_backend& b = backend();
  lockstep_device* device = nullptr;

  Stream make_stream(bool blocking = false);
  Stream special(std::uint32_t which);
  Event make_event(std::uint32_t flags = 0);
  template <typename T>
  T* allocate(std::size_t count, std::uint32_t kind = LOCKSTEP_MEMORY_DEVICE) {
    return static_cast<T*>(allocate_bytes(count * sizeof(T), kind));
  }
  void* allocate_bytes(std::uint64_t bytes, std::uint32_t kind);  // freed at the end of the test

  // Kernels of kernels.cu.inc, by name expression.
  lockstep_kernel* kernel(const char* name);
  Result compile(const std::string& source, std::initializer_list<const char*> kernels,
                 Module* module);

  template <typename... Arguments>
  Result launch(const Stream& stream, lockstep_kernel* k, const LaunchConfig& config,
                Arguments... arguments) {
    const std::array<const void*, sizeof...(Arguments) + 1> pointers{&arguments..., nullptr};
    return launch_raw(stream.get(), k, config, pointers.data(), sizeof...(Arguments));
  }
  Result launch_raw(lockstep_stream* stream, lockstep_kernel* k, const LaunchConfig& config,
                    const void* const* arguments, std::uint32_t count);
  Result copy(const Stream& stream, void* to, const void* from, std::uint64_t bytes,
              std::uint32_t expected = LOCKSTEP_COPY_NONE);
  Result set(const Stream& stream, void* to, std::uint32_t value, std::uint32_t value_size,
             std::uint64_t count);
  Result synchronize(const Stream& stream) { return call(b.stream_synchronize, stream.get()); }
  Result record(const Event& event, const Stream& stream) {
    return call(b.event_record, event.get(), stream.get());
  }
  Result wait(const Stream& stream, const Event& event) {
    return call(b.stream_wait_event, stream.get(), event.get());
  }
  Result begin(const Stream& stream, std::uint32_t mode = LOCKSTEP_CAPTURE_GLOBAL) {
    return call(b.capture_begin, stream.get(), mode);
  }
  Result end(const Stream& stream, Graph* graph);
  std::uint32_t status(const Stream& stream);
  std::uint32_t node_count(const Graph& graph);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges(const Graph& graph);
  std::vector<std::uint32_t> kinds(const Graph& graph);  // LOCKSTEP_NODE_*
  Exec instantiate(const Graph& graph);
  Result launch_graph(const Exec& exec, const Stream& stream) {
    return call(b.graph_exec_launch, exec.get(), stream.get());
  }
  // What lies at device memory now.
  template <typename T>
  std::vector<T> read(const Stream& s, const T* p, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(succeeded(copy(s, values.data(), p, count * sizeof(T))));
    EXPECT_TRUE(succeeded(synchronize(s)));
    return values;
  }
  Result set_2d(const Stream& s, void* to, std::uint32_t value, std::uint32_t size,
                std::array<std::uint64_t, 3> extent, std::uint64_t pitch, std::uint64_t slice) {
    lockstep_set_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.destination = to;
    desc.width = extent[0];
    desc.height = extent[1];
    desc.depth = extent[2];
    desc.pitch = pitch;
    desc.slice_pitch = slice;
    desc.value = value;
    desc.value_size = size;
    return call(b.set, s.get(), &desc);
  }
  lockstep_copy_desc copy_desc(void* to, const void* from, std::uint64_t width,
                               std::uint64_t height = 1, std::uint64_t depth = 1) {
    lockstep_copy_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.source = from;
    desc.destination = to;
    desc.width = width;
    desc.height = height;
    desc.depth = depth;
    desc.source_device = desc.destination_device = -1;
    return desc;
  }
  lockstep_pointer_info info_of(const void* pointer) {
    lockstep_pointer_info info{};
    info.struct_size = sizeof(info);
    EXPECT_TRUE(succeeded(call(b.pointer_info, device, pointer, &info)));
    return info;
  }
  // A kernel launch on the stream works and is executed.
  ::testing::AssertionResult usable(const Stream& stream);

 private:
  std::vector<void*> allocations_;
};

// Cases of the project's case list, by their number.
class Cases : public HostTest {};

}  // namespace lockstep::host_test
