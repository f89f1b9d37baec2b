// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/normalise.h>

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "src/trace/demangle.h"

namespace lockstep {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

// What the vendors call the same thing. No right side is a left side, so that one pass is enough.
constexpr std::array<Replacement, 14> kVendorWords = {{
    {"__nv_bfloat16", "bfloat16"},
    {"hip_bfloat16", "bfloat16"},
    {"__hip_bfloat16", "bfloat16"},
    {"__nv_bfloat162", "bfloat162"},
    {"__hip_bfloat162", "bfloat162"},
    {"CUstream_st", "stream_t"},
    {"ihipStream_t", "stream_t"},
    {"CUevent_st", "event_t"},
    {"ihipEvent_t", "event_t"},
    {"hipcub", "cub"},
    {"hiprand_device", "rand_device"},
    {"curandStatePhilox4_32_10", "randStatePhilox4_32_10"},
    {"hiprandStatePhilox4_32_10", "randStatePhilox4_32_10"},
    {"curandStateXORWOW", "randStateXORWOW"},
}};

constexpr std::array<Replacement, 11> kVectorElements = {{
    {"unsigned long long", "ulonglong"},
    {"unsigned long", "ulong"},
    {"unsigned int", "uint"},
    {"unsigned short", "ushort"},
    {"unsigned char", "uchar"},
    {"long long", "longlong"},
    {"long", "long"},
    {"int", "int"},
    {"short", "short"},
    {"float", "float"},
    {"double", "double"},
}};

// Ends of names that compilers at run time number anew: the ordinal behind these is stripped.
constexpr std::array<std::string_view, 6> kNumberedFamilies = {
    "triton_", "fused_", "fusion", "wrapped_", "jit_", "cutlass_jit_"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void strip_suffix(std::string& name, std::string_view suffix) {
  if (name.size() > suffix.size() &&
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
    name.resize(name.size() - suffix.size());
  }
}

/// `_ZL8static_kPi.intern.0123456789abcdef` → `_ZL8static_kPi`.
void strip_intern(std::string& name) {
  const std::size_t at = name.rfind(".intern.");
  if (at == std::string::npos || at == 0) return;
  if (std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 8, name.end(), is_hex)) {
    name.resize(at);
  }
}

/// `__nv_static_22__<hash>_4_m_cu_ext_k__Z8static_kPi` → `_Z8static_kPi`.
void strip_nv_static(std::string& name) {
  if (name.rfind("__nv_static_", 0) != 0) return;
  const std::size_t at = name.find("__Z");
  if (at != std::string::npos) name.erase(0, at + 1);
}

/// Leaves out name components such as `_INTERNAL_<hash>_4_k_cu_<hash>::`.
std::string without_internal_scopes(const std::string& name) {
  std::string result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t at = name.find("_INTERNAL_", begin);
    if (at == std::string::npos) break;
    std::size_t end = at;
    while (end < name.size() && is_word(name[end])) ++end;
    const bool scope = name.compare(end, 2, "::") == 0 && (at == 0 || !is_word(name[at - 1]));
    result.append(name, begin, (scope ? at : end) - begin);
    begin = scope ? end + 2 : end;
  }
  result.append(name, begin);
  return result;
}

/// Applies `rewrite` until nothing changes, which makes it idempotent whatever it uncovers.
template <typename Rewrite>
std::string to_fixed_point(std::string name, const Rewrite& rewrite) {
  while (true) {
    std::string next = rewrite(name);
    // Every rewriting shortens; one that does not has nothing left to uncover.
    const bool shorter = next.size() < name.size();
    name = std::move(next);
    if (!shorter) return name;
  }
}

std::string without_build_ids(const std::string& name) {
  return to_fixed_point(name, [](std::string text) {
    strip_suffix(text, ".kd");
    strip_intern(text);
    strip_nv_static(text);
    // The demangler writes every anonymous namespace the same way, whatever its build's id.
    return without_internal_scopes(demangle(text));
  });
}

/// Takes `#3` off the end, and what that uncovers.
void strip_ordinals(std::string& text) {
  while (true) {
    std::size_t begin = text.size();
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    if (begin == text.size() || begin == 0 || text[begin - 1] != '#') return;
    text.resize(begin - 1);
  }
}

