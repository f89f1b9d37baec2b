// SPDX-License-Identifier: Apache-2.0
#include "hiprtc.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "../gpu/error.h"
#include "../gpu/object_source.h"
#include "../gpu/state.h"
#include "code_object.h"
#include "library.h"

namespace lockstep::hip {
namespace {

enum : int { kSuccess = 0, kOutOfMemory = 1, kInvalidOption = 5, kCompilationFailed = 6 };

std::string first_error_line(const std::string& log) {
  std::size_t begin = 0;
  while (begin < log.size()) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    std::string line = log.substr(begin, end - begin);
    if (line.find("error") != std::string::npos) return line;
    begin = end + 1;
  }
  return log.substr(0, log.find('\n'));
}

std::string file_of(int major) { return "libhiprtc.so." + std::to_string(major); }

// The major version in a library's file name; 0 when it has none.
int major_of_name(const std::string& name) {
  const std::size_t at = name.rfind(".so.");
  return at == std::string::npos ? 0 : std::atoi(name.c_str() + at + 4);
}

gpu::ObjectSource source_of(const lockstep_module_desc& desc) {
  gpu::ObjectSource source;
  source.source_name = desc.source_name != nullptr ? desc.source_name : "kernel.cu";
  source.source.assign(static_cast<const char*>(desc.data), desc.bytes);
  for (std::uint32_t index = 0; index < desc.kernel_count; ++index) {
    source.kernels.emplace_back(desc.kernels[index]);
  }
  bool own_kernel_header = true;
  for (std::uint32_t index = 0; index < desc.header_count; ++index) {
    source.headers.emplace_back(desc.headers[index].name, desc.headers[index].text);
    if (source.headers.back().first == "lockstep/kernel.h") own_kernel_header = false;
  }
  if (own_kernel_header) source.headers.emplace_back("lockstep/kernel.h", kKernelHeader);
  return source;
}

}  // namespace

void Hiprtc::set_runtime(const gpu::DynamicLibrary* runtime, const Version& version,
                         std::string path) {
  runtime_ = runtime;
  version_ = version;
  runtime_path_ = std::move(path);
}

bool Hiprtc::accept_locked(const gpu::DynamicLibrary& file) {
  const auto load = [&](const char* name, auto* to) {
    *to = reinterpret_cast<std::remove_pointer_t<decltype(to)>>(file.symbol(name));
    return *to != nullptr;
  };
  return load("hiprtcCreateProgram", &call_.create) &&
         load("hiprtcDestroyProgram", &call_.destroy) &&
         load("hiprtcCompileProgram", &call_.compile) &&
         load("hiprtcGetCodeSize", &call_.code_size) && load("hiprtcGetCode", &call_.code) &&
         load("hiprtcGetProgramLogSize", &call_.log_size) &&
         load("hiprtcGetProgramLog", &call_.log) &&
         load("hiprtcAddNameExpression", &call_.add_name) &&
         load("hiprtcGetLoweredName", &call_.lowered_name) &&
         load("hiprtcGetErrorString", &call_.error_string);
}

bool Hiprtc::find_locked() {
  if (searched_) return found_;
  searched_ = true;
  if (runtime_ == nullptr || !runtime_->is_open()) {
    why_not_ = "there is no HIP runtime";
    return false;
  }
  const char* named = secure_getenv("LOCKSTEP_HIPRTC_LIBRARY");
  const std::string file = file_of(version_.major);
  std::vector<std::string> candidates;
  if (named != nullptr && *named != '\0') {
    const int major = major_of_name(named);
    if (major != 0 && major != version_.major) {
      why_not_ = std::string(named) + " is of ROCm " + std::to_string(major) + ", the runtime of " +
                 version_.text() + ": the two must be of one major version";
      return false;
    }
    candidates.emplace_back(named);
  } else {
    if (!runtime_path_.empty()) {
      candidates.push_back(std::filesystem::path(runtime_path_).parent_path() / file);
    }
    for (const std::string& candidate : rocm_candidates(file)) candidates.push_back(candidate);
  }
  for (const std::string& candidate : candidates) {
    if (candidate.front() == '/' && access(candidate.c_str(), R_OK) != 0) continue;
    if (!file_.open_one(candidate)) continue;
    found_ = accept_locked(file_);
    if (!found_) why_not_ = candidate + " is no hipRTC: functions are missing";
    break;
  }
  if (found_) {
    description_ = file_.name();
  } else if (named == nullptr || *named == '\0') {
    found_ = !file_.is_open() && accept_locked(*runtime_);
    if (found_) description_ = "in " + runtime_->name();
  }
  if (!found_ && why_not_.empty()) {
    why_not_ = "no hipRTC of ROCm " + std::to_string(version_.major) +
               " was found, neither as a library (" + file_.tried() + ") nor in " +
               runtime_->name() + "; LOCKSTEP_HIPRTC_LIBRARY may name one";
  }
  return found_;
}

bool Hiprtc::available(std::string* why) {
  const std::lock_guard lock(mutex_);
  const bool found = find_locked();
  if (!found && why != nullptr) *why = why_not_;
  return found;
}

std::string Hiprtc::description() {
  const std::lock_guard lock(mutex_);
  return description_;
}

