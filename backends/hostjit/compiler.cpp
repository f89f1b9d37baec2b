// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "elf_symbols.h"
#include "hostjit.h"
#include "process.h"

namespace lockstep::hostjit {
namespace {

constexpr std::chrono::seconds kVersionTimeout{20};

// Absolute path of an executable, or why there is none.
std::optional<std::string> search_path(const std::string& name, std::string& why) {
  const auto executable = [](const std::string& path) {
    std::error_code ignored;
    return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored);
  };
  if (name.find('/') != std::string::npos) {
    const std::string path = std::filesystem::absolute(name).string();
    if (executable(path)) return path;
    why = "not an executable file";
    return std::nullopt;
  }
  const char* variable = secure_getenv("PATH");
  const std::string folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::size_t begin = 0;
  while (begin <= folders.size()) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    if (!folder.empty() && folder.front() == '/' && executable(folder + "/" + name)) {
      return folder + "/" + name;
    }
    begin = end + 1;
  }
  why = "not found on PATH";
  return std::nullopt;
}

std::string file_stamp(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return "?";
  return std::to_string(status.st_size) + "." + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

// Asks the compiler who it is, once a process for each state of its file.
std::optional<CompilerInfo> probe(const std::string& path, std::string& why) {
  static std::mutex mutex;
  static std::map<std::string, CompilerInfo> known;
  const std::string stamp = path + "\n" + file_stamp(path);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(stamp); found != known.end()) return found->second;
  }
  const ProcessResult result = run_process({path, "--version"}, "/", kVersionTimeout);
  const bool answered = result.status_known ? result.exit_code == 0 : !result.output.empty();
  if (!result.started || result.timed_out || !answered) {
    why = !result.started       ? result.output
          : result.timed_out    ? "did not answer --version"
          : result.status_known ? "--version failed with code " + std::to_string(result.exit_code)
                                : "--version said nothing";
    return std::nullopt;
  }
  CompilerInfo info;
  info.path = path;
  info.identity = stamp + "\n" + result.output;
  info.is_clang = result.output.find("clang") != std::string::npos;
  const std::lock_guard lock(mutex);
  known.emplace(stamp, info);
  return info;
}

// Section headers and symbols come last: a linker that was stopped has not written them.
bool is_whole_image(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) return false;
  const auto symbols = ElfSymbols::parse(*bytes);
  return symbols && symbols->find("lockstep_hostjit_table") != nullptr;
}

}  // namespace

CompilerInfo find_compiler() {
  const char* chosen = secure_getenv("LOCKSTEP_HOST_COMPILER");
  std::vector<std::string> candidates = {"g++", "clang++", "c++"};
  if (chosen != nullptr && *chosen != '\0') candidates = {chosen};
  std::string tried;
  for (const std::string& candidate : candidates) {
    std::string why;
    if (const auto path = search_path(candidate, why)) {
      if (const auto info = probe(*path, why)) return *info;
    }
    tried += (tried.empty() ? "" : "; ") + candidate + ": " + why;
  }
  throw Error(ErrorCode::kNoCompiler,
              "no C++ compiler for host kernels (" + tried +
                  "); install g++ or clang++, or name one with LOCKSTEP_HOST_COMPILER");
}

bool compiler_available(std::string* why) {
  try {
    find_compiler();
    return true;
  } catch (const Error& error) {
    if (why != nullptr) *why = error.what();
    return false;
  }
}

const std::string& cpu_identity() {
  static const std::string identity = [] {
    std::string found;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();) {
      if (line.starts_with("model name") || line.starts_with("flags") ||
          line.starts_with("Features") || line.starts_with("CPU "))
        found += line + "\n";
    }
    return found;
  }();
  return identity;
}

std::string run_compiler(const CompilerInfo& compiler, const std::vector<std::string>& options,
                         const std::string& folder, std::chrono::milliseconds timeout) {
  std::vector<std::string> arguments = {
      compiler.path, "-x", "c++", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions",
      "-fno-math-errno", "-fno-trapping-math",
      // A frame larger than the guard page may not step over it.
      "-fstack-clash-protection", "-fdiagnostics-color=never", "-fstack-usage",
      // Headers of system folders, too: CPLUS_INCLUDE_PATH makes such ones of any folder, and a
      // header makes itself and what it includes one by a pragma.
      "-ffile-prefix-map=" + folder + "/=", "-I.", "-MD", "-MF", "dependencies", "-Wl,--as-needed",
      "-Wl,-z,defs"};
  if (!compiler.is_clang) {
    // Two kernels with equal bodies need two addresses, which name them.
    arguments.emplace_back("-fno-ipa-icf");
    arguments.emplace_back("-fmax-errors=50");
    // Masked stores halve the memory bandwidth on AMD CPUs: a guarded loop is better split at its
    // guard (the compiler then vectorises the unguarded part) or left scalar.
    arguments.emplace_back("-fno-tree-loop-if-convert");
  }
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"-o", "image.so", "unit.cpp"});
  ProcessResult result = run_process(arguments, folder, timeout);
  if (!result.started) {
    throw Error(ErrorCode::kNoCompiler, "the host compiler could not be started: " + result.output);
  }
  if (result.timed_out) {
    throw Error(ErrorCode::kTimeout,
                compiler.path + " was stopped after " + std::to_string(timeout.count()) +
                    " ms; raise the limit, or lower the optimisation (-O1)",
                result.output);
  }
  const bool compiled =
      result.status_known ? result.exit_code == 0 : is_whole_image(folder + "/image.so");
  if (!compiled) {
    std::string message = "compiling for the host failed";
    if (result.output.empty()) {
      message += " (" + compiler.path +
                 (result.status_known ? " ended with code " + std::to_string(result.exit_code)
                                      : std::string(" made no image")) +
                 " and said nothing)";
    }
    throw Error(ErrorCode::kCompileFailed, message + ":\n" + result.output, result.output);
  }
  return result.output;
}

}  // namespace lockstep::hostjit
