// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the names in an image's symbol table say about kernels.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf_symbols.h"

namespace lockstep::hostjit {

// The Itanium name with the mark of internal linkage taken out (`_ZL4statPi` → `_Z4statPi`), which
// is how nvcc names static kernels and variables; a static variable at global scope becomes plain.
std::string name_as_nvcc(std::string_view symbol);

// Prefix of the symbols of a function's local variables: `_ZZ5saxpyfPKfPfiE`.
std::string local_prefix(std::string_view function);

std::string launch_bounds_symbol(std::string_view kernel);

// A local constant of every function that the source itself declares __global__.
inline constexpr std::string_view kKernelMark = "lockstep_is_kernel";

// What symbols of pointers to dynamic shared memory begin with, which take no shared memory.
inline constexpr const char* kSharedPointerPrefix = "lockstep_hostjit_shared_";

struct SharedBytes {
  std::uint32_t own = 0;   // of variables that the kernel declares; all when it is the only kernel
  std::uint32_t most = 0;  // and of those that are declared outside of all kernels, named or not
};

// Bytes of thread-local variables. The prelude's own do not count.
SharedBytes shared_bytes_of(const ElfSymbols& symbols, std::string_view kernel,
                            const std::vector<std::string_view>& kernels);

}  // namespace lockstep::hostjit