lockstep_code Hiprtc::run(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                          gpu::CompiledCode* code, std::string* log, lockstep_error* error) {
  const gpu::ObjectSource source = source_of(desc);
  std::vector<const char*> texts, names, arguments;
  for (const auto& [name, text] : source.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const auto failed = [&](const char* call, int result, const std::string& detail) {
    const lockstep_code kind = result == kInvalidOption ? LOCKSTEP_E_INVALID_ARGUMENT
                               : result == kOutOfMemory ? LOCKSTEP_E_OUT_OF_MEMORY
                                                        : LOCKSTEP_E_COMPILATION_FAILED;
    const char* text = call_.error_string(result);
    gpu::fail(error, kind, call,
              source.source_name + ": " + (text != nullptr ? text : "failed") +
                  (detail.empty() ? "" : ": " + detail));
    if (error != nullptr) error->native_code = result;
    return kind;
  };
  struct Holder {
    int (*destroy)(Program*);
    Program handle = nullptr;
    ~Holder() {
      if (handle != nullptr) destroy(&handle);
    }
  } program{call_.destroy};
  const std::lock_guard one_at_a_time(compiling_);
  // Compilers of some releases write the source to a file of another name, and name that one.
  const std::string text = "#line 1 \"" + source.source_name + "\"\n" + source.source;
  int result = call_.create(&program.handle, text.c_str(), source.source_name.c_str(),
                            static_cast<int>(names.size()), texts.data(), names.data());
  if (result != kSuccess) return failed("hiprtcCreateProgram", result, "");
  for (const std::string& kernel : source.kernels) {
    result = call_.add_name(program.handle, kernel.c_str());
    if (result != kSuccess) return failed("hiprtcAddNameExpression", result, kernel);
  }
  result = call_.compile(program.handle, static_cast<int>(arguments.size()), arguments.data());
  std::size_t log_size = 0;
  if (call_.log_size(program.handle, &log_size) == kSuccess && log_size > 1) {
    log->resize(log_size);
    if (call_.log(program.handle, log->data()) != kSuccess) log->clear();
    while (!log->empty() && log->back() == '\0') log->pop_back();
  }
  if (result != kSuccess) {
    const lockstep_code kind = failed("hiprtcCompileProgram", result, first_error_line(*log));
    gpu::give_log(error, *log);
    return kind;
  }
  for (const std::string& kernel : source.kernels) {
    const char* lowered = nullptr;
    result = call_.lowered_name(program.handle, kernel.c_str(), &lowered);
    if (result != kSuccess || lowered == nullptr) {
      return failed("hiprtcGetLoweredName", result,
                    "is \"" + kernel + "\" a kernel of this source?");
    }
    code->lowered_names.emplace_back(kernel, lowered);
  }
  std::size_t size = 0;
  result = call_.code_size(program.handle, &size);
  if (result == kSuccess && size > 0) {
    code->code.resize(size);
    result = call_.code(program.handle, code->code.data());
  }
  // Some releases call it success when an option kept them from making code.
  if (result != kSuccess || size == 0) {
    return failed("hiprtcGetCode", result != kSuccess ? result : kCompilationFailed,
                  "no machine code was made");
  }
  return LOCKSTEP_OK;
}

void Hiprtc::keep_source(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                         const gpu::CompiledCode& code) {
  const std::string folder = cache_.folder();
  const std::string_view object(code.code.data(), code.code.size());
  std::error_code ignored;  // then it is written
  if (std::filesystem::exists(folder + "/" + gpu::object_file_name(object), ignored)) return;
  gpu::ObjectSource source = source_of(desc);
  source.options = options;
  source.lowered_names = code.lowered_names;
  std::string problem;
  if (!gpu::write_object_source(folder, object, source, &problem)) {
    gpu::log(LOCKSTEP_LOG_INFO, ("sources of compiled kernels are not kept: " + problem).c_str());
  }
}

lockstep_code Hiprtc::compile(const lockstep_module_desc& desc, const std::string& architecture,
                              gpu::CompiledCode* code, lockstep_error* error) {
  std::string why;
  if (!available(&why)) {
    return gpu::fail(error, LOCKSTEP_E_NOT_SUPPORTED, "dlopen",
                     "source cannot be compiled here: " + why);
  }
  const bool cuda = is_cuda_architecture(architecture);
  Target target;
  if (!cuda && (!parse_target(architecture, &target) || !compiler_knows(target.base, version_))) {
    return gpu::fail(error, LOCKSTEP_E_NOT_SUPPORTED, "hiprtcCompileProgram",
                     "hipRTC of ROCm " + version_.text() + " is not known to make code for " +
                         architecture + " and would end the process if it does not (it does for " +
                         known_architectures(version_) +
                         "): give a code object, or install a newer release");
  }
  std::vector<std::string> options;
  if (!compiler_options(desc, architecture, &options, &why)) {
    return gpu::fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "hiprtcCompileProgram", why);
  }
  const std::string compiler = "hiprtc " + version_.text() + " " + kKernelHeader;
  const std::string key = gpu::CompileCache::key(desc, compiler, options);
  if (auto kept = cache_.find(key)) {
    *code = std::move(*kept);
    keep_source(desc, options, *code);
    return LOCKSTEP_OK;
  }
  std::string log;
  if (const lockstep_code failed = run(desc, options, code, &log, error)) return failed;
  gpu::give_log(error, log);  // warnings
  CodeObject object;
  if (!cuda && (!read_code_object({code->code.data(), code->code.size()}, &object, &why) ||
                !runs_on(object.target, target))) {
    if (why.empty()) why = "it is for " + object.target.text();
    return gpu::fail(
        error, LOCKSTEP_E_COMPILATION_FAILED, "hiprtcGetCode",
        "hipRTC made code that this device (" + architecture + ") does not run: " + why);
  }
  keep_source(desc, options, *code);
  std::string problem;
  if (!cache_.store(key, *code, {static_cast<const char*>(desc.data), desc.bytes}, &problem)) {
    gpu::log(LOCKSTEP_LOG_INFO, ("compiled kernels are not kept: " + problem).c_str());
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::hip
