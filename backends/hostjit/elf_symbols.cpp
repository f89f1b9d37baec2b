// SPDX-License-Identifier: Apache-2.0
#include "elf_symbols.h"

#include <cstring>
#include <elf.h>

namespace lockstep::hostjit {
namespace {

template <class T>
bool read(std::span<const std::byte> image, std::uint64_t offset, T& value) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return true;
}

std::optional<std::span<const std::byte>> contents(std::span<const std::byte> image,
                                                   const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > image.size() ||
      image.size() - section.sh_offset < section.sh_size)
    return std::nullopt;
  return image.subspan(section.sh_offset, section.sh_size);
}

std::string_view text_at(std::span<const std::byte> table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  return {begin, strnlen(begin, table.size() - offset)};
}

std::optional<Elf64_Ehdr> header_of(std::span<const std::byte> image) {
  Elf64_Ehdr header;
  if (!read(image, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_DYN || header.e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  return header;
}

}  // namespace

std::optional<ElfSymbols> ElfSymbols::parse(std::span<const std::byte> image) {
  const auto header = header_of(image);
  if (!header) return std::nullopt;
  ElfSymbols result;
  result.image_ = image;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    Elf64_Shdr section;
    Elf64_Shdr names;
    if (!read(image, header->e_shoff + i * sizeof(Elf64_Shdr), section)) return std::nullopt;
    if (section.sh_type != SHT_SYMTAB) continue;
    if (!read(image, header->e_shoff + std::uint64_t{section.sh_link} * sizeof(Elf64_Shdr), names))
      return std::nullopt;
    const auto symbols = contents(image, section);
    const auto strings = contents(image, names);
    if (!symbols || !strings) return std::nullopt;
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= symbols->size();
         offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      read(*symbols, offset, symbol);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      ElfSymbol::Kind kind;
      if (type == STT_FUNC) {
        kind = ElfSymbol::Kind::kFunction;
      } else if (type == STT_OBJECT) {
        kind = ElfSymbol::Kind::kObject;
      } else if (type == STT_TLS) {
        kind = ElfSymbol::Kind::kThreadLocal;
      } else {
        continue;
      }
      result.symbols_.push_back(
          {text_at(*strings, symbol.st_name), symbol.st_value, symbol.st_size, kind});
    }
  }
  if (result.symbols_.empty()) return std::nullopt;
  return result;
}

const ElfSymbol* ElfSymbols::find(std::string_view name) const {
  for (const ElfSymbol& symbol : symbols_) {
    if (symbol.name == name) return &symbol;
  }
  return nullptr;
}

const ElfSymbol* ElfSymbols::function_at(std::uint64_t address) const {
  for (const ElfSymbol& symbol : symbols_) {
    if (symbol.kind == ElfSymbol::Kind::kFunction && address >= symbol.value &&
        address < symbol.value + (symbol.size > 0 ? symbol.size : 1))
      return &symbol;
  }
  return nullptr;
}

std::optional<ElfSection> ElfSymbols::section(std::string_view name) const {
  const auto header = header_of(image_);
  Elf64_Shdr names;
  if (!header ||
      !read(image_, header->e_shoff + std::uint64_t{header->e_shstrndx} * sizeof(Elf64_Shdr),
            names))
    return std::nullopt;
  const auto strings = contents(image_, names);
  for (unsigned i = 0; strings && i < header->e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read(image_, header->e_shoff + i * sizeof(Elf64_Shdr), section)) return std::nullopt;
    if (text_at(*strings, section.sh_name) != name) continue;
    const auto bytes = contents(image_, section);
    if (bytes) return ElfSection{section.sh_addr, *bytes};
  }
  return std::nullopt;
}

}  // namespace lockstep::hostjit
