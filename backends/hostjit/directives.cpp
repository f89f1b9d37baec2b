// SPDX-License-Identifier: Apache-2.0
#include "directives.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace lockstep::hostjit {
namespace {

// `#ifndef X // why` → `ifndef`, `X`.
std::pair<std::string_view, std::string_view> words_of(std::string_view directive) {
  const auto next = [&directive] {
    directive.remove_prefix(std::min(directive.find_first_not_of("# \t"), directive.size()));
    const std::size_t end = std::min(directive.find_first_of(" \t\r\n/(\"<!"), directive.size());
    const std::string_view word = directive.substr(0, end);
    directive.remove_prefix(end);
    return word;
  };
  const std::string_view keyword = next();
  return {keyword, next()};
}

// What is included, with what opens it: `<mma.h>`, `"mma.h"`; empty for other directives.
std::string_view included(std::string_view directive) {
  if (words_of(directive).first != "include") return {};
  return directive.substr(std::min(directive.find_first_of("<\""), directive.size()));
}

bool begins_with_any(std::string_view header, std::initializer_list<std::string_view> names) {
  if (header.empty()) return false;
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return header.substr(1).starts_with(name); });
}

}  // namespace

bool includes_what_is_provided(std::string_view directive) {
  const std::string_view header = included(directive);
  for (const char* name : {"cuda_runtime.h", "cuda_runtime_api.h", "cuda.h",
                           "device_launch_parameters.h", "device_functions.h", "vector_types.h",
                           "vector_functions.h", "math_functions.h", "hip/hip_runtime.h"}) {
    if (header.starts_with("<" + std::string(name) + ">") ||
        header.starts_with("\"" + std::string(name) + "\""))
      return true;
  }
  return false;
}

std::string why_not_included(std::string_view directive) {
  const std::string_view header = included(directive);
  if (begins_with_any(header, {"cuda_fp16", "cuda_bf16", "hip/hip_fp16", "hip/hip_bf"})) {
    return "vendor 16-bit types do not exist on the host; include <lockstep/kernel.h> and use "
           "lockstep::half or lockstep::bfloat16";
  }
  if (begins_with_any(header, {"cooperative_groups", "hip/hip_cooperative_groups"})) {
    return "the host backend has no cooperative groups; use __syncthreads(), or run this kernel on "
           "a GPU";
  }
  if (begins_with_any(header, {"mma.h", "cuda/pipeline", "cuda/barrier"})) {
    return "the host backend has no tensor cores and asynchronous copies; run this kernel on a GPU";
  }
  return {};
}

void Conditions::pass(std::string_view directive, std::string_view next) {
  const auto [keyword, word] = words_of(directive);
  if (keyword == "if" || keyword == "ifdef" || keyword == "ifndef") {
    const bool guard = keyword == "ifndef" && !word.empty() &&
                       words_of(next) == std::pair{std::string_view("define"), word};
    open_.push_back(!guard);
  } else if (keyword.starts_with("el") && !open_.empty()) {
    open_.back() = true;
  } else if (keyword == "endif" && !open_.empty()) {
    open_.pop_back();
  }
}

bool Conditions::may_leave_out() const {
  return std::find(open_.begin(), open_.end(), true) != open_.end();
}

}  // namespace lockstep::hostjit
