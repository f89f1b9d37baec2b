// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "handles.h"
#include "host/transfer.h"

// How operations get onto streams and into graphs.
namespace cuda_sim {

// Blocks while the stream has as much work as a GPU's queue holds.
void wait_for_room(hostrt::Stream& stream);

// Captures the work, or enqueues it; `name` names the call.
void enqueue(CUstream_st& stream, std::shared_ptr<const SimWork> work, const char* name);

// Launches, as streams and graph nodes take them. Checks limits; copies the arguments.
std::shared_ptr<const SimWork> make_kernel(const CUDA_KERNEL_NODE_PARAMS_v2& launch,
                                           const CUlaunchAttribute* attributes, unsigned count);
std::shared_ptr<const SimWork> make_host(CUctx_st& context, const CUDA_HOST_NODE_PARAMS& params);

// Copies and sets; a copy or set that is empty has no work.
struct Copy {
  std::shared_ptr<const SimWork> work;
  lockstep_record record{};
  bool pageable_source = false;
  bool pageable_destination = false;
};
Copy make_copy(CUctx_st& context, const CUDA_MEMCPY3D& native);
struct Set {
  std::shared_ptr<const SimWork> work;
  lockstep_record record{};
};
Set make_set(CUctx_st& context, const CUDA_MEMSET_NODE_PARAMS& native);

}  // namespace cuda_sim