/// `{lambda(float)#3}` → `{lambda(float)}`, `{unnamed type#2}` → `{unnamed type}`.
std::string without_lambda_ordinals(const std::string& name) {
  std::string result;
  for (const char c : demangle(name)) {
    if (c == '}') strip_ordinals(result);
    result.push_back(c);
  }
  return result;
}

/// `_0d1d2de3`: which arguments a Triton kernel was specialised for.
std::size_t specialisation_length(const std::string& name) {
  std::size_t begin = name.size();
  bool letter = false, digit = false;
  while (begin > 0 && (is_digit(name[begin - 1]) || name[begin - 1] == 'd' ||
                       name[begin - 1] == 'c' || name[begin - 1] == 'e')) {
    --begin;
    letter = letter || name[begin] == 'd' || name[begin] == 'c';
    digit = digit || is_digit(name[begin]);
  }
  const bool marked = begin > 1 && name[begin - 1] == '_' && begin < name.size();
  return marked && letter && digit && is_digit(name[begin]) ? name.size() - begin + 1 : 0;
}

std::size_t hash_suffix_length(const std::string& name) {
  constexpr std::size_t kShortestHash = 8;
  std::size_t begin = name.size();
  bool digit = false;
  while (begin > 0 && is_hex(name[begin - 1])) digit = is_digit(name[--begin]) || digit;
  const std::size_t length = name.size() - begin;
  const bool marked = begin > 1 && (name[begin - 1] == '_' || name[begin - 1] == '.');
  return marked && digit && length >= kShortestHash ? length + 1 : 0;
}

std::size_t ordinal_length(const std::string& name) {
  const bool numbered =
      std::any_of(kNumberedFamilies.begin(), kNumberedFamilies.end(),
                  [&](std::string_view family) { return name.find(family) != std::string::npos; });
  if (!numbered) return 0;
  std::size_t begin = name.size();
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  const bool marked = begin > 1 && (name[begin - 1] == '_' || name[begin - 1] == '.');
  return marked && begin < name.size() ? name.size() - begin + 1 : 0;
}

std::string without_jit_suffixes(const std::string& name) {
  if (name.rfind("_Z", 0) == 0) return name;  // not a name that a script's compiler made up
  return to_fixed_point(name, [](const std::string& text) {
    std::size_t length = hash_suffix_length(text);
    if (length == 0) length = specialisation_length(text);
    if (length == 0) length = ordinal_length(text);
    return text.substr(0, text.size() - length);
  });
}

/// `HIP_vector_type<float, 4u>` → `float4`, or the length of nothing when it is another type.
std::size_t vector_type_length(const std::string& text, std::size_t at, std::string& name) {
  constexpr std::string_view kHead = "HIP_vector_type<";
  if (text.compare(at, kHead.size(), kHead) != 0) return 0;
  for (const auto& [element, spelling] : kVectorElements) {
    std::size_t i = at + kHead.size();
    if (text.compare(i, element.size(), element) != 0) continue;
    i += element.size();
    if (text.compare(i, 2, ", ") != 0) continue;
    i += 2;
    const char count = i < text.size() ? text[i] : '\0';
    if (count < '1' || count > '4' || text.compare(i + 1, 2, "u>") != 0) continue;
    name = std::string(spelling) + count;
    return i + 3 - at;
  }
  return 0;
}

std::string with_common_types(const std::string& name) {
  const std::string text = demangle(name);
  std::string result, vector_name;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      result.push_back(text[i++]);
      continue;
    }
    if (const std::size_t length = vector_type_length(text, i, vector_name); length > 0) {
      result += vector_name;
      i += length;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(i, end - i);
    const auto found = std::find_if(kVendorWords.begin(), kVendorWords.end(),
                                    [&](const Replacement& r) { return r.first == word; });
    result += found == kVendorWords.end() ? word : found->second;
    i = end;
  }
  return result;
}

/// `cuEventRecord` and `hipEventRecord` → `EventRecord`.
std::string without_vendor_prefix(const std::string& call) {
  for (const std::string_view prefix : {"cuda", "cu", "hip", "host"}) {
    const bool found = call.rfind(prefix, 0) == 0 && call.size() > prefix.size() &&
                       call[prefix.size()] >= 'A' && call[prefix.size()] <= 'Z';
    if (found) return call.substr(prefix.size());
  }
  return call;
}

