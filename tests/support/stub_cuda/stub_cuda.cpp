// SPDX-License-Identifier: Apache-2.0
// Tiny stand-ins for libcuda that only start, or refuse to: what the plugin has to say about each
// is what the tests look at. Behaviour is chosen when compiling:
//   STUB_VERSION   what cuDriverGetVersion answers
//   STUB_INIT      what cuInit answers
//   STUB_ERROR     what both answer instead
//   STUB_FUNCTIONS every required function is exported, the optional ones are not
#include <cuda.h>

#include "backends/cuda/symbols.h"

#define STUB_EXPORT extern "C" __attribute__((visibility("default")))

#ifdef STUB_ERROR
STUB_EXPORT CUresult cuInit(unsigned) { return static_cast<CUresult>(STUB_ERROR); }
STUB_EXPORT CUresult cuDriverGetVersion(int*) { return static_cast<CUresult>(STUB_ERROR); }
#else
STUB_EXPORT CUresult cuInit(unsigned) { return static_cast<CUresult>(STUB_INIT); }
STUB_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = STUB_VERSION;
  return CUDA_SUCCESS;
}
#endif

#ifdef STUB_FUNCTIONS
// Labelled by hand, since the toolkit's header renames functions by macros. A call succeeds and
// leaves its outputs alone: there is no device.
#define STUB_DEFINE(base, exported, version, parameters)              \
  STUB_EXPORT CUresult stub_##exported parameters __asm__(#exported); \
  CUresult stub_##exported parameters { return CUDA_SUCCESS; }
LOCKSTEP_CUDA_REQUIRED(STUB_DEFINE)
#endif
