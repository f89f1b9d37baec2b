// SPDX-License-Identifier: Apache-2.0
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <memory>
#include <variant>
#include <vector>

#include "host/work.h"

namespace cuda_sim {

namespace hostrt = lockstep::hostrt;

[[noreturn]] void refuse(CUresult code, const char* why);

struct KernelParameters {
  CUDA_KERNEL_NODE_PARAMS_v2 launch{};  // kernelParams: of the work, null without parameters
  CUlaunchAttributeValue cluster{};
  int cooperative = 0;
  int priority = 0;
};
// What cuGraph*NodeGetParams answers; a kind without parameters has none.
using NodeParameters = std::variant<std::monostate, KernelParameters, CUDA_MEMCPY3D,
                                    CUDA_MEMSET_NODE_PARAMS, CUDA_HOST_NODE_PARAMS>;

// An operation of backends/host with what the driver remembers of it: type and parameters of the
// node it is or would be. Runs it late, or not at all, where faults are injected.
class SimWork final : public hostrt::Work {
 public:
  SimWork(CUcontext context, CUgraphNodeType type, hostrt::WorkPtr inner,
          NodeParameters parameters);

  hostrt::FailurePtr run() const noexcept override;
  std::uint32_t node_kind() const noexcept override { return inner_->node_kind(); }
  lockstep_record record() const override { return inner_->record(); }
  bool any_thread() const noexcept override { return inner_->any_thread(); }

  CUgraphNodeType type() const noexcept { return type_; }
  const NodeParameters& parameters() const noexcept { return parameters_; }
  const hostrt::Work& inner() const noexcept { return *inner_; }
  CUcontext context() const noexcept { return context_; }

 private:
  const CUcontext context_;
  const CUgraphNodeType type_;
  const hostrt::WorkPtr inner_;
  const NodeParameters parameters_;
};

}  // namespace cuda_sim