/// Traces repeat few names many times, and demangling takes a microsecond.
class NameCache {
 public:
  using Rewrite = std::string (*)(const std::string&);
  explicit NameCache(Rewrite rewrite) : rewrite_(rewrite) {}

  std::string operator()(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    if (names_.size() >= kMostNames) names_.clear();
    return names_.emplace(name, rewrite_(name)).first->second;
  }

 private:
  static constexpr std::size_t kMostNames = 16384;
  Rewrite rewrite_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> names_;
};

Normaliser of_kernels(std::string_view name, NameCache::Rewrite rewrite) {
  auto cache = std::make_shared<NameCache>(rewrite);
  return {std::string(name), [cache](LaunchTraceEntry& entry) {
            if (entry.kind == OperationKind::kKernelLaunch) entry.name = (*cache)(entry.name);
          }};
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

}  // namespace

const std::vector<NormaliserInfo>& builtin_normalisers() {
  static const std::vector<NormaliserInfo> list = {
      {"build-ids", "ids of anonymous namespaces, static kernels and internal linkage"},
      {"lambdas", "ordinals of lambdas and unnamed types"},
      {"jit", "suffixes of kernels compiled at run time: hashes, ordinals, specialisations"},
      {"vendor", "names of vendors' types and calls"},
  };
  return list;
}

Normaliser find_normaliser(std::string_view name) {
  if (name == "build-ids") return of_kernels(name, without_build_ids);
  if (name == "lambdas") return of_kernels(name, without_lambda_ordinals);
  if (name == "jit") return of_kernels(name, without_jit_suffixes);
  if (name == "vendor") {
    const Normaliser types = of_kernels(name, with_common_types);
    return {
        types.name, [apply = types.apply](LaunchTraceEntry& entry) {
          apply(entry);
          if (entry.kind != OperationKind::kKernelLaunch && entry.kind != OperationKind::kMark) {
            entry.name = without_vendor_prefix(entry.name);
          }
        }};
  }
  std::vector<std::string_view> names;
  for (const NormaliserInfo& info : builtin_normalisers()) names.push_back(info.name);
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("there is no normaliser \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

std::vector<Normaliser> all_normalisers() {
  std::vector<Normaliser> result;
  for (const NormaliserInfo& info : builtin_normalisers()) {
    result.push_back(find_normaliser(info.name));
  }
  return result;
}

Normaliser rename_normaliser(const std::map<std::string, std::string>& names) {
  const auto find = [](const std::map<std::string, std::string>& map, const std::string& name) {
    const auto found = map.find(name);
    return found != map.end() ? found : map.find(display_name(name));
  };
  std::map<std::string, std::string> resolved;
  for (const auto& [from, first] : names) {
    std::set<std::string> seen = {from};
    std::string to = first;
    for (auto next = find(names, to); next != names.end() && next->second != to;
         next = find(names, to)) {
      if (!seen.insert(to).second) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the rename map leads \"{}\" round in a circle", from));
      }
      to = next->second;
    }
    resolved[from] = to;
  }
  return {"rename", [resolved = std::move(resolved), find](LaunchTraceEntry& entry) {
            if (entry.kind != OperationKind::kKernelLaunch) return;
            const auto found = find(resolved, entry.name);
            if (found != resolved.end()) entry.name = found->second;
          }};
}

std::map<std::string, std::string> parse_rename_map(std::string_view text, std::string_view where) {
  std::map<std::string, std::string> result;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string bare = trimmed(content);
    if (bare.empty() || bare.front() == '#') continue;
    const auto fail = [&](const std::string& what) {
      ErrorContext context;
      context.where = fmt::format("{}:{}", where, line);
      throw Error(ErrorCode::kInvalidFile, fmt::format("{}: {}", context.where, what), context);
    };
    const std::size_t arrow = bare.find("=>");
    if (arrow == std::string::npos) fail("a rename is written: old name => new name");
    const std::string from = trimmed(std::string_view(bare).substr(0, arrow));
    const std::string to = trimmed(std::string_view(bare).substr(arrow + 2));
    if (from.empty() || to.empty()) fail("a rename needs a name on both sides of =>");
    if (!result.emplace(from, to).second) fail(fmt::format("\"{}\" is renamed twice", from));
  }
  return result;
}

}  // namespace lockstep
