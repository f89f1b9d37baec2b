// SPDX-License-Identifier: Apache-2.0
#include "program_hip.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include "gpu/compile_cache.h"
#include "gpu/object_source.h"

namespace hsa_sim_program {
namespace {

struct Libraries {
  void* runtime = nullptr;
  void* compiler = nullptr;  // null: in the runtime
};

const Libraries& libraries() {
  static const Libraries found = [] {
    Libraries opened;
    for (const char* major : {"7", "6", "5"}) {
      const std::string name = std::string("libamdhip64.so.") + major;
      opened.runtime = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (opened.runtime == nullptr) continue;
      opened.compiler =
          dlopen((std::string("libhiprtc.so.") + major).c_str(), RTLD_NOW | RTLD_LOCAL);
      break;
    }
    if (opened.runtime == nullptr) {
      std::fprintf(stderr, "libamdhip64.so.7, .6 and .5: not found\n");
      std::exit(4);
    }
    return opened;
  }();
  return found;
}

void* find(const char* name) {
  void* found = nullptr;
  if (libraries().compiler != nullptr) found = dlsym(libraries().compiler, name);
  return found != nullptr ? found : dlsym(libraries().runtime, name);
}

struct Object {
  std::string code;
  std::vector<std::pair<std::string, std::string>> lowered;
};

std::string architecture() {
  // hipDeviceProp_t is larger than this in no release; gcnArchName lies at an offset of its own.
  std::vector<char> properties(8192);
  const bool later = has("hipGetDevicePropertiesR0600");
  must(later ? "hipGetDevicePropertiesR0600" : "hipGetDeviceProperties",
       static_cast<void*>(properties.data()), 0);
  return properties.data() + (later ? 1160 : 396);
}

Object build(const std::string& source, const std::vector<std::string>& expressions) {
  void* program = nullptr;
  must("hiprtcCreateProgram", &program, source.c_str(), "program.cu", 0,
       static_cast<const char**>(nullptr), static_cast<const char**>(nullptr));
  for (const std::string& expression : expressions) {
    must("hiprtcAddNameExpression", program, expression.c_str());
  }
  const std::string option = "--offload-arch=" + architecture();
  const char* options[] = {option.c_str()};
  must("hiprtcCompileProgram", program, 1, static_cast<const char**>(options));
  std::size_t bytes = 0;
  must("hiprtcGetCodeSize", program, &bytes);
  Object object;
  object.code.resize(bytes);
  must("hiprtcGetCode", program, object.code.data());
  for (const std::string& expression : expressions) {
    const char* lowered = nullptr;
    must("hiprtcGetLoweredName", program, expression.c_str(), &lowered);
    object.lowered.emplace_back(expression, lowered);
  }
  must("hiprtcDestroyProgram", &program);
  return object;
}

Compiled load(const Object& object) {
  Compiled compiled;
  compiled.lowered = object.lowered;
  must("hipModuleLoadData", &compiled.module, static_cast<const void*>(object.code.data()));
  return compiled;
}

}  // namespace

void* symbol(const char* name) {
  void* const found = find(name);
  expect(found != nullptr, std::string(name) + " is not in this release");
  return found;
}
bool has(const char* name) { return find(name) != nullptr; }

int runtime_version() {
  int version = 0;
  must("hipRuntimeGetVersion", &version);
  return version;
}

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not as expected: %s\n", what.c_str());
  std::fflush(nullptr);
  _Exit(1);
}

Stream make_stream() {
  Stream stream = nullptr;
  must("hipStreamCreateWithFlags", &stream, 1U);
  return stream;
}

Function Compiled::function(const std::string& name) const {
  std::string symbol_name = name;
  for (const auto& [expression, symbol] : lowered) {
    if (expression == name) symbol_name = symbol;
  }
  Function found = nullptr;
  must("hipModuleGetFunction", &found, module, symbol_name.c_str());
  return found;
}

Compiled compile(const std::string& source, const std::vector<std::string>& expressions) {
  const Object object = build(source, expressions);
  std::string problem;
  const bool kept = lockstep::gpu::write_object_source(
      lockstep::gpu::CompileCache("hip").folder(), object.code,
      {"program.cu", source, {}, expressions, {}, object.lowered}, &problem);
  expect(kept, problem);
  return load(object);
}

Compiled compile_only(const std::string& source, const std::vector<std::string>& expressions) {
  return load(build(source, expressions));
}

void launch(Function function, unsigned grid, unsigned block, unsigned shared, Stream stream,
            std::vector<void*> arguments) {
  must("hipModuleLaunchKernel", function, grid, 1U, 1U, block, 1U, 1U, shared, stream,
       arguments.data(), static_cast<void**>(nullptr));
}

}  // namespace hsa_sim_program
