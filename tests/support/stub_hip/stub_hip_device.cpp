// SPDX-License-Identifier: Apache-2.0
// The functions of a stub (stub_hip.cpp) that have to answer for a device to be listed.
#include <cstddef>
#include <cstdio>

#define STUB_EXPORT extern "C" __attribute__((visibility("default")))

STUB_EXPORT int hipGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
STUB_EXPORT int hipGetDevice(int* device) {
  *device = 0;
  return 0;
}
STUB_EXPORT int hipDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "SIMULATED stub");
  return 0;
}
STUB_EXPORT int hipDeviceTotalMem(std::size_t* bytes, int) {
  *bytes = 1U << 20U;
  return 0;
}
STUB_EXPORT int hipDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:01:00.0");
  return 0;
}
STUB_EXPORT int hipDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}
