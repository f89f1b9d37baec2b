// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver.h"

// What a compiled object was made from, kept so that somebody who holds nothing but the object's
// bytes finds it: the simulated HSA layer under AMD's runtime gives a kernel a body by compiling
// its source for the CPU.
//
// One file an object in the compile cache's folder of the vendor (LOCKSTEP_CACHE_DIR/hip, see
// compile_cache.h):
//
//   object-<16 lower-case hex digits of XXH3-64, seed 0, of all bytes of the object>.source
//
// with the bytes as the compiler gave them (a bare ELF file from hipRTC, not a bundle). The file:
//
//   "lockstep-object-1\n"   18 bytes
//   u64                     XXH3-64 of everything behind it
//   text                    name of the source, for messages
//   text                    the source
//   u64 count, texts        options, as they were given to the compiler (-D…, --offload-arch=…)
//   u64 count, texts        name expressions of kernels
//   u64 count, pairs        headers: name as included, text (lockstep/kernel.h is among them)
//   u64 count, pairs        name expression, symbol in the object
//
// where u64 is little endian and a text is its length (u64) and its bytes. Written aside and
// renamed, before the object is loaded for the first time; never changed.
namespace lockstep::gpu {

struct ObjectSource {
  std::string source_name, source;
  std::vector<std::string> options, kernels;
  std::vector<std::pair<std::string, std::string>> headers;        // name, text
  std::vector<std::pair<std::string, std::string>> lowered_names;  // expression, symbol
};

// "object-0123456789abcdef.source"
std::string object_file_name(std::string_view object);
// Failures are no errors for who compiles: `problem` says why.
bool write_object_source(const std::string& folder, std::string_view object,
                         const ObjectSource& source, std::string* problem);
// Nothing when there is no such file or it is damaged.
std::optional<ObjectSource> find_object_source(const std::string& folder, std::string_view object);

}  // namespace lockstep::gpu
