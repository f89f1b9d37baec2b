// SPDX-License-Identifier: Apache-2.0
#include "compile_cache.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cache_bytes.h"
#include "files_read.h"

// Inline: the plugin then needs no library beside the standard ones.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep::gpu {
namespace {

constexpr std::string_view kMagic = "lockstep-code-1\n";

std::string environment(const char* name) {
  const char* value = secure_getenv(name);
  return value != nullptr ? value : "";
}

// Does the code depend on files that may change behind our back?
bool reads_other_files(const lockstep_module_desc& desc, const std::string& compiler,
                       const std::vector<std::string>& all_options) {
  if (!option_that_may_read(all_options).empty()) return true;
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);  // as the compiler asks for it
    return value != nullptr && *value != '\0';
  };
  // hipRTC is clang, which has options and folders of the environment.
  const bool clang = compiler.starts_with("hiprtc");
  if (clang && set("HIPRTC_COMPILE_OPTIONS_APPEND")) return true;
  const bool own_folders_only = !clang || (!set("CPATH") && !set("CPLUS_INCLUDE_PATH"));
  std::vector<std::string_view> given = {"lockstep/kernel.h"};  // part of `compiler`
  for (std::uint32_t index = 0; index < desc.header_count; ++index) {
    given.emplace_back(desc.headers[index].name);
  }
  const auto reads = [&](std::string_view text) {
    return !text_that_may_read(text, given, own_folders_only).empty();
  };
  for (std::uint32_t index = 0; index < desc.header_count; ++index) {
    if (reads(desc.headers[index].text)) return true;
  }
  return reads({static_cast<const char*>(desc.data), desc.bytes});
}

}  // namespace

std::string CompileCache::key(const lockstep_module_desc& desc, const std::string& compiler,
                              const std::vector<std::string>& all_options) {
  if (reads_other_files(desc, compiler, all_options)) return {};
  std::string all;
  put_text(all, compiler);
  put_text(all, std::string_view(static_cast<const char*>(desc.data), desc.bytes));
  put_text(all, desc.source_name != nullptr ? desc.source_name : "");
  for (const std::string& option : all_options) {
    put_text(all, option);
  }
  put_number(all, desc.kernel_count);
  for (std::uint32_t index = 0; index < desc.kernel_count; ++index) {
    put_text(all, desc.kernels[index]);
  }
  put_number(all, desc.header_count);
  for (std::uint32_t index = 0; index < desc.header_count; ++index) {
    put_text(all, desc.headers[index].name);
    put_text(all, desc.headers[index].text);
  }
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

std::string CompileCache::folder() const {
  std::string base = environment("LOCKSTEP_CACHE_DIR");
  if (base.empty()) {
    if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
      base = xdg + "/lockstep";
    } else if (const std::string home = environment("HOME"); !home.empty()) {
      base = home + "/.cache/lockstep";
    }
  }
  return base.empty() ? base : base + "/" + vendor_;
}

std::optional<CompiledCode> CompileCache::find(const std::string& key) const {
  const std::string where = folder();
  if (where.empty() || key.empty()) return std::nullopt;
  const std::string bytes = read_whole(where + "/" + key + ".code");
  const std::string_view body = unsealed(kMagic, bytes);
  if (body.empty()) return std::nullopt;
  ByteReader reader(body);
  CompiledCode code;
  const std::uint64_t names = reader.number();
  for (std::uint64_t index = 0; index < names && reader.ok(); ++index) {
    const std::string_view expression = reader.text();
    const std::string_view symbol = reader.text();
    code.lowered_names.emplace_back(expression, symbol);
  }
  const std::string_view image = reader.text();
  if (!reader.complete()) return std::nullopt;
  code.code.assign(image.begin(), image.end());
  return code;
}

bool CompileCache::store(const std::string& key, const CompiledCode& code, std::string_view source,
                         std::string* problem) const {
  const std::string where = folder();
  if (key.empty()) return true;
  if (where.empty()) {
    *problem = "there is no cache folder: set LOCKSTEP_CACHE_DIR";
    return false;
  }
  std::error_code failed;
  std::filesystem::create_directories(where, failed);
  if (failed) {
    *problem = "cannot make " + where + ": " + failed.message();
    return false;
  }
  std::string body;
  put_number(body, code.lowered_names.size());
  for (const auto& [expression, symbol] : code.lowered_names) {
    put_text(body, expression);
    put_text(body, symbol);
  }
  put_text(body, std::string_view(code.code.data(), code.code.size()));
  const std::string bytes = sealed(kMagic, body);
  const std::filesystem::path base = std::filesystem::path(where) / key;
  return write_aside(base.string() + ".source", source, problem) &&
         write_aside(base.string() + ".code", bytes, problem);
}

}  // namespace lockstep::gpu
