// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <span>
#include <vector>

// What the simulated NVRTC gives as a cubin: an image of hostjit in an envelope that begins as an
// ELF file for NVIDIA's machines does, because the driver is handed no length and has to find it.
namespace cuda_sim {

struct Envelope {
  Elf64_Ehdr header;
  char mark[8];
  std::uint64_t bytes;  // of the image that follows
};
inline constexpr char kEnvelopeMark[8] = {'C', 'U', 'D', 'A', '_', 'S', 'I', 'M'};

inline std::vector<char> wrap_image(std::span<const std::byte> image) {
  Envelope envelope{};
  std::memcpy(envelope.header.e_ident, ELFMAG, SELFMAG);
  envelope.header.e_ident[EI_CLASS] = ELFCLASS64;
  envelope.header.e_ident[EI_DATA] = ELFDATA2LSB;
  envelope.header.e_ident[EI_VERSION] = EV_CURRENT;
  envelope.header.e_machine = 190;  // EM_CUDA
  envelope.header.e_ehsize = sizeof(Elf64_Ehdr);
  // No sections, whose table would stand at the end: who checks files for being whole finds it so.
  envelope.header.e_shoff = sizeof envelope + image.size();
  std::memcpy(envelope.mark, kEnvelopeMark, sizeof envelope.mark);
  envelope.bytes = image.size();
  std::vector<char> wrapped(sizeof envelope + image.size());
  std::memcpy(wrapped.data(), &envelope, sizeof envelope);
  std::memcpy(wrapped.data() + sizeof envelope, image.data(), image.size());
  return wrapped;
}

// Empty when it is something else, of which no more than its beginning is read.
inline std::span<const std::byte> unwrap_image(const void* wrapped) {
  if (std::memcmp(wrapped, ELFMAG, SELFMAG) != 0) return {};
  Elf64_Ehdr header;
  std::memcpy(&header, wrapped, sizeof header);
  if (header.e_machine != 190 || header.e_shoff < sizeof(Envelope) || header.e_shnum != 0) {
    return {};
  }
  Envelope envelope;
  std::memcpy(&envelope, wrapped, sizeof envelope);
  if (std::memcmp(envelope.mark, kEnvelopeMark, sizeof envelope.mark) != 0 ||
      envelope.bytes != header.e_shoff - sizeof envelope) {
    return {};
  }
  return {static_cast<const std::byte*>(wrapped) + sizeof envelope, envelope.bytes};
}

}  // namespace cuda_sim
