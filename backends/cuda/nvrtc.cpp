// SPDX-License-Identifier: Apache-2.0
#include "nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

#include "../gpu/error.h"
#include "../gpu/state.h"

namespace lockstep::cuda {
namespace {

bool has_option(const std::vector<std::string>& options,
                std::initializer_list<std::string_view> names) {
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return option == name ||
             (option.size() > name.size() && option.compare(0, name.size(), name) == 0 &&
              option[name.size()] == '=');
    });
  });
}

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

}  // namespace

bool Nvrtc::accept_locked() {
  const auto load = [&](const char* name, auto* to) {
    *to = reinterpret_cast<std::remove_pointer_t<decltype(to)>>(file_.symbol(name));
    return *to != nullptr;
  };
  const bool complete =
      load("nvrtcVersion", &call_.version) && load("nvrtcCreateProgram", &call_.create) &&
      load("nvrtcDestroyProgram", &call_.destroy) && load("nvrtcCompileProgram", &call_.compile) &&
      load("nvrtcGetCUBINSize", &call_.cubin_size) && load("nvrtcGetCUBIN", &call_.cubin) &&
      load("nvrtcGetProgramLogSize", &call_.log_size) && load("nvrtcGetProgramLog", &call_.log) &&
      load("nvrtcAddNameExpression", &call_.add_name) &&
      load("nvrtcGetLoweredName", &call_.lowered_name) &&
      load("nvrtcGetErrorString", &call_.error_string);
  load("nvrtcGetNumSupportedArchs", &call_.architecture_count);
  load("nvrtcGetSupportedArchs", &call_.architectures);
  if (!complete || call_.version(&major_, &minor_) != NVRTC_SUCCESS) {
    why_not_ = file_.name() + " is no NVRTC: functions are missing";
    return false;
  }
  if (driver_version_ > 0 && major_ > driver_version_ / 1000) {
    why_not_ = file_.name() + " is NVRTC " + std::to_string(major_) + "." + std::to_string(minor_) +
               ", whose code a driver for CUDA " + std::to_string(driver_version_ / 1000) + "." +
               std::to_string(driver_version_ % 1000 / 10) + " cannot run";
    return false;
  }
  Dl_info place{};
  if (dladdr(reinterpret_cast<void*>(call_.version), &place) != 0 && place.dli_fname != nullptr) {
    const std::filesystem::path beside =
        std::filesystem::path(place.dli_fname).parent_path().parent_path() / "include";
    std::error_code ignored;  // not there: then there are no toolkit headers to offer
    if (std::filesystem::exists(beside / "cuda_fp16.h", ignored)) include_folder_ = beside;
  }
  return true;
}

bool Nvrtc::find_locked() {
  if (searched_) return found_;
  searched_ = true;
  const char* named = secure_getenv("LOCKSTEP_NVRTC_LIBRARY");
  if (named != nullptr && *named != '\0') {
    found_ = file_.open_one(named) && accept_locked();
    if (!found_ && why_not_.empty()) why_not_ = file_.tried();
    return found_;
  }
  const int newest = driver_version_ > 0 ? driver_version_ / 1000 : 13;
  for (int major = newest; major >= 11 && !found_; --major) {
    for (const std::string& candidate : nvrtc_candidates(major)) {
      // Files are only tried where they are, so that the message names what the loader missed.
      if (candidate.front() == '/' && access(candidate.c_str(), R_OK) != 0) continue;
      if (!file_.open_one(candidate)) continue;
      found_ = accept_locked();
      if (found_) break;
      file_.close_if_unsuitable();
    }
  }
  if (!found_) {
    why_not_ = "no NVRTC of CUDA " + std::to_string(newest) +
               " or older was found beside a toolkit, in a Python environment or on the loader's "
               "path (" +
               file_.tried() + "); LOCKSTEP_NVRTC_LIBRARY may name one";
  }
  return found_;
}

bool Nvrtc::available(std::string* why) {
  std::lock_guard lock(mutex_);
  const bool found = find_locked();
  if (!found && why != nullptr) *why = why_not_;
  return found;
}

std::vector<std::string> Nvrtc::options_for(const lockstep_module_desc& desc,
                                            const std::string& architecture) const {
  std::vector<std::string> options;
  for (std::uint32_t index = 0; index < desc.option_count; ++index) {
    options.emplace_back(desc.options[index]);
  }
  if (!has_option(options, {"--gpu-architecture", "-arch"})) {
    options.push_back("--gpu-architecture=" + architecture);
  }
  if (!has_option(options, {"--std", "-std"})) options.emplace_back("--std=c++17");
  if (!has_option(options, {"--fmad", "-fmad", "--use_fast_math", "-use_fast_math"})) {
    options.emplace_back("--fmad=false");
  }
  return options;
}

bool Nvrtc::knows(const std::string& architecture, std::string* newest) const {
  int count = 0;
  if (call_.architecture_count == nullptr || call_.architectures == nullptr ||
      call_.architecture_count(&count) != NVRTC_SUCCESS || count <= 0) {
    return true;  // it will say so itself
  }
  std::vector<int> numbers(static_cast<std::size_t>(count));
  if (call_.architectures(numbers.data()) != NVRTC_SUCCESS) return true;
  *newest = "sm_" + std::to_string(*std::max_element(numbers.begin(), numbers.end()));
  return std::any_of(numbers.begin(), numbers.end(),
                     [&](int number) { return "sm_" + std::to_string(number) == architecture; });
}

