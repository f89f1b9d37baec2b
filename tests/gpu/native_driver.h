// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

// Calls of the CUDA driver that the plugin has loaded already, whichever that is: the real one or
// the simulated one. No header of NVIDIA's is needed.
namespace smoke {

// Null when no libcuda.so.1 is loaded or it has no such function.
template <class Function>
Function native(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

}  // namespace smoke
