// SPDX-License-Identifier: Apache-2.0
#include "code_object.h"

#include <algorithm>
#include <cstring>

namespace hsa_sim {
namespace {

constexpr std::uint16_t kMachine = 224;  // EM_AMDGPU
constexpr unsigned char kOsAbi = 64;     // ELFOSABI_AMDGPU_HSA
constexpr std::uint32_t kMachMask = 0xFF;
constexpr std::uint32_t kAbsolute64 = 3;   // R_AMDGPU_ABS64
constexpr std::uint32_t kRelative64 = 13;  // R_AMDGPU_RELATIVE64
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;
constexpr std::uint64_t kDescriptorBytes = 64;

void well_formed(bool holds) { require(holds, HSA_STATUS_ERROR_INVALID_CODE_OBJECT); }

}  // namespace

template <typename T>
T CodeObject::at(std::uint64_t offset) const {
  well_formed(offset <= file_.size() && sizeof(T) <= file_.size() - offset);
  T value;
  std::memcpy(&value, file_.data() + offset, sizeof value);
  return value;
}

CodeObject::CodeObject(std::span<const std::byte> file, const Architecture& architecture)
    : file_(file), header_(at<Elf64_Ehdr>(0)) {
  well_formed(std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
              header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_ident[EI_DATA] == ELFDATA2LSB &&
              header_.e_machine == kMachine && header_.e_ident[EI_OSABI] == kOsAbi);
  require((header_.e_flags & kMachMask) == architecture.mach, HSA_STATUS_ERROR_INVALID_ISA);
  read_segments();
  for (const Elf64_Shdr& section : sections()) {
    if (section.sh_type == SHT_DYNSYM) read_symbols(section);
  }
}

std::vector<Elf64_Shdr> CodeObject::sections() const {
  std::vector<Elf64_Shdr> all;
  for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
    all.push_back(at<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
  }
  return all;
}

void CodeObject::read_segments() {
  for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD) continue;
    well_formed(segment.p_offset <= file_.size() &&
                segment.p_filesz <= file_.size() - segment.p_offset &&
                segment.p_filesz <= segment.p_memsz && segment.p_memsz <= kMostBytes &&
                segment.p_vaddr <= kMostBytes);
    memory_bytes_ = std::max(memory_bytes_, segment.p_vaddr + segment.p_memsz);
    segments_.push_back(segment);
  }
  well_formed(memory_bytes_ > 0);
}

std::string CodeObject::text(const Elf64_Shdr& table, std::uint64_t offset) const {
  well_formed(table.sh_offset <= file_.size() && table.sh_size <= file_.size() - table.sh_offset &&
              offset < table.sh_size);
  const auto* const begin = reinterpret_cast<const char*>(file_.data()) + table.sh_offset + offset;
  const auto* const end = static_cast<const char*>(std::memchr(begin, 0, table.sh_size - offset));
  well_formed(end != nullptr);
  return {begin, end};
}

void CodeObject::read_symbols(const Elf64_Shdr& section) {
  const auto all = sections();
  well_formed(section.sh_link < all.size() && section.sh_entsize == sizeof(Elf64_Sym));
  const Elf64_Shdr& names = all[section.sh_link];
  for (std::uint64_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
    CodeSymbol found{text(names, symbol.st_name), false, symbol.st_value, symbol.st_size};
    well_formed(found.offset <= memory_bytes_ && found.bytes <= memory_bytes_ - found.offset);
    if (found.name.size() > 3 && found.name.ends_with(".kd")) {
      well_formed(found.bytes == kDescriptorBytes);
      found.name.resize(found.name.size() - 3);
      found.is_kernel = true;
    }
    symbols_.push_back(std::move(found));
  }
}

void CodeObject::load(std::byte* to) const {
  std::memset(to, 0, memory_bytes_);
  for (const Elf64_Phdr& segment : segments_) {
    std::memcpy(to + segment.p_vaddr, file_.data() + segment.p_offset, segment.p_filesz);
  }
  const auto all = sections();
  for (const Elf64_Shdr& section : all) {
    if (section.sh_type == SHT_RELA) relocate(to, section, all);
  }
}

void CodeObject::relocate(std::byte* to, const Elf64_Shdr& section,
                          const std::vector<Elf64_Shdr>& all) const {
  well_formed(section.sh_link < all.size());
  const Elf64_Shdr& symbols = all[section.sh_link];
  for (std::uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i) {
    const auto entry = at<Elf64_Rela>(section.sh_offset + i * sizeof(Elf64_Rela));
    std::uint64_t value = reinterpret_cast<std::uint64_t>(to) + entry.r_addend;
    switch (ELF64_R_TYPE(entry.r_info)) {
      case kRelative64:
        break;
      case kAbsolute64: {
        const auto symbol =
            at<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym));
        value += symbol.st_value;
        break;
      }
      default:
        refuse(HSA_STATUS_ERROR_INVALID_CODE_OBJECT);
    }
    well_formed(entry.r_offset <= memory_bytes_ && sizeof value <= memory_bytes_ - entry.r_offset);
    std::memcpy(to + entry.r_offset, &value, sizeof value);
  }
}

}  // namespace hsa_sim
