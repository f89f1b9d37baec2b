// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the system's C++ compiler and calls it.

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::hostjit {

struct CompilerInfo {
  std::string path;      // absolute
  std::string identity;  // path, size, time and first line of --version: part of the cache key
  bool is_clang = false;
};

// LOCKSTEP_HOST_COMPILER, else the first of g++, clang++, c++ on PATH that answers --version.
// Throws Error(kNoCompiler) with what was tried. Answers are remembered for a process.
CompilerInfo find_compiler();

// Model and instruction set flags of this machine's CPU, on which -march=native depends.
const std::string& cpu_identity();

// Compiles `folder`/unit.cpp to `folder`/image.so. Throws Error (kCompileFailed, kTimeout,
// kNoCompiler); returns the compiler's output.
std::string run_compiler(const CompilerInfo& compiler, const std::vector<std::string>& options,
                         const std::string& folder, std::chrono::milliseconds timeout);

}  // namespace lockstep::hostjit
