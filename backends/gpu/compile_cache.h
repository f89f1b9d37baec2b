// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver.h"

// Compiled kernels on disk, shared by all processes of a user. One file an entry, written aside and
// renamed, with a checksum: a damaged file is compiled again, never loaded. The folder is
// LOCKSTEP_CACHE_DIR, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep.
namespace lockstep::gpu {

class CompileCache {
 public:
  // `vendor` names the folder below the cache folder: "cuda".
  explicit CompileCache(std::string vendor) : vendor_(std::move(vendor)) {}

  // Everything the code depends on. Empty when it may depend on files that cannot be known: by an
  // option, by an #include of neither a given header nor (<...>) one of the compiler's own, by the
  // compiler's environment (files_read.h). Such code is not kept.
  static std::string key(const lockstep_module_desc& desc, const std::string& compiler,
                         const std::vector<std::string>& all_options);

  std::optional<CompiledCode> find(const std::string& key) const;
  // Keeps the source beside the code. Failures are no errors: the code is compiled again next time;
  // `problem` says why.
  bool store(const std::string& key, const CompiledCode& code, std::string_view source,
             std::string* problem) const;
  std::string folder() const;  // "" when the user has none

 private:
  std::string vendor_;
};

}  // namespace lockstep::gpu
