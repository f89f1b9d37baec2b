// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "call.h"
#include "enqueue.h"
#include "host/kernel_work.h"
#include "hostjit/hostjit.h"

// Launches and host functions.
namespace cuda_sim {
namespace {

// The packed form of arguments, taken apart.
std::vector<const void*> unpack(void* const* extra, const hostrt::Kernel& kernel) {
  const std::byte* buffer = nullptr;
  std::size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const std::size_t*>(extra[1]);
    } else {
      refuse(CUDA_ERROR_INVALID_VALUE, "unknown entry in extra");
    }
  }
  if (buffer == nullptr || bytes < kernel.code->parameter_bytes()) {
    refuse(CUDA_ERROR_INVALID_VALUE, "extra has no buffer, or one that is too small");
  }
  std::vector<const void*> arguments;
  for (const auto& parameter : kernel.code->parameters()) {
    arguments.push_back(buffer + parameter.offset);
  }
  return arguments;
}

void read_attribute(const CUlaunchAttribute& attribute, KernelParameters& kernel) {
  switch (static_cast<int>(attribute.id)) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    // A permission to overlap, not an obligation: launches simply follow each other.
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& cluster = attribute.value.clusterDim;
      if (cluster.x * cluster.y * cluster.z != 1) {
        refuse(CUDA_ERROR_NOT_SUPPORTED, "the simulated device has no clusters");
      }
      kernel.cluster = attribute.value;
      return;
    }
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      kernel.cooperative = attribute.value.cooperative;
      return;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      kernel.priority = attribute.value.priority;
      return;
    default:
      refuse(CUDA_ERROR_NOT_SUPPORTED, "a launch attribute that is not simulated");
  }
}

class CallbackWork {
 public:
  CallbackWork(CUstream stream, CUstreamCallback callback, void* data)
      : stream_(stream), callback_(callback), data_(data) {}
  static void CUDA_CB run(void* self) {
    const std::unique_ptr<CallbackWork> own(static_cast<CallbackWork*>(self));
    own->callback_(own->stream_, CUDA_SUCCESS, own->data_);
  }

 private:
  CUstream stream_;
  CUstreamCallback callback_;
  void* data_;
};

CUDA_KERNEL_NODE_PARAMS_v2 kernel_parameters(const CUlaunchConfig& config, CUfunction function,
                                             void** arguments, void** extra) {
  CUDA_KERNEL_NODE_PARAMS_v2 launch{};
  launch.func = function;
  launch.gridDimX = config.gridDimX;
  launch.gridDimY = config.gridDimY;
  launch.gridDimZ = config.gridDimZ;
  launch.blockDimX = config.blockDimX;
  launch.blockDimY = config.blockDimY;
  launch.blockDimZ = config.blockDimZ;
  launch.sharedMemBytes = config.sharedMemBytes;
  launch.kernelParams = arguments;
  launch.extra = extra;
  return launch;
}

void launch(const CUlaunchConfig& config, CUfunction function, void** arguments, void** extra,
            const char* name) {
  CUstream_st& on = stream_of(config.hStream);
  if (live(function).module->context != on.context) {
    refuse(CUDA_ERROR_INVALID_HANDLE, "function and stream are of two contexts");
  }
  enqueue(on,
          make_kernel(kernel_parameters(config, function, arguments, extra), config.attrs,
                      config.numAttrs),
          name);
}

}  // namespace

void enqueue(CUstream_st& stream, std::shared_ptr<const SimWork> work, const char* name) {
  hostrt::driver::submit(*stream.object, std::move(work), name, [&](hostrt::WorkPtr ready) {
    wait_for_room(*stream.object);
    stream.object->enqueue(std::move(ready));
  });
}

