// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "code_object.h"

// Code objects that are cut, changed or for another GPU are refused and never followed.
namespace hsa_sim {
namespace {

template <typename T>
void put_at(std::vector<std::byte>& file, std::size_t offset, const T& value) {
  if (file.size() < offset + sizeof value) file.resize(offset + sizeof value);
  std::memcpy(file.data() + offset, &value, sizeof value);
}

constexpr std::size_t kSegments = 64, kData = 128, kSymbols = 320, kNames = 400, kRelocations = 416,
                      kSections = 440;

// One kernel "k", a variable "v", and a word that points at the variable.
std::vector<std::byte> small_object() {
  std::vector<std::byte> file(kData + 128);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_OSABI] = 64;
  header.e_machine = 224;
  header.e_flags = 0x3f;
  header.e_phoff = kSegments;
  header.e_phnum = 1;
  header.e_shoff = kSections;
  header.e_shnum = 4;
  put_at(file, 0, header);
  put_at(file, kSegments, Elf64_Phdr{PT_LOAD, 6, kData, 0, 0, 128, 160, 64});
  put_at(file, kData, KernelDescriptor{16, 0, 28});
  put_at(file, kSymbols, Elf64_Sym{});
  put_at(file, kSymbols + 24, Elf64_Sym{1, STT_OBJECT, 0, 1, 0, 64});
  put_at(file, kSymbols + 48, Elf64_Sym{6, STT_OBJECT, 0, 1, 64, 4});
  constexpr char kText[] = "\0k.kd\0v";
  std::vector<std::byte> names(sizeof kText);
  std::memcpy(names.data(), kText, sizeof kText);
  file.resize(kNames);
  file.insert(file.end(), names.begin(), names.end());
  put_at(file, kRelocations, Elf64_Rela{72, ELF64_R_INFO(2, 3), 0});
  put_at(file, kSections, Elf64_Shdr{});
  put_at(file, kSections + 64,
         Elf64_Shdr{0, SHT_DYNSYM, 0, 0, kSymbols, 72, 2, 0, 8, sizeof(Elf64_Sym)});
  put_at(file, kSections + 128, Elf64_Shdr{0, SHT_STRTAB, 0, 0, kNames, sizeof kText, 0, 0, 1, 0});
  put_at(file, kSections + 192,
         Elf64_Shdr{0, SHT_RELA, 0, 0, kRelocations, 24, 1, 0, 8, sizeof(Elf64_Rela)});
  return file;
}

Architecture gfx90a() { return {"gfx90a", "amdgcn-amd-amdhsa--gfx90a", 0x3f, 64}; }

// The status with which it is refused; 0 when it was loaded.
int load(std::span<const std::byte> file, const Architecture& architecture = gfx90a()) {
  try {
    const CodeObject object(file, architecture);
    // A changed size may be anything up to the limit: such memory is not asked for.
    if (object.memory_bytes() > 1 << 20) return 0;
    std::vector<std::byte> memory(object.memory_bytes());
    object.load(memory.data());
    return 0;
  } catch (const Refusal& refusal) {
    return refusal.status();
  }
}

TEST(HsaSimCodeObject, IsLoadedAndRelocated) {
  const auto file = small_object();
  const CodeObject object(file, gfx90a());
  ASSERT_EQ(object.symbols().size(), 2U);
  EXPECT_EQ(object.symbols()[0].name, "k");
  EXPECT_TRUE(object.symbols()[0].is_kernel);
  EXPECT_EQ(object.symbols()[1].name, "v");
  EXPECT_EQ(object.memory_bytes(), 160U);
  std::vector<std::byte> memory(160);
  object.load(memory.data());
  std::uint64_t pointer = 0;
  std::memcpy(&pointer, memory.data() + 72, sizeof pointer);
  EXPECT_EQ(pointer, reinterpret_cast<std::uint64_t>(memory.data() + 64));
}
TEST(HsaSimCodeObject, OfAnotherGpuIsRefused) {
  EXPECT_EQ(load(small_object(), {"gfx1030", "amdgcn-amd-amdhsa--gfx1030", 0x36, 32}),
            HSA_STATUS_ERROR_INVALID_ISA);
}
TEST(HsaSimCodeObject, CutAnywhereIsRefused) {
  const auto file = small_object();
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<long>(bytes));
    EXPECT_EQ(load(cut), HSA_STATUS_ERROR_INVALID_CODE_OBJECT) << bytes;
  }
}
TEST(HsaSimCodeObject, ChangedAnywhereIsNeverFollowedOutside) {
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    auto file = small_object();
    for (int changes = 0; changes < 3; ++changes) {
      file[random() % file.size()] = static_cast<std::byte>(random());
    }
    if (load(file) != 0) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace hsa_sim
