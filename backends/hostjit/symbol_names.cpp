// SPDX-License-Identifier: Apache-2.0
#include "symbol_names.h"

#include <algorithm>
#include <cctype>
namespace lockstep::hostjit {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// End of `<length><identifier>` at `at`; `at` itself when there is none.
std::size_t skip_source_name(std::string_view text, std::size_t at) {
  std::size_t length = 0;
  std::size_t i = at;
  while (i < text.size() && digit(text[i]) && length < text.size()) {
    length = length * 10 + static_cast<std::size_t>(text[i++] - '0');
  }
  return i == at || i + length > text.size() ? at : i + length;
}

// What stands between `_Z` and the end; an extern "C" name is written with its length.
std::string encoding_of(std::string_view function) {
  if (function.starts_with("_Z")) return std::string(function.substr(2));
  return std::to_string(function.size()) + std::string(function);
}

}  // namespace

std::string name_as_nvcc(std::string_view symbol) {
  if (symbol.starts_with("_ZL")) {
    const std::size_t end = skip_source_name(symbol, 3);
    if (end == symbol.size()) {  // a variable: its name alone
      std::size_t begin = 3;
      while (digit(symbol[begin])) ++begin;
      return std::string(symbol.substr(begin));
    }
    return "_Z" + std::string(symbol.substr(3));
  }
  if (symbol.starts_with("_ZN")) {
    std::size_t at = 3;
    for (std::size_t next = skip_source_name(symbol, at); next != at;
         next = skip_source_name(symbol, at)) {
      at = next;
    }
    if (at < symbol.size() && symbol[at] == 'L' && skip_source_name(symbol, at + 1) != at + 1) {
      return std::string(symbol.substr(0, at)) + std::string(symbol.substr(at + 1));
    }
  }
  return std::string(symbol);
}

std::string local_prefix(std::string_view function) { return "_ZZ" + encoding_of(function) + "E"; }

namespace {

// Prefixes of the local variables of all kernels but one: of those that are asked for, and of those
// that the source has besides.
std::vector<std::string> prefixes_of_others(const ElfSymbols& symbols, std::string_view kernel,
                                            const std::vector<std::string_view>& kernels) {
  const std::string ours = local_prefix(kernel);
  const std::string mark = std::to_string(kKernelMark.size()) + std::string(kKernelMark);
  std::vector<std::string> prefixes;
  for (const std::string_view other : kernels) {
    if (other != kernel) prefixes.push_back(local_prefix(other));
  }
  for (const ElfSymbol& symbol : symbols.symbols()) {
    if (symbol.kind != ElfSymbol::Kind::kObject || !symbol.name.ends_with(mark)) continue;
    const std::string_view prefix = symbol.name.substr(0, symbol.name.size() - mark.size());
    if (prefix != ours) prefixes.emplace_back(prefix);
  }
  return prefixes;
}

}  // namespace

std::string launch_bounds_symbol(std::string_view kernel) {
  return local_prefix(kernel) + "22lockstep_launch_bounds";
}

SharedBytes shared_bytes_of(const ElfSymbols& symbols, std::string_view kernel,
                            const std::vector<std::string_view>& kernels) {
  static constexpr std::string_view kOwn[] = {"_ZL9threadIdx", "_ZL8blockIdx", "_ZL8blockDim",
                                              "_ZL7gridDim"};
  const std::vector<std::string> prefixes = prefixes_of_others(symbols, kernel, kernels);
  SharedBytes bytes;
  for (const ElfSymbol& symbol : symbols.symbols()) {
    if (symbol.kind != ElfSymbol::Kind::kThreadLocal) continue;
    // A compiler may have split them: `_ZL9threadIdx.0`.
    const bool own = std::any_of(std::begin(kOwn), std::end(kOwn), [&](std::string_view name) {
      return symbol.name == name || symbol.name.starts_with(std::string(name) + ".");
    });
    if (own || symbol.name.starts_with("_ZN16lockstep_hostjit") ||
        symbol.name.starts_with(kSharedPointerPrefix))
      continue;
    const bool others =
        std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const std::string& prefix) { return symbol.name.starts_with(prefix); });
    if (others) continue;
    const auto size = static_cast<std::uint32_t>(symbol.size);
    bytes.most += size;
    const bool declares = symbol.name.starts_with(local_prefix(kernel));
    if (declares || kernels.size() == 1) bytes.own += size;
  }
  return bytes;
}

}  // namespace lockstep::hostjit
