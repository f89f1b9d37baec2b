// SPDX-License-Identifier: Apache-2.0
// Tiny stand-ins for libamdhip64 that only start, or refuse to: what the plugin has to say about
// each is what the tests look at. Behaviour is chosen when compiling:
//   STUB_VERSION     what hipRuntimeGetVersion answers
//   STUB_INIT        what hipInit answers
//   STUB_FUNCTIONS   every required function is exported, and a device of an old property layout
//   STUB_R0600       the newer layout, too, which then has to be taken
#include <cstdio>
#include <cstring>

#include "backends/hip/symbols.h"

#define STUB_EXPORT extern "C" __attribute__((visibility("default")))

#ifdef STUB_VERSION
STUB_EXPORT int stub_init(unsigned) __asm__("hipInit");
int stub_init(unsigned) { return STUB_INIT; }
STUB_EXPORT int stub_version(int* version) __asm__("hipRuntimeGetVersion");
int stub_version(int* version) {
  *version = STUB_VERSION;
  return hipSuccess;
}
#endif

#ifdef STUB_FUNCTIONS
using namespace lockstep::hip;

// Labelled by hand, since the header declares, and in part overloads, the names. A call succeeds
// and leaves its outputs alone. Weak: those in
// stub_hip_device.cpp answer.
#define STUB_DEFINE(name, result, parameters)                                     \
  STUB_EXPORT __attribute__((weak)) result stub_##name parameters __asm__(#name); \
  result stub_##name parameters { return {}; }
LOCKSTEP_HIP_REQUIRED(STUB_DEFINE)

STUB_EXPORT int stub_properties(void* properties, int) __asm__("hipGetDeviceProperties");
int stub_properties(void* properties, int) {
  std::memset(properties, 0, kProperties0000.size);
  std::snprintf(static_cast<char*>(properties) + kProperties0000.architecture, 256,
                "gfx906:sramecc+:xnack-");
  return hipSuccess;
}
#ifdef STUB_R0600
STUB_EXPORT int stub_properties_r0600(void* properties, int) __asm__("hipGetDevicePropertiesR0600");
int stub_properties_r0600(void* properties, int) {
  std::memset(properties, 0, kProperties0600.size);
  std::snprintf(static_cast<char*>(properties) + kProperties0600.architecture, 256,
                "gfx90a:sramecc+:xnack-");
  return hipSuccess;
}
#endif
#endif
