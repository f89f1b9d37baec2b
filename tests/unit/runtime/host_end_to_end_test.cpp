// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <atomic>
#include <gmock/gmock.h>
#include <numeric>

#include "support/process.h"

// The public interface on the host backend, from source to values and traces.
namespace ls = lockstep;

namespace {

using ::testing::HasSubstr;

constexpr const char* kSource = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void store(int* p, int value) { *p = value; }
extern "C" __global__ void add(int* p, int value) { *p += value; }
extern "C" __global__ void copy_sum(int* out, const int* values, unsigned n) {
  int sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += values[i];
  *out = sum;
}
)";

class Host : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = new ls::Device(ls::Device::open("host"));
    module_ = new ls::Module(
        device_->compile(kSource, {.kernels = {"saxpy", "store", "add", "copy_sum"}}));
  }
  static void TearDownTestSuite() {
    delete module_;
    delete device_;
  }
  const ls::Device& device() { return *device_; }
  ls::Kernel kernel(const char* name) { return module_->kernel(name); }
  int read(const ls::StreamRef& stream, const ls::Buffer<int>& buffer) {
    std::vector<int> value(buffer.size());
    stream.copy_and_wait(value, buffer);
    return value[0];
  }

  /// What one call has done, without addresses.
  template <typename Call>
  std::vector<std::uint64_t> hashes_of(const Call& call) {
    ls::LaunchTrace trace;
    call();
    std::vector<std::uint64_t> hashes;
    for (const ls::LaunchTraceEntry& entry : trace.take()) hashes.push_back(entry.semantic_hash);
    return hashes;
  }

 private:
  static inline ls::Device* device_ = nullptr;
  static inline ls::Module* module_ = nullptr;
};

// The first program of the documentation.
TEST_F(Host, FirstProgram) {
  constexpr unsigned n = 1000;
  ls::Stream stream = device().create_stream();
  auto x = device().allocate<float>(n), y = device().allocate<float>(n);
  const ls::Kernel saxpy = kernel("saxpy");
  std::vector<float> host_x(n), host_y(n, 1.0f);
  std::iota(host_x.begin(), host_x.end(), 0.0f);
  const unsigned blocks = (n + 255) / 256;

  ls::LaunchTrace trace;
  stream.copy(x, host_x);
  stream.copy(y, host_y);
  stream.launch(saxpy, {.grid = blocks, .block = 256}, 2.0f, x, y, n);
  stream.synchronize();
  const std::vector<ls::LaunchTraceEntry> entries = trace.take();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].memcpy_kind, ls::MemcpyKind::kHtoD);
  EXPECT_EQ(entries[0].memcpy_byte_size, 4000u);
  EXPECT_EQ(entries[2].name, "saxpy");
  EXPECT_EQ(entries[2].grid(), ls::Dim3(4));
  EXPECT_EQ(entries[2].block(), ls::Dim3(256));

  stream.copy_and_wait(host_y, y);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(host_y[i], 2.0f * static_cast<float>(i) + 1.0f);

  auto step = [&](ls::Stream& s) {
    s.launch(saxpy, {.grid = blocks, .block = 256}, 2.0f, x, y, n);
  };
  ls::GraphExec replay = stream.capture(step).instantiate();
  EXPECT_EQ(hashes_of([&] { replay.launch(stream); }), hashes_of([&] { step(stream); }));
  stream.copy_and_wait(host_y, y);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(host_y[i], 6.0f * static_cast<float>(i) + 1.0f);
  EXPECT_TRUE(replay.graph().capture_differences().empty());
}

TEST_F(Host, CAP_02_CapturedWorkDoesNotRun) {
  ls::Stream stream = device().create_stream();
  const auto d = device().allocate<int>(1);
  stream.fill(d, 5);
  const ls::GraphExec exec =
      stream.capture([&](ls::StreamRef& s) { s.launch(kernel("store"), {}, d, 7); }).instantiate();
  EXPECT_EQ(read(stream, d), 5);
  ls::LaunchTrace trace;
  exec.launch(stream);
  stream.synchronize();
  EXPECT_EQ(trace.take().size(), 1u);
  EXPECT_EQ(read(stream, d), 7);
}

