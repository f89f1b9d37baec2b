// SPDX-License-Identifier: Apache-2.0
#include "facts_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <nvrtc.h>

namespace cuda_facts {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void nop() {}
)";

// Nothing below works without: said and given up.
void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s answered %d\n", what, result);
  std::abort();
}

std::vector<char> compile(CUdevice device) {
  int major = 0;
  int minor = 0;
  must(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
       "cuDeviceGetAttribute");
  must(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
       "cuDeviceGetAttribute");
  const std::string architecture =
      "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor);
  const char* options[] = {architecture.c_str()};
  nvrtcProgram program = nullptr;
  must(nvrtcCreateProgram(&program, kSource, "facts.cu", 0, nullptr, nullptr),
       "nvrtcCreateProgram");
  must(nvrtcCompileProgram(program, 1, options), "nvrtcCompileProgram");
  std::size_t size = 0;
  must(nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
  std::vector<char> image(size);
  must(nvrtcGetCUBIN(program, image.data()), "nvrtcGetCUBIN");
  must(nvrtcDestroyProgram(&program), "nvrtcDestroyProgram");
  return image;
}

}  // namespace

Driver& Driver::get() {
  static auto* const instance = new Driver;
  return *instance;
}

Driver::Driver() : pageable(kBytes) {
  must(cuInit(0), "cuInit");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  image = compile(device);
  must(cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  must(cuModuleGetFunction(&saxpy, module, "saxpy"), "cuModuleGetFunction");
  must(cuModuleGetFunction(&nop, module, "nop"), "cuModuleGetFunction");
  must(cuMemAlloc(&x, kBytes), "cuMemAlloc");
  must(cuMemAlloc(&y, kBytes), "cuMemAlloc");
  must(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), kBytes, 0), "cuMemHostAlloc");
  must(cuEventCreate(&recorded, 0), "cuEventCreate");
  must(cuEventRecord(recorded, nullptr), "cuEventRecord");
  must(cuEventCreate(&captured, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  CUstream stream = make_stream();
  must(cuMemAllocAsync(&allocated_in_order, 4096, stream), "cuMemAllocAsync");
  must(cuStreamSynchronize(stream), "cuStreamSynchronize");
  must(cuStreamDestroy(stream), "cuStreamDestroy");
  must(cuGraphCreate(&other_graph, 0), "cuGraphCreate");
  add_nop(other_graph, nullptr, nop);
  must(cuGraphInstantiateWithFlags(&other_exec, other_graph, 0), "cuGraphInstantiate");
  must(launch(nullptr), "cuLaunchKernel");
  must(cuCtxSynchronize(), "cuCtxSynchronize");
}

CUresult Driver::launch(CUstream stream, unsigned grid) const {
  float factor = 2;
  int count = 256;
  CUdeviceptr from = x;
  CUdeviceptr to = y;
  void* arguments[] = {&factor, &from, &to, &count};
  return cuLaunchKernel(saxpy, grid, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
}

CUgraphNode Driver::add_nop(CUgraph graph, CUgraphNode after, CUfunction function) const {
  float factor = 1;
  int count = 0;
  CUdeviceptr from = x;
  CUdeviceptr to = y;
  void* arguments[] = {&factor, &from, &to, &count};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 32;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = function == saxpy ? arguments : nullptr;
  CUgraphNode node = nullptr;
  must(cuGraphAddKernelNode(&node, graph, after == nullptr ? nullptr : &after,
                            after == nullptr ? 0 : 1, &params),
       "cuGraphAddKernelNode");
  return node;
}

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  must(cuStreamCreate(&stream, flags), "cuStreamCreate");
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return event;
}

int status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  const CUresult result = cuStreamIsCapturing(stream, &status);
  return result != CUDA_SUCCESS ? 1000 + static_cast<int>(result) : static_cast<int>(status);
}

void on_another_thread(const std::function<void()>& body) {
  std::thread([&] {
    must(cuCtxSetCurrent(Driver::get().context), "cuCtxSetCurrent");
    body();
  }).join();
}

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  must(cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) must(cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  return nodes;
}

std::string nodes_text(CUgraph graph) {
  if (graph == nullptr) return "-1()";
  std::string types;
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    must(cuGraphNodeGetType(node, &type), "cuGraphNodeGetType");
    types += (types.empty() ? "" : " ") + std::to_string(static_cast<int>(type));
  }
  return std::to_string(nodes.size()) + "(" + types + ")";
}

void expect_usable(CUstream stream) {
  EXPECT_EQ(Driver::get().launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

CUgraph capture(CUstream stream, const std::function<void()>& body) {
  EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  body();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  return graph;
}

}  // namespace cuda_facts
