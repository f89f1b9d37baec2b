// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the symbol table of an image. Every offset is checked: the bytes may come from anywhere.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::hostjit {

struct ElfSymbol {
  std::string_view name;
  std::uint64_t value;
  std::uint64_t size;
  enum class Kind { kFunction, kObject, kThreadLocal } kind;
};

struct ElfSection {
  std::uint64_t address;
  std::span<const std::byte> bytes;
};

class ElfSymbols {
 public:
  // Nullopt when the bytes are no ELF shared object of 64 bits, little endian, with symbols. Views
  // the bytes, which have to outlive it.
  static std::optional<ElfSymbols> parse(std::span<const std::byte> image);

  // Defined functions, objects and thread-local variables.
  std::span<const ElfSymbol> symbols() const { return symbols_; }
  const ElfSymbol* find(std::string_view name) const;
  // The function that contains the address; null when there is none.
  const ElfSymbol* function_at(std::uint64_t address) const;
  std::optional<ElfSection> section(std::string_view name) const;

 private:
  std::span<const std::byte> image_;
  std::vector<ElfSymbol> symbols_;
};

}  // namespace lockstep::hostjit