TEST_F(Host, CAP_07_LegacyStreamWhileABlockingStreamCaptures) {
  const auto d = device().allocate<int>(1);
  const ls::StreamRef legacy = device().legacy_stream();
  ls::Stream blocking = device().create_stream({.non_blocking = false});
  blocking.begin_capture();
  EXPECT_THROW(legacy.fill(d, 1), ls::Error);
  try {
    blocking.end_capture();
    ADD_FAILURE() << "ended well";
  } catch (const ls::Error& error) {
    EXPECT_EQ(error.code(), ls::ErrorCode::kCaptureInvalidated);
    EXPECT_THAT(error.what(), HasSubstr("invalidated by Stream::fill"));
  }
  blocking.fill(d, 3);
  EXPECT_EQ(read(blocking, d), 3);

  ls::Stream free_stream = device().create_stream();
  const ls::Graph graph = free_stream.capture([&](ls::StreamRef& s) {
    s.launch(kernel("store"), {}, d, 1);
    legacy.fill(d, 8);
  });
  EXPECT_EQ(graph.node_count(), 1u);
  legacy.synchronize();  // the other stream does not wait for it by itself
  EXPECT_EQ(read(free_stream, d), 8);
}

TEST_F(Host, CAP_01_UnjoinedStreamIsNamed) {
  ls::Stream first = device().create_stream(), second = device().create_stream();
  const ls::Event event = device().create_event(), back = device().create_event();
  const auto d = device().allocate<int>(2);
  const auto fork = [&](bool join) {
    first.begin_capture();
    first.launch(kernel("store"), {}, d, 1);
    first.record(event);
    second.wait(event);
    second.launch(kernel("add"), {}, d.subview(1, 1), 1);
    if (join) {
      second.record(back);
      first.wait(back);
    }
    return first.end_capture();
  };
  try {
    fork(false);
    ADD_FAILURE() << "ended well";
  } catch (const ls::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("#" + std::to_string(second.identity())));
  }
  const ls::Graph graph = fork(true);
  EXPECT_EQ(graph.node_count(), 2u);
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(graph.edges(), std::vector<Edge>({{0, 1}}));
  EXPECT_TRUE(graph.capture_differences().empty());
}

TEST_F(Host, CAP_13_WrongStreamGivesAnEmptyGraph) {
  ls::Stream captured = device().create_stream(), other = device().create_stream();
  const auto d = device().allocate<int>(1);
  const ls::Graph graph =
      captured.capture([&](ls::StreamRef&) { other.launch(kernel("store"), {}, d, 1); });
  EXPECT_EQ(graph.node_count(), 0u);
  EXPECT_THROW(graph.instantiate(), ls::Error);
  const ls::GraphExec exec = graph.instantiate({.allow_empty = true});
  EXPECT_TRUE(hashes_of([&] { exec.launch(captured); }).empty());
}

TEST_F(Host, CAP_17_HostFunctionsRunAtEachReplay) {
  ls::Stream stream = device().create_stream();
  const auto d = device().allocate<int>(1);
  auto counter = std::make_unique<std::atomic<int>>(0);
  ls::GraphExec exec;
  {
    auto owner = std::make_shared<std::atomic<int>*>(counter.get());
    exec = stream
               .capture([&](ls::StreamRef& s) {
                 s.launch(kernel("add"), {}, d, 1);
                 s.host_function([owner] { ++**owner; });
                 s.launch(kernel("add"), {}, d, 1);
               })
               .instantiate();
  }
  EXPECT_EQ(*counter, 0);
  stream.fill(d, 0);
  for (int i = 0; i < 5; ++i) exec.launch(stream);
  stream.synchronize();
  EXPECT_EQ(*counter, 5);
  EXPECT_EQ(read(stream, d), 10);
}

TEST_F(Host, REP_07_SourceOnTheStackIsASnapshot) {
  ls::Stream stream = device().create_stream();
  const auto d = device().allocate<int>(3);
  ls::GraphExec exec;
  {
    std::vector<int> source = {1, 2, 3};
    exec = stream.capture([&](ls::StreamRef& s) { s.copy(d, source); }).instantiate();
    source.assign({7, 7, 7});
  }
  EXPECT_EQ(exec.graph().host_slots().at(0).kind, ls::HostSlot::Kind::kSnapshot);
  exec.launch(stream);
  std::vector<int> values(3);
  stream.copy_and_wait(values, d);
  EXPECT_EQ(values, std::vector<int>({1, 2, 3}));
}

