// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "measure.h"

// Copies, sets, limits and streams.
namespace measure {
namespace {

using namespace cuda_facts;  // NOLINT: the vocabulary of these programs

// Blocking uploads of new data, each followed at once by a read of the last bytes on a non-blocking
// stream.
int stale_uploads(std::size_t bytes, unsigned rounds) {
  CUstream reader = make_stream();
  CUdeviceptr device = 0;
  unsigned* seen = nullptr;
  cuMemAlloc(&device, bytes);
  cuMemHostAlloc(reinterpret_cast<void**>(&seen), sizeof *seen, 0);
  std::vector<unsigned> values(bytes / sizeof(unsigned));
  int stale = 0;
  for (unsigned round = 1; round <= rounds; ++round) {
    std::fill(values.begin(), values.end(), round);
    cuMemcpyHtoD(device, values.data(), bytes);
    cuMemcpyDtoHAsync(seen, device + bytes - sizeof *seen, sizeof *seen, reader);
    cuStreamSynchronize(reader);
    if (*seen != round) ++stale;
    cuCtxSynchronize();
  }
  cuMemFree(device);
  return stale;
}

std::string native_uploads() {
  Driver::get();
  const unsigned rounds = simulated() ? 10 : 200;
  std::string text;
  for (const std::size_t bytes :
       {std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{1146880},
        std::size_t{64} << 20}) {
    text += std::string(text.empty() ? "" : ", ") + list(bytes) +
            " B: " + list(stale_uploads(bytes, rounds)) + " of " + list(rounds);
  }
  return text;
}

std::string special_streams() {
  const Driver& driver = Driver::get();
  const auto id_of = [](CUstream stream) {
    unsigned long long id = 0;
    cuStreamGetId(stream, &id);
    return id;
  };
  const bool same = id_of(nullptr) == id_of(CU_STREAM_LEGACY);
  const unsigned long long mine = id_of(CU_STREAM_PER_THREAD);
  unsigned long long other = 0;
  CUresult launched = CUDA_SUCCESS;
  on_another_thread([&] {
    other = id_of(CU_STREAM_PER_THREAD);
    launched = driver.launch(CU_STREAM_PER_THREAD);
  });
  return "launches on 0, legacy, per-thread, per-thread of another thread " +
         list(driver.launch(nullptr), driver.launch(CU_STREAM_LEGACY),
              driver.launch(CU_STREAM_PER_THREAD), launched) +
         "; 0 and legacy are " + (same ? "one stream" : "two streams") +
         "; per-thread streams of two threads are " + (mine == other ? "one" : "two");
}

// The shape that the node of a captured launch has, whatever call made it.
std::string launch_shapes() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = 3;
  config.gridDimZ = 4;
  config.blockDimX = 8;
  config.blockDimY = 4;
  config.blockDimZ = 2;
  config.sharedMemBytes = 1024;
  config.hStream = s;
  CUresult codes[3] = {};
  CUgraph graph = capture(s, [&] {
    codes[0] = cuLaunchKernel(driver.nop, 2, 3, 4, 8, 4, 2, 1024, s, nullptr, nullptr);
    codes[1] = cuLaunchKernelEx(&config, driver.nop, nullptr, nullptr);
    codes[2] = cuLaunchCooperativeKernel(driver.nop, 2, 3, 4, 8, 4, 2, 1024, s, nullptr);
  });
  std::string text = "plain, extended, cooperative " + list(codes[0], codes[1], codes[2]);
  for (CUgraphNode node : nodes_of(graph)) {
    CUDA_KERNEL_NODE_PARAMS params{};
    cuGraphKernelNodeGetParams(node, &params);
    text += "; " + list(params.gridDimX, params.gridDimY, params.gridDimZ) + " / " +
            list(params.blockDimX, params.blockDimY, params.blockDimZ) + " / " +
            list(params.sharedMemBytes);
  }
  return text;
}

std::string launch_limits() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  struct Shape {
    unsigned x, y, z, block, shared;
  };
  std::string text;
  for (const Shape& shape :
       {Shape{1, 65535, 1, 1, 0}, Shape{1, 65536, 1, 1, 0}, Shape{1, 1, 65536, 1, 0},
        Shape{2147483647, 1, 1, 1, 0}, Shape{2147483648U, 1, 1, 1, 0}, Shape{0, 1, 1, 1, 0},
        Shape{1, 1, 1, 1024, 0}, Shape{1, 1, 1, 1025, 0}, Shape{1, 1, 1, 1, 49153}}) {
    const CUresult eager = cuLaunchKernel(driver.nop, shape.x, shape.y, shape.z, shape.block, 1, 1,
                                          shape.shared, s, nullptr, nullptr);
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = driver.nop;
    params.gridDimX = shape.x;
    params.gridDimY = shape.y;
    params.gridDimZ = shape.z;
    params.blockDimX = shape.block;
    params.blockDimY = params.blockDimZ = 1;
    params.sharedMemBytes = shape.shared;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    cuGraphCreate(&graph, 0);
    const CUresult added = cuGraphAddKernelNode(&node, graph, nullptr, 0, &params);
    text += std::string(text.empty() ? "" : "; ") + list(shape.x, shape.y, shape.z) + " / " +
            list(shape.block) + " / " + list(shape.shared) + ": " + list(eager, added);
  }
  return text + "; wait " + list(cuStreamSynchronize(s));
}

