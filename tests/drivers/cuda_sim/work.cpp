// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "faults.h"
#include "handles.h"

namespace cuda_sim {
namespace {

hostrt::FailurePtr failure_of(int code) {
  return std::make_shared<const hostrt::Failure>(
      hostrt::Failure{static_cast<hostrt::Native>(code), "the context is lost"});
}

}  // namespace

void refuse(CUresult code, const char* why) {
  throw hostrt::Error(static_cast<hostrt::Native>(code), why);
}

SimWork::SimWork(CUcontext context, CUgraphNodeType type, hostrt::WorkPtr inner,
                 NodeParameters parameters)
    : context_(context),
      type_(type),
      inner_(std::move(inner)),
      parameters_(std::move(parameters)) {}

hostrt::FailurePtr SimWork::run() const noexcept {
  const auto delay = std::chrono::microseconds(faults().delay_us());
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  if (const int lost = context_->lost.load(std::memory_order_acquire)) return failure_of(lost);
  hostrt::FailurePtr failure;
  if (type_ == CU_GRAPH_NODE_TYPE_KERNEL && faults().next_kernel_is_lost()) {
    failure = failure_of(CUDA_ERROR_LAUNCH_FAILED);
  } else {
    failure = inner_->run();
  }
  // As on a GPU, a kernel that fails takes its whole context along.
  if (failure != nullptr) {
    int none = 0;
    context_->lost.compare_exchange_strong(none, static_cast<int>(failure->native));
  }
  return failure;
}

}  // namespace cuda_sim