lockstep_code Nvrtc::run(const lockstep_module_desc& desc, const std::vector<std::string>& options,
                         gpu::CompiledCode* code, std::string* log, lockstep_error* error) {
  const std::string source(static_cast<const char*>(desc.data), desc.bytes);
  std::vector<const char*> texts, names;
  bool own_kernel_header = true;
  for (std::uint32_t index = 0; index < desc.header_count; ++index) {
    names.push_back(desc.headers[index].name);
    texts.push_back(desc.headers[index].text);
    if (std::string_view(desc.headers[index].name) == "lockstep/kernel.h") {
      own_kernel_header = false;
    }
  }
  if (own_kernel_header) {
    names.push_back("lockstep/kernel.h");
    texts.push_back(kKernelHeader);
  }
  const char* source_name = desc.source_name != nullptr ? desc.source_name : "kernel.cu";
  const auto failed = [&](const char* call, nvrtcResult result, const std::string& detail) {
    const lockstep_code kind = result == NVRTC_ERROR_INVALID_OPTION ? LOCKSTEP_E_INVALID_ARGUMENT
                               : result == NVRTC_ERROR_OUT_OF_MEMORY
                                   ? LOCKSTEP_E_OUT_OF_MEMORY
                                   : LOCKSTEP_E_COMPILATION_FAILED;
    gpu::fail(error, kind, call,
              std::string(source_name) + ": " + call_.error_string(result) +
                  (detail.empty() ? "" : ": " + detail));
    if (error != nullptr) error->native_code = result;
    return kind;
  };
  struct Program {
    decltype(&nvrtcDestroyProgram) destroy;
    nvrtcProgram handle = nullptr;
    ~Program() {
      if (handle != nullptr) destroy(&handle);
    }
  } program{call_.destroy};
  nvrtcResult result = call_.create(&program.handle, source.c_str(), source_name,
                                    static_cast<int>(names.size()), texts.data(), names.data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", result, "");
  for (std::uint32_t index = 0; index < desc.kernel_count; ++index) {
    result = call_.add_name(program.handle, desc.kernels[index]);
    if (result != NVRTC_SUCCESS) {
      return failed("nvrtcAddNameExpression", result, desc.kernels[index]);
    }
  }
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const std::string include = "--include-path=" + include_folder_;
  if (!include_folder_.empty()) arguments.push_back(include.c_str());
  result = call_.compile(program.handle, static_cast<int>(arguments.size()), arguments.data());
  std::size_t log_size = 0;
  if (call_.log_size(program.handle, &log_size) == NVRTC_SUCCESS && log_size > 1) {
    log->resize(log_size);
    if (call_.log(program.handle, log->data()) != NVRTC_SUCCESS) log->clear();
    while (!log->empty() && log->back() == '\0') log->pop_back();
  }
  if (result != NVRTC_SUCCESS) {
    const lockstep_code kind = failed("nvrtcCompileProgram", result, first_error_line(*log));
    gpu::give_log(error, *log);
    return kind;
  }
  for (std::uint32_t index = 0; index < desc.kernel_count; ++index) {
    const char* lowered = nullptr;
    result = call_.lowered_name(program.handle, desc.kernels[index], &lowered);
    if (result != NVRTC_SUCCESS) {
      return failed("nvrtcGetLoweredName", result,
                    std::string("is \"") + desc.kernels[index] + "\" a kernel of this source?");
    }
    code->lowered_names.emplace_back(desc.kernels[index], lowered);
  }
  std::size_t size = 0;
  result = call_.cubin_size(program.handle, &size);
  if (result == NVRTC_SUCCESS && size > 0) {
    code->code.resize(size);
    result = call_.cubin(program.handle, code->code.data());
  }
  if (result != NVRTC_SUCCESS || size == 0) {
    return failed("nvrtcGetCUBIN", result != NVRTC_SUCCESS ? result : NVRTC_ERROR_COMPILATION,
                  "no machine code was made: --gpu-architecture has to name an sm_ architecture");
  }
  return LOCKSTEP_OK;
}

lockstep_code Nvrtc::compile(const lockstep_module_desc& desc, const std::string& architecture,
                             gpu::CompiledCode* code, lockstep_error* error) {
  std::string why;
  if (!available(&why)) {
    return gpu::fail(error, LOCKSTEP_E_NOT_SUPPORTED, "dlopen",
                     "source cannot be compiled here: " + why);
  }
  const std::vector<std::string> options = options_for(desc, architecture);
  if (std::string newest; has_option(options, {"--gpu-architecture=" + architecture}) &&
                          !knows(architecture, &newest)) {
    return gpu::fail(error, LOCKSTEP_E_NOT_SUPPORTED, "nvrtcGetSupportedArchs",
                     "NVRTC " + std::to_string(major_) + "." + std::to_string(minor_) +
                         " makes no code for " + architecture + " (the newest it knows is " +
                         newest + "): install a newer one");
  }
  const std::string compiler = "nvrtc " + std::to_string(major_) + "." + std::to_string(minor_) +
                               " " + include_folder_ + " " + kKernelHeader;
  const std::string key = gpu::CompileCache::key(desc, compiler, options);
  if (auto kept = cache_.find(key)) {
    *code = std::move(*kept);
    return LOCKSTEP_OK;
  }
  std::string log;
  if (const lockstep_code failed = run(desc, options, code, &log, error)) return failed;
  gpu::give_log(error, log);  // warnings
  std::string problem;
  if (!cache_.store(key, *code, {static_cast<const char*>(desc.data), desc.bytes}, &problem)) {
    gpu::log(LOCKSTEP_LOG_INFO, ("compiled kernels are not kept: " + problem).c_str());
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
