// SPDX-License-Identifier: Apache-2.0
#include "code_object.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

#include "msgpack.h"

namespace lockstep::hip {
namespace {

constexpr std::uint16_t kMachineAmdgpu = 224;
constexpr unsigned char kAbiHsa = 64;
constexpr std::uint32_t kNoteMetadata = 32;
constexpr char kNoteOwner[] = "AMDGPU";  // a note stores its end too

template <class T>
bool read_at(std::string_view image, std::uint64_t offset, T* value) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return false;
  std::memcpy(value, image.data() + offset, sizeof(T));
  return true;
}
bool holds(std::string_view image, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset;
}

bool cut_short(std::string_view image, const char* what, std::string* why) {
  *why = what;
  *why += " is cut short or damaged: it has " + std::to_string(image.size()) + " bytes";
  return false;
}

bool read_argument(MsgpackReader& reader, std::vector<KernelArgument>* arguments) {
  std::uint32_t pairs = 0;
  if (!reader.map(&pairs)) return false;
  KernelArgument argument;
  std::string_view kind;
  for (std::uint32_t index = 0; index < pairs; ++index) {
    std::string_view key;
    std::uint64_t number = 0;
    if (!reader.text(&key)) return false;
    if (key == ".offset" || key == ".size") {
      if (!reader.number(&number)) return false;
      (key == ".size" ? argument.size : argument.offset) = static_cast<std::uint32_t>(number);
    } else if (key == ".value_kind") {
      if (!reader.text(&kind)) return false;
    } else if (!reader.skip()) {
      return false;
    }
  }
  // What the compiler adds for itself comes last and is not the program's.
  if (kind.starts_with("hidden_")) return true;
  argument.pointer = kind == "global_buffer" || kind == "dynamic_shared_pointer";
  arguments->push_back(argument);
  return true;
}

bool read_kernel(MsgpackReader& reader, KernelMetadata* kernel) {
  const struct {
    std::string_view key;
    std::uint32_t* value;
  } numbers[] = {{".kernarg_segment_size", &kernel->kernarg_bytes},
                 {".group_segment_fixed_size", &kernel->static_shared_bytes},
                 {".private_segment_fixed_size", &kernel->local_bytes},
                 {".wavefront_size", &kernel->wavefront_size},
                 {".max_flat_workgroup_size", &kernel->max_threads_per_block},
                 {".vgpr_count", &kernel->vgprs},
                 {".sgpr_count", &kernel->sgprs}};
  std::uint32_t pairs = 0;
  if (!reader.map(&pairs)) return false;
  for (std::uint32_t index = 0; index < pairs; ++index) {
    std::string_view key, text;
    if (!reader.text(&key)) return false;
    const auto* number = std::find_if(std::begin(numbers), std::end(numbers),
                                      [&](const auto& known) { return known.key == key; });
    if (number != std::end(numbers)) {
      std::uint64_t value = 0;
      if (!reader.number(&value)) return false;
      *number->value = static_cast<std::uint32_t>(value);
    } else if (key == ".name" || key == ".symbol") {
      if (!reader.text(&text)) return false;
      (key == ".name" ? kernel->name : kernel->symbol) = text;
    } else if (key == ".args") {
      std::uint32_t count = 0;
      if (!reader.array(&count)) return false;
      for (std::uint32_t argument = 0; argument < count; ++argument) {
        if (!read_argument(reader, &kernel->arguments)) return false;
      }
    } else if (!reader.skip()) {
      return false;
    }
  }
  return !kernel->name.empty();
}

bool read_metadata(std::string_view bytes, CodeObject* object) {
  MsgpackReader reader(bytes);
  std::uint32_t pairs = 0;
  if (!reader.map(&pairs)) return false;
  for (std::uint32_t index = 0; index < pairs; ++index) {
    std::string_view key;
    if (!reader.text(&key)) return false;
    if (key == "amdhsa.kernels") {
      std::uint32_t count = 0;
      if (!reader.array(&count)) return false;
      for (std::uint32_t kernel = 0; kernel < count; ++kernel) {
        KernelMetadata read;
        if (!read_kernel(reader, &read)) return false;
        object->kernels.push_back(std::move(read));
      }
    } else if (key == "amdhsa.target") {
      std::string_view text;
      if (!reader.text(&text)) return false;
      const std::size_t dashes = text.rfind("--");
      Target target;
      // Names the architectures whose number is not known here.
      if (object->target.base.empty() && dashes != text.npos &&
          parse_target(text.substr(dashes + 2), &target)) {
        object->target = target;
      }
    } else if (!reader.skip()) {
      return false;
    }
  }
  return true;
}

// The metadata note among the notes of one segment; false when they are damaged.
bool find_metadata(std::string_view notes, std::string_view* metadata) {
  const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof header);
    const std::uint64_t name_at = sizeof header;
    const std::uint64_t text_at = name_at + padded(header.n_namesz);
    if (!holds(notes, text_at, header.n_descsz)) return false;
    const std::string_view name = notes.substr(name_at, header.n_namesz);
    if (header.n_type == kNoteMetadata && name == std::string_view(kNoteOwner, sizeof kNoteOwner)) {
      *metadata = notes.substr(text_at, header.n_descsz);
    }
    notes.remove_prefix(std::min<std::uint64_t>(notes.size(), text_at + padded(header.n_descsz)));
  }
  return true;
}

