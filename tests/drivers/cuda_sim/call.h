// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "faults.h"
#include "handles.h"

// The border of the library: faults are injected and nothing is thrown across it.
namespace cuda_sim {

// What a call needs in order to be answered.
enum class Needs {
  kNothing,  // names of errors: legal always
  kStarted,  // cuInit was called; not in a forked child, not inside of a host function
};

// Counts the call and checks `needs`; what to answer at once, CUDA_SUCCESS = go on.
CUresult enter(const char* name, Needs needs);

template <typename Body>
CUresult call(const char* name, Needs needs, const Body& body) noexcept {
  CUresult result = CUDA_SUCCESS;
  try {
    result = enter(name, needs);
    if (result == CUDA_SUCCESS) body();
  } catch (const hostrt::Error& error) {
    result = static_cast<CUresult>(error.native());
  } catch (const std::bad_alloc&) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    result = CUDA_ERROR_UNKNOWN;
  }
  faults().log(name, result);
  return result;
}
template <typename Body>
CUresult call(const char* name, const Body& body) noexcept {
  return call(name, Needs::kStarted, body);
}

}  // namespace cuda_sim

#define CUDA_SIM_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
