// SPDX-License-Identifier: Apache-2.0
#include "compile_cache.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

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

void put_number(std::string& to, std::uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}
void put_text(std::string& to, std::string_view text) {
  put_number(to, text.size());
  to.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view raw = take(sizeof value);
    if (ok_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }
  bool complete() const { return ok_ && bytes_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::uint64_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

bool write_aside(const std::filesystem::path& target, std::string_view bytes,
                 std::string* problem) {
  static std::atomic<unsigned> counter{0};
  std::filesystem::path aside = target;
  aside += ".tmp." + std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1));
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code code;
  if (file.good()) {
    std::filesystem::rename(aside, target, code);
    if (!code) return true;
  }
  *problem = "cannot write " + target.string() + (code ? ": " + code.message() : "");
  std::filesystem::remove(aside, code);
  return false;
}

}  // namespace

std::string CompileCache::key(const lockstep_module_desc& desc, const std::string& compiler,
                              const std::vector<std::string>& all_options) {
  std::string all;
  put_text(all, compiler);
  put_text(all, std::string_view(static_cast<const char*>(desc.data), desc.bytes));
  put_text(all, desc.source_name != nullptr ? desc.source_name : "");
  for (const std::string& option : all_options) {
    const std::string_view text = option;
    if (text.starts_with("-I") || text.starts_with("--include-path") ||
        text.starts_with("-include") || text.starts_with("--pre-include")) {
      return {};
    }
    put_text(all, text);
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
  std::ifstream file(where + "/" + key + ".code", std::ios::binary);
  if (!file) return std::nullopt;
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < kMagic.size() + 8 || !bytes.starts_with(kMagic)) return std::nullopt;
  const std::string_view body = std::string_view(bytes).substr(kMagic.size() + 8);
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + kMagic.size(), sizeof stored);
  if (stored != XXH3_64bits(body.data(), body.size())) return std::nullopt;
  Reader reader(body);
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
  std::string bytes(kMagic);
  put_number(bytes, XXH3_64bits(body.data(), body.size()));
  bytes += body;
  const std::filesystem::path base = std::filesystem::path(where) / key;
  return write_aside(base.string() + ".source", source, problem) &&
         write_aside(base.string() + ".code", bytes, problem);
}

}  // namespace lockstep::gpu
