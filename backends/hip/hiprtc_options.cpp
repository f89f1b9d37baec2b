// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "architecture.h"
#include "hiprtc.h"

namespace lockstep::hip {
namespace {

bool has_start(const std::vector<std::string>& options, std::string_view start) {
  return std::any_of(options.begin(), options.end(),
                     [&](const std::string& option) { return option.starts_with(start); });
}

// NVRTC's way of saying what clang says otherwise; the option itself when it is none of them.
std::string translated(std::string_view option) {
  const auto value_of = [&](std::string_view name) -> std::string_view {
    for (const std::string_view dashes : {"--", "-"}) {
      const std::size_t length = dashes.size() + name.size();
      if (option.size() > length && option.starts_with(dashes) &&
          option.substr(dashes.size(), name.size()) == name && option[length] == '=') {
        return option.substr(length + 1);
      }
    }
    return {};
  };
  if (const auto standard = value_of("std"); !standard.empty()) {
    return "-std=" + std::string(standard);
  }
  if (const auto fmad = value_of("fmad"); !fmad.empty()) {
    return fmad == "false" ? "-ffp-contract=off" : "-ffp-contract=fast";
  }
  if (const auto macro = value_of("define-macro"); !macro.empty()) {
    return "-D" + std::string(macro);
  }
  if (const auto macro = value_of("undefine-macro"); !macro.empty()) {
    return "-U" + std::string(macro);
  }
  if (const auto folder = value_of("include-path"); !folder.empty()) {
    return "-I" + std::string(folder);
  }
  if (option == "--use_fast_math" || option == "-use_fast_math") return "-ffast-math";
  return std::string(option);
}

}  // namespace

bool compiler_options(const lockstep_module_desc& desc, const std::string& architecture,
                      std::vector<std::string>* options, std::string* why) {
  const bool cuda = is_cuda_architecture(architecture);
  options->clear();
  for (std::uint32_t index = 0; index < desc.option_count; ++index) {
    const std::string_view option = desc.options[index];
    for (const std::string_view start : {"--offload-arch", "--gpu-architecture", "-arch",
                                         "--cuda-gpu-arch", "-fgpu-rdc", "--amdgpu-target"}) {
      if (!option.starts_with(start)) continue;
      if (option == "--offload-arch=" + architecture) break;  // says what is done anyway
      *why = "option " + std::string(option) +
             " is not taken: kernels are compiled for this "
             "device (" +
             architecture + ") alone, to code that can be loaded as it is";
      return false;
    }
    if (option == "--offload-arch=" + architecture) continue;
    // A runtime that forwards to CUDA has NVRTC behind it.
    options->push_back(cuda ? std::string(option) : translated(option));
  }
  options->push_back("--offload-arch=" + architecture);
  if (!has_start(*options, "-std=") && !has_start(*options, "--std=")) {
    options->emplace_back("-std=c++17");
  }
  if (cuda) {
    if (!has_start(*options, "--fmad") && !has_start(*options, "-fmad") &&
        !has_start(*options, "--use_fast_math") && !has_start(*options, "-use_fast_math")) {
      options->emplace_back("--fmad=false");
    }
  } else if (!has_start(*options, "-ffp-contract=") && !has_start(*options, "-ffast-math")) {
    options->emplace_back("-ffp-contract=off");
  }
  return true;
}

}  // namespace lockstep::hip