TEST_F(Host, REP_10_BlockingUploadIsSeenByEveryStream) {
  const ls::Stream uploads = device().create_stream(), reads = device().create_stream();
  for (const unsigned count : {16u << 10, 64u << 10, 256u << 10}) {
    const auto data = device().allocate<int>(count);
    const auto sum = device().allocate<int>(1);
    std::vector<int> host(count);
    for (int round = 1; round <= 20; ++round) {
      host.assign(count, round);
      uploads.copy_and_wait(data, host);
      reads.launch(kernel("copy_sum"), {}, sum, data, count);
      ASSERT_EQ(read(reads, sum), round * static_cast<int>(count));
    }
  }
}

TEST_F(Host, SixtyFourStreamsKeepTheirOrder) {
  std::vector<ls::Stream> streams;
  std::vector<ls::Buffer<int>> buffers;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(device().create_stream());
    buffers.push_back(device().allocate<int>(1));
    streams.back().fill(buffers.back(), 0);
  }
  ls::LaunchTrace trace;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      streams[i].launch(kernel("add"), {}, buffers[i], static_cast<int>(i) + round);
    }
  }
  const std::vector<ls::LaunchTraceEntry> entries = trace.take();
  ASSERT_EQ(entries.size(), 640u);
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].stream_index, i % 64);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(read(streams[i], buffers[i]), static_cast<int>(10 * i) + 45);
  }
}

std::string compile_error(const ls::Device& device, const std::string& source,
                          ls::ErrorCode code = ls::ErrorCode::kCompilationFailed) {
  try {
    (void)device.compile(source, {.kernels = {"k"}});
  } catch (const ls::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "compiled: " << source;
  return {};
}

TEST_F(Host, CompilersLogIsSaidOnce) {
  for (const std::string source :
       {"__global__ void k() { undeclared_thing(); }", "__global__ void k() { k<<<1, 1>>>(); }"}) {
    const std::string text = compile_error(device(), source);
    const std::size_t first = text.find("kernel.cu:1:");
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find(text.substr(first), first + 1), std::string::npos) << text;
    const std::size_t error = text.find("error: ", first);
    ASSERT_NE(error, std::string::npos) << text;
    EXPECT_EQ(text.find("error: ", error + 1), std::string::npos) << text;
  }
}

TEST_F(Host, SourcesThatHoldNoKernelAreRefused) {
  EXPECT_THAT(compile_error(device(), "", ls::ErrorCode::kInvalidArgument),
              HasSubstr("Device::compile of an empty source"));
  EXPECT_THAT(compile_error(device(), "__device__ void k() {}"),
              HasSubstr("'k' is no kernel: it is not declared __global__"));
}

TEST_F(Host, StaticSharedMemoryEndsWhereItDoesOnAGpu) {
  const auto source = [](const char* count) {
    return std::string("__global__ void k(int* p) { __shared__ int s[") + count +
           "]; s[threadIdx.x] = 1; __syncthreads(); *p = s[0]; }";
  };
  EXPECT_THAT(compile_error(device(), source("12289")),
              HasSubstr("_Z1kPi uses 49156 bytes of static shared memory, the limit is 49152"));
  const ls::Module module = device().compile(source("12288"), {.kernels = {"k"}});
  EXPECT_EQ(module.kernel("k").static_shared_bytes(), 49152u);
  EXPECT_EQ(module.kernel("k").max_dynamic_shared(), 0u);
}

// PLUG-05: whatever is alive when a process ends does no harm.
TEST(HostExit, PLUG_05_LiveObjectsAtExit) {
  for (const char* how : {"return", "exit-in-thread"}) {
    lockstep::testing::ProcessOptions options;
    options.limit_seconds = 60;
    // What lives at exit is left to the system on purpose: the driver may be gone by then.
    options.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}};
    const auto result = lockstep::testing::run({LOCKSTEP_EXIT_PROGRAM, how}, options);
    EXPECT_EQ(result.exit_code, 0) << how;
    EXPECT_EQ(result.err, "") << how;
    EXPECT_EQ(result.out, "done\n") << how;
  }
}

}  // namespace
