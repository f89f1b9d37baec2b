// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hostjit/hostjit.h>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::hostjit::testing {

// Compiles and loads; a failure to compile fails the test with the compiler's words.
inline std::shared_ptr<Module> build(const std::string& source,
                                     const std::vector<std::string>& kernels,
                                     const std::vector<std::string>& options = {}) {
  CompileRequest request;
  request.source = source;
  request.name_expressions = kernels;
  request.options = options;
  return Module::load_file(compile(request).path);
}

// Runs a whole grid; the arguments are taken by address, as a launch does.
template <class... Arguments>
RunStatus run(const Kernel* kernel, Dim3 grid, Dim3 block, std::size_t shared,
              Arguments... arguments) {
  if (kernel == nullptr) {
    ADD_FAILURE() << "no such kernel";
    return {};
  }
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  return kernel->run_blocks(0, blocks, grid, block, shared, pointers);
}

// The error that compiling raises; a source that compiles fails the test.
inline Error compile_error(const CompileRequest& request) {
  try {
    compile(request);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "compiled, but should not have";
  return Error(ErrorCode::kBadImage, "");
}
inline Error compile_error(const std::string& source) {
  CompileRequest request;
  request.source = source;
  request.source_name = "user.cu";
  request.discover_kernels = true;
  return compile_error(request);
}

}  // namespace lockstep::hostjit::testing
