// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::gpu {

// A vendor library, opened at run time and never closed. Remembers what was tried, for the message
// when nothing was found.
class DynamicLibrary {
 public:
  // The variable's value alone when it is set and not empty, else the candidates in their order.
  bool open(const char* variable, const std::vector<std::string>& candidates);
  bool open_one(const std::string& name);
  bool is_open() const { return handle_ != nullptr; }
  void* symbol(const char* name) const;
  const std::string& name() const { return name_; }
  // "libcuda.so.1: cannot open …; libcuda.so: …"
  const std::string& tried() const { return tried_; }
  void close_if_unsuitable();

 private:
  void* handle_ = nullptr;
  std::string name_, tried_;
};

}  // namespace lockstep::gpu