std::string set_inside_a_pitch() {
  const Driver& driver = Driver::get();
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = i + 1;
  cuMemcpyHtoD(driver.y, values.data(), 256);
  CUresult set = CUDA_SUCCESS;
  for (unsigned plane = 0; plane < 4; ++plane) {
    const CUresult one = cuMemsetD2D32Async(driver.y + plane * 64, 16, 0, 3, 3, nullptr);
    if (one != CUDA_SUCCESS) set = one;
  }
  cuMemcpyDtoH(values.data(), driver.y, 256);
  return list(set) + ", " + list(std::count(values.begin(), values.end(), 0)) + " zeros of 64";
}

std::string set_widths() {
  const Driver& driver = Driver::get();
  unsigned char bytes[16] = {};
  cuMemsetD8(driver.y, 0xEE, 16);
  const CUresult seven = cuMemsetD8(driver.y, 1, 7);
  cuMemcpyDtoH(bytes, driver.y, 16);
  const int next = bytes[7];
  const CUresult words = cuMemsetD32(driver.y, 1, 2);
  const CUresult odd = cuMemsetD32(driver.y + 2, 1, 1), half = cuMemsetD16(driver.y + 1, 1, 1);
  return "7 bytes " + list(seven) + " (byte 8 is " + list(next) + "), words " + list(words) +
         ", words at 2 " + list(odd) + ", halfwords at 1 " + list(half);
}

std::string empty_copies() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  float host = 0;
  const auto ask = [&](CUdeviceptr device, void* pointer) {
    CUDA_MEMCPY2D flat{};
    flat.srcMemoryType = CU_MEMORYTYPE_HOST;
    flat.srcHost = pointer;
    flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    flat.dstDevice = device;
    flat.srcPitch = flat.dstPitch = 64;
    flat.WidthInBytes = 64;
    return list(cuMemcpyHtoDAsync(device, pointer, 0, s), cuMemcpyDtoHAsync(pointer, device, 0, s),
                cuMemcpyDtoDAsync(device, device, 0, s), cuMemsetD8Async(device, 0, 0, s),
                cuMemsetD32Async(device, 0, 0, s), cuMemcpy2DAsync(&flat, s));
  };
  std::string text = "valid pointers " + ask(driver.x, &host) + ", null " + ask(0, nullptr);
  std::string captured;
  CUgraph graph = capture(s, [&] { captured = ask(driver.x, &host) + " " + ask(0, nullptr); });
  return text + "; captured " + captured + ", nodes " + nodes_text(graph);
}

std::string directions() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  const auto pinned = reinterpret_cast<CUdeviceptr>(driver.pinned);
  auto* device = reinterpret_cast<void*>(driver.x);
  float host = 0;
  const CUresult to_pinned = cuMemcpyHtoDAsync(pinned, &host, 4, s);
  const CUresult from_device = cuMemcpyHtoDAsync(driver.y, device, 4, s);
  const CUresult into_device = cuMemcpyDtoHAsync(device, driver.y, 4, s);
  const CUresult unified = cuMemcpyAsync(driver.y, pinned, 4, s);
  return "HtoD into pinned memory " + list(to_pinned) + ", HtoD from device memory " +
         list(from_device) + ", DtoH into device memory " + list(into_device) +
         ", unified from pinned " + list(unified) + ", wait " + list(cuStreamSynchronize(s));
}

std::string captured_host_memory() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  std::vector<float> source(4, 1);
  CUgraph graph = capture(s, [&] { cuMemcpyHtoDAsync(driver.x, source.data(), 16, s); });
  CUgraphExec exec = nullptr;
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  source[0] = 42;
  float seen = 0;
  cuGraphLaunch(exec, s);
  cuStreamSynchronize(s);
  cuMemcpyDtoH(&seen, driver.x, 4);
  return "1 at capture, 42 at replay: the replay copies " + list(seen);
}

}  // namespace

std::vector<Question> memory_questions() {
  return {
      {"REP-07", "a captured copy from pageable memory", captured_host_memory},
      {"REP-10", "stale reads after the driver's own blocking `cuMemcpyHtoD`", native_uploads},
      {"TRC-07", "special stream handles", special_streams},
      {"TRC-18", "shape in the node, by call: grid / block / shared", launch_shapes},
      {"BIG-01", "grid / block / shared: eager launch, graph node", launch_limits},
      {"MEM-01", "2-D sets of 3×3 words in 4 planes of 4×4", set_inside_a_pitch},
      {"MEM-03", "sets by width", set_widths},
      {"MEM-05", "empty HtoD, DtoH, DtoD, D8, D32, 2-D", empty_copies},
      {"MEM-07", "copies whose name is not their direction", directions},
  };
}

}  // namespace measure
