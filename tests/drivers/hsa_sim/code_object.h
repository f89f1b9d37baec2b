// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agents.h"

// A code object: the ELF file that a compiler for AMD GPUs makes. Every offset in it is checked.
namespace hsa_sim {

struct CodeSymbol {
  std::string name;        // kernels without ".kd"
  bool is_kernel = false;  // else a variable
  std::uint64_t offset = 0, bytes = 0;
};

// The first bytes of the 64 that describe a kernel to the hardware.
struct KernelDescriptor {
  std::uint32_t group_bytes, private_bytes, argument_bytes;
};

class CodeObject {
 public:
  // Refuses what is no whole code object for the architecture.
  CodeObject(std::span<const std::byte> file, const Architecture& architecture);

  std::uint64_t memory_bytes() const { return memory_bytes_; }
  const std::vector<CodeSymbol>& symbols() const { return symbols_; }
  // Puts segments where they belong and applies relocations; `to` has room for memory_bytes().
  void load(std::byte* to) const;

 private:
  template <typename T>
  T at(std::uint64_t offset) const;
  std::string text(const Elf64_Shdr& table, std::uint64_t offset) const;
  void read_segments();
  void read_symbols(const Elf64_Shdr& section);
  std::vector<Elf64_Shdr> sections() const;
  void relocate(std::byte* to, const Elf64_Shdr& section, const std::vector<Elf64_Shdr>& all) const;

  std::span<const std::byte> file_;
  Elf64_Ehdr header_{};
  std::uint64_t memory_bytes_ = 0;
  std::vector<Elf64_Phdr> segments_;
  std::vector<CodeSymbol> symbols_;
};

}  // namespace hsa_sim
