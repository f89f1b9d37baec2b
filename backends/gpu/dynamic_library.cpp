// SPDX-License-Identifier: Apache-2.0
#include "dynamic_library.h"

#include <cstdlib>
#include <dlfcn.h>

namespace lockstep::gpu {

bool DynamicLibrary::open_one(const std::string& name) {
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) {
    name_ = name;
    return true;
  }
  if (!tried_.empty()) tried_ += "; ";
  const char* reason = dlerror();
  tried_ += reason != nullptr ? reason : name.c_str();
  return false;
}

bool DynamicLibrary::open(const char* variable, const std::vector<std::string>& candidates) {
  const char* named = secure_getenv(variable);
  if (named != nullptr && *named != '\0') return open_one(named);
  for (const std::string& candidate : candidates) {
    if (open_one(candidate)) return true;
  }
  return false;
}

void* DynamicLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

void DynamicLibrary::close_if_unsuitable() {
  // Only a library of which nothing but its version was asked may be closed again.
  if (handle_ != nullptr) dlclose(handle_);
  handle_ = nullptr;
  name_.clear();
}

}  // namespace lockstep::gpu