std::shared_ptr<const SimWork> make_kernel(const CUDA_KERNEL_NODE_PARAMS_v2& launch,
                                           const CUlaunchAttribute* attributes, unsigned count) {
  CUfunc_st& function = live(launch.func);
  lockstep_kernel& kernel = *function.kernel;
  KernelParameters parameters;
  for (unsigned i = 0; i < count; ++i) read_attribute(attributes[i], parameters);
  std::vector<const void*> unpacked;
  const void* const* arguments = launch.kernelParams;
  if (launch.extra != nullptr) {
    if (arguments != nullptr) refuse(CUDA_ERROR_INVALID_VALUE, "kernelParams and extra");
    unpacked = unpack(launch.extra, kernel);
    arguments = unpacked.data();
  }
  lockstep_launch_desc desc{};
  desc.struct_size = sizeof desc;
  desc.kernel = &kernel;
  desc.grid = {launch.gridDimX, launch.gridDimY, launch.gridDimZ};
  desc.block = {launch.blockDimX, launch.blockDimY, launch.blockDimZ};
  desc.shared_bytes = launch.sharedMemBytes;
  desc.arguments = arguments;
  desc.argument_count = static_cast<std::uint32_t>(kernel.code->parameters().size());
  hostrt::WorkPtr inner = hostrt::make_kernel_work(kernel.module->device(), kernel, desc);
  const bool one_block = std::uint64_t{desc.grid.x} * desc.grid.y * desc.grid.z == 1;
  if (parameters.cooperative != 0 && !one_block) {
    refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "only one block is certain to be resident");
  }
  parameters.launch = launch;
  parameters.launch.extra = nullptr;
  const lockstep_record record = inner->record();
  parameters.launch.kernelParams =
      desc.argument_count == 0 ? nullptr : const_cast<void**>(record.of.kernel.arguments);
  return std::make_shared<const SimWork>(function.module->context, CU_GRAPH_NODE_TYPE_KERNEL,
                                         std::move(inner), parameters);
}

std::shared_ptr<const SimWork> make_host(CUctx_st& context, const CUDA_HOST_NODE_PARAMS& params) {
  return std::make_shared<const SimWork>(
      &context, CU_GRAPH_NODE_TYPE_HOST,
      hostrt::driver::make_host_work(context.device, params.fn, params.userData), params);
}

}  // namespace cuda_sim

using namespace cuda_sim;

CUDA_SIM_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            CUstream stream, void** arguments, void** extra) {
  return call("cuLaunchKernel", [&] {
    const CUlaunchConfig config{grid_x,  grid_y, grid_z, block_x, block_y,
                                block_z, shared, stream, nullptr, 0};
    launch(config, function, arguments, extra, "cuLaunchKernel");
  });
}
CUDA_SIM_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                              void** extra) {
  return call("cuLaunchKernelEx", [&] {
    require(config);
    if (config->numAttrs > 0) require(config->attrs);
    launch(*config, function, arguments, extra, "cuLaunchKernelEx");
  });
}
CUDA_SIM_API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared, CUstream stream,
                                       void** arguments) {
  return call("cuLaunchCooperativeKernel", [&] {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    const CUlaunchConfig config{grid_x,  grid_y, grid_z, block_x,      block_y,
                                block_z, shared, stream, &cooperative, 1};
    launch(config, function, arguments, nullptr, "cuLaunchCooperativeKernel");
  });
}
CUDA_SIM_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return call("cuLaunchHostFunc", [&] {
    CUstream_st& on = stream_of(stream);
    enqueue(on, make_host(*on.context, {function, data}), "cuLaunchHostFunc");
  });
}
CUDA_SIM_API cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                                 unsigned flags) {
  return call("cuStreamAddCallback", [&] {
    CUstream_st& on = stream_of(stream);
    if (callback == nullptr || flags != 0) refuse(CUDA_ERROR_INVALID_VALUE, "null, or flags");
    on.context->device.rules().check_not_capturing(on.object->capture(), "cuStreamAddCallback",
                                                   "use a host function");
    auto work = std::make_unique<CallbackWork>(stream, callback, data);
    enqueue(on, make_host(*on.context, {&CallbackWork::run, work.get()}), "cuStreamAddCallback");
    work.release();
  });
}
