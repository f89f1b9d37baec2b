// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
#include <nvrtc.h>
#pragma GCC visibility pop

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hostjit/hostjit.h"
#include "image.h"

// A simulated NVRTC: compiles kernels by hostjit to machine code of the host, and calls it a cubin.
namespace hostjit = lockstep::hostjit;

struct _nvrtcProgram {
  hostjit::CompileRequest request;
  std::string log;
  std::vector<char> cubin;
  std::map<std::string, std::string> lowered;  // by name expression
};

namespace {

// A minor version that no real one has: caches of compiled kernels keep the two apart by it.
constexpr int kMajor = 13;
constexpr int kMinor = 99;
constexpr int kArchitecture = 90;
constexpr std::uint32_t kWarpSize = 32;  // what the simulated driver says of its devices

constexpr const char* kErrorNames[] = {
    "NVRTC_SUCCESS",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM",
    "NVRTC_ERROR_INVALID_OPTION",
    "NVRTC_ERROR_COMPILATION",
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "NVRTC_ERROR_INTERNAL_ERROR",
};

nvrtcResult result_of(hostjit::ErrorCode code) {
  switch (code) {
    case hostjit::ErrorCode::kInvalidOption:
      return NVRTC_ERROR_INVALID_OPTION;
    case hostjit::ErrorCode::kCompileFailed:
    case hostjit::ErrorCode::kNoCompiler:
    case hostjit::ErrorCode::kTimeout:
      return NVRTC_ERROR_COMPILATION;
    default:
      return NVRTC_ERROR_INTERNAL_ERROR;
  }
}

// `&f` and `f` are one; blanks do not matter.
std::string plain(std::string_view expression) {
  std::string name;
  for (const char c : expression) {
    if (c != ' ' && !(c == '&' && name.empty())) name += c;
  }
  return name;
}

void build(_nvrtcProgram& program) {
  const hostjit::CompiledImage compiled = hostjit::compile(program.request);
  program.log = compiled.log;
  const std::vector<std::byte> bytes = compiled.read();
  const auto module = hostjit::Module::load(bytes);
  for (const hostjit::Kernel& kernel : module->kernels()) {
    program.lowered[plain(kernel.name_expression())] = kernel.name();
  }
  program.cubin = cuda_sim::wrap_image(bytes);
}

}  // namespace

#define NVRTC_SIM_API extern "C" __attribute__((visibility("default")))

NVRTC_SIM_API const char* nvrtcGetErrorString(nvrtcResult result) {
  const auto index = static_cast<std::size_t>(result);
  return index < std::size(kErrorNames) ? kErrorNames[index] : "NVRTC_ERROR unknown";
}
NVRTC_SIM_API nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = kMajor;
  *minor = kMinor;
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *count = 1;
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  if (architectures == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  architectures[0] = kArchitecture;
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                                             const char* name, int count, const char* const* texts,
                                             const char* const* names) {
  if (program == nullptr || source == nullptr || count < 0) return NVRTC_ERROR_INVALID_INPUT;
  auto made = std::make_unique<_nvrtcProgram>();
  made->request.source = source;
  if (name != nullptr) made->request.source_name = name;
  made->request.discover_kernels = true;
  made->request.warp_size = kWarpSize;
  for (int i = 0; i < count; ++i) made->request.headers.push_back({names[i], texts[i]});
  *program = made.release();
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program == nullptr || *program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (!program->cubin.empty()) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  program->request.name_expressions.emplace_back(expression);
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                              const char* const* options) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  program->request.options.assign(options, options + count);
  try {
    build(*program);
    return NVRTC_SUCCESS;
  } catch (const hostjit::Error& error) {
    program->log = error.log().empty() ? error.what() : error.log();
    return result_of(error.code());
  } catch (const std::bad_alloc&) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    program->log = error.what();
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
}
NVRTC_SIM_API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* size) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (log == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression,
                                              const char** lowered) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (expression == nullptr || lowered == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (program->cubin.empty()) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const auto found = program->lowered.find(plain(expression));
  if (found == program->lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *lowered = found->second.c_str();
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (size == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *size = program->cubin.size();
  return NVRTC_SUCCESS;
}
NVRTC_SIM_API nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (cubin == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::copy(program->cubin.begin(), program->cubin.end(), cubin);
  return NVRTC_SUCCESS;
}
