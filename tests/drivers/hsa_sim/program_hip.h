// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// AMD's HIP runtime, whichever release the loader finds, called by name: no header of one release
// has the types of all.
namespace hsa_sim_program {

// The address of a function of libamdhip64 or libhiprtc; ends the process where there is none.
void* symbol(const char* name);
bool has(const char* name);
int runtime_version();

// hip("hipFree", pointer): arguments as the C prototype has them.
template <typename... Arguments>
int hip(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(symbol(name))(arguments...);
}
// Says what was not as expected, and ends the process: nothing that follows would mean anything.
void expect(bool holds, const std::string& what);
template <typename... Arguments>
void must(const char* name, Arguments... arguments) {
  const int result = hip(name, arguments...);
  expect(result == 0, name + (" answered " + std::to_string(result)));
}

inline constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;

using Stream = void*;
using Function = void*;

Stream make_stream();

struct Compiled {
  void* module = nullptr;
  std::vector<std::pair<std::string, std::string>> lowered;
  Function function(const std::string& name) const;
};
// By hipRTC for device 0; keeps the source where the simulated layer looks for it, as the hip
// plugin does.
Compiled compile(const std::string& source, const std::vector<std::string>& expressions);
// As above without keeping the source.
Compiled compile_only(const std::string& source, const std::vector<std::string>& expressions);

void launch(Function function, unsigned grid, unsigned block, unsigned shared, Stream stream,
            std::vector<void*> arguments);

template <typename T>
T* allocate(std::size_t count) {
  void* memory = nullptr;
  must("hipMalloc", &memory, count * sizeof(T));
  return static_cast<T*>(memory);
}

}  // namespace hsa_sim_program
