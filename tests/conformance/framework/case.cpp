// SPDX-License-Identifier: Apache-2.0
#include "framework/case.h"

#include <lockstep/backend.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "conformance_kernels.embed.h"
#include "tiled_product_kernel.embed.h"

namespace conformance {
namespace {

std::vector<Case>& registry() {
  static std::vector<Case> cases;
  return cases;
}

/// Every kernel of kernels.cu, so that one compilation a device serves all cases.
const std::vector<std::string> kKernels = {
    "saxpy",
    "fill_index",
    "add_constant<int>",
    "add_constant<float>",
    "scale<float, 3>",
    "spin_then_set",
    "dynamic_reverse",
    "static_reverse",
    "block_sum",
    "all_arguments",
    "record_index",
    "count_threads",
    "tiled_product",
    "atomics",
    "half_sum",
    "copy_words",
    "fail_assertion",
    "first_past_the_post",
    "read_constant",
};

}  // namespace

void Environment::require_kernels(const ls::Device& device) {
  if (device.attribute(LOCKSTEP_ATTR_COMPILES_SOURCE).value_or(0) == 0) {
    throw NotApplicable("the device compiles no source");
  }
}

ls::Kernel Environment::kernel(std::string_view expression, const ls::Device& device) const {
  require_kernels(device);
  static std::mutex mutex;
  static std::map<std::string, ls::Module>& modules =
      *new std::map<std::string, ls::Module>;  // outlives exit
  const std::lock_guard lock(mutex);
  auto found = modules.find(device.id());
  if (found == modules.end()) {
    found = modules
                .emplace(device.id(),
                         device.compile(std::string(conformance_kernels) + tiled_product_kernel,
                                        {.kernels = kKernels, .source_name = "kernels.cu"}))
                .first;
  }
  return found->second.kernel(expression);
}

void add_work_case(std::string name, std::function<Work(const Environment&)> make) {
  registry().push_back({std::move(name), std::move(make), nullptr});
}

void add_rule_case(std::string name, std::function<void(const Environment&)> run) {
  registry().push_back({std::move(name), nullptr, std::move(run)});
}

const std::vector<Case>& all_cases() {
  static const bool added = [] {
    add_memory_cases();
    add_copy_cases();
    add_set_cases();
    add_stream_cases();
    add_event_cases();
    add_kernel_cases();
    add_launch_limit_cases();
    add_capture_cases();
    add_capture_rule_cases();
    add_graph_cases();
    add_update_cases();
    add_trace_cases();
    add_device_cases();
    add_verify_cases();
    add_field_cases();
    std::sort(registry().begin(), registry().end(),
              [](const Case& a, const Case& b) { return a.name < b.name; });
    return true;
  }();
  (void)added;
  return registry();
}

}  // namespace conformance
