// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the few CUDA constructs that no macro can express into C++, line by line in place:
// `extern __shared__`, `static __shared__`, launch bounds and device variables. Marks what the host
// cannot do, and lists the kernels it sees.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hostjit {

// Something that the host cannot do. In the text an error with `marker` stands in its place: the
// preprocessor may leave the place out, so that only the compiler knows whether it is there.
struct Refusal {
  std::string marker;
  std::string message;  // `name:line:column: error: …`
};

struct RewrittenSource {
  std::string text;  // has the same lines as the source
  // Kernels defined outside templates and `#if`, qualified by their namespaces; overloaded ones
  // left out. An include guard is no `#if`.
  std::vector<std::string> kernels;
  // Names, without namespaces, of what is declared with __global__, and of all functions.
  std::set<std::string, std::less<>> global_names, function_names;
  // A macro stands for __global__, so that global_names may lack some.
  bool hides_global = false;
  std::vector<Refusal> refusals;
};

// `first_index` makes generated names unique when several texts end up in one translation unit.
RewrittenSource rewrite_source(std::string_view source, std::string_view name,
                               std::size_t first_index);

}  // namespace lockstep::hostjit