bool check_sections(std::string_view image, const Elf64_Ehdr& header) {
  if (header.e_shnum == 0) return true;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      !holds(image, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) {
    return false;
  }
  for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr section;
    if (!read_at(image, header.e_shoff + index * sizeof section, &section)) return false;
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
        !holds(image, section.sh_offset, section.sh_size)) {
      return false;
    }
  }
  return true;
}

}  // namespace

const KernelMetadata* CodeObject::find(std::string_view name) const {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const KernelMetadata& known) { return known.name == name; });
  return found == kernels.end() ? nullptr : &*found;
}

ImageKind image_kind(std::string_view image) {
  if (image.starts_with(std::string_view(ELFMAG, SELFMAG))) return ImageKind::kCodeObject;
  if (image.starts_with("__CLANG_OFFLOAD_BUNDLE__")) return ImageKind::kBundle;
  if (image.starts_with("CCOB")) return ImageKind::kCompressedBundle;
  return ImageKind::kOther;
}

bool read_code_object(std::string_view image, CodeObject* object, std::string* why) {
  constexpr const char* kWhat = "the code object";
  *object = {};
  Elf64_Ehdr header;
  if (!read_at(image, 0, &header)) return cut_short(image, kWhat, why);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachineAmdgpu ||
      header.e_ident[EI_OSABI] != kAbiHsa) {
    *why = "the module is an ELF file for machine " + std::to_string(header.e_machine) +
           ", not a code object for AMD's HSA";
    return false;
  }
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      !holds(image, header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !check_sections(image, header)) {
    return cut_short(image, kWhat, why);
  }
  object->version = header.e_ident[EI_ABIVERSION] + 2;
  object->target = target_of_flags(header.e_flags);
  std::string_view metadata;
  for (std::uint64_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment;
    if (!read_at(image, header.e_phoff + index * sizeof segment, &segment) ||
        !holds(image, segment.p_offset, segment.p_filesz)) {
      return cut_short(image, kWhat, why);
    }
    if (segment.p_type == PT_NOTE &&
        !find_metadata(image.substr(segment.p_offset, segment.p_filesz), &metadata)) {
      return cut_short(image, kWhat, why);
    }
  }
  if (metadata.empty()) {
    *why = "the code object has no metadata of its kernels";
    return false;
  }
  if (!read_metadata(metadata, object)) {
    *why = "the code object's metadata of its kernels is damaged";
    return false;
  }
  return true;
}

gpu::ParameterLayout layout_of(const KernelMetadata& kernel) {
  gpu::ParameterLayout layout;
  layout.known = true;
  for (const KernelArgument& argument : kernel.arguments) {
    lockstep_parameter parameter{};
    parameter.offset = argument.offset;
    parameter.size = argument.size;
    const bool small = argument.size == 1 || argument.size == 2 || argument.size == 4;
    parameter.tag = argument.pointer ? 1 : small ? 0 : 255;
    layout.parameters.push_back(parameter);
  }
  return layout;
}

}  // namespace lockstep::hip
