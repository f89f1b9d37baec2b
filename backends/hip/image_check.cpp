// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <elf.h>

#include "code_object.h"

// What an image is for, and whether the runtime may see it.
namespace lockstep::hip {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;

template <class T>
bool read_at(std::string_view image, std::uint64_t offset, T* value) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return false;
  std::memcpy(value, image.data() + offset, sizeof(T));
  return true;
}

bool cut_short(const std::string& what, std::string_view image, std::string* why) {
  *why = what + " is cut short: it has " + std::to_string(image.size()) + " bytes";
  return false;
}

// "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" → the target; false for the host's entry.
bool target_of_entry(std::string_view id, Target* target) {
  if (!id.starts_with("hip")) return false;
  const std::size_t dashes = id.rfind("--");
  return dashes != id.npos && parse_target(id.substr(dashes + 2), target);
}

bool check_object(std::string_view image, const Target& device, const Version& version,
                  CodeObject* object, std::string* why) {
  if (!read_code_object(image, object, why)) return false;
  // 5.2 was seen with version 4, 5.7 refuses 6.
  const int newest = version.before(5, 3) ? 4 : version.before(6, 0) ? 5 : 6;
  if (version.major < 7 && object->version > newest) {
    *why = "the code object is of format version " + std::to_string(object->version) + ", ROCm " +
           version.text() + " loads up to " + std::to_string(newest) +
           ": build it with -mcode-object-version=4";
    return false;
  }
  if (!runs_on(object->target, device)) {
    *why = "the code object is for " +
           (object->target.base.empty() ? "an unknown architecture" : object->target.text()) +
           ", this device is " + device.text();
    return false;
  }
  return true;
}

}  // namespace

bool read_bundle(std::string_view image, std::vector<BundleEntry>* entries, std::string* why) {
  constexpr const char* kWhat = "the offload bundle";
  entries->clear();
  std::uint64_t at = kBundleMagic.size(), count = 0;
  if (!read_at(image, at, &count)) return cut_short(kWhat, image, why);
  at += sizeof count;
  for (std::uint64_t index = 0; index < count; ++index) {
    std::uint64_t offset = 0, bytes = 0, id_bytes = 0;
    if (!read_at(image, at, &offset) || !read_at(image, at + 8, &bytes) ||
        !read_at(image, at + 16, &id_bytes)) {
      return cut_short(kWhat, image, why);
    }
    at += 24;
    if (at > image.size() || id_bytes > image.size() - at || offset > image.size() ||
        bytes > image.size() - offset) {
      return cut_short(kWhat, image, why);
    }
    entries->push_back({image.substr(at, id_bytes), image.substr(offset, bytes)});
    at += id_bytes;
  }
  return true;
}

bool check_compressed_bundle(std::string_view image, std::string* why) {
  constexpr const char* kWhat = "the compressed offload bundle";
  std::uint16_t version = 0;
  if (!read_at(image, 4, &version)) return cut_short(kWhat, image, why);
  std::uint64_t total = 0;
  std::uint32_t narrow = 0;
  if (version == 2) {  // magic, version, method, u32 of the whole file
    if (!read_at(image, 8, &narrow)) return cut_short(kWhat, image, why);
    total = narrow;
  } else if (version == 3) {  // the same with u64
    if (!read_at(image, 8, &total)) return cut_short(kWhat, image, why);
  } else {
    *why = kWhat + (" is of version " + std::to_string(version)) +
           ", whose length is not known: unbundle it, or build it without compression";
    return false;
  }
  return total <= image.size() || cut_short(kWhat, image, why);
}

bool check_image(std::string_view image, const std::string& device, const Version& version,
                 CodeObject* object, std::string* why) {
  *object = {};
  Target target;
  if (!parse_target(device, &target)) {
    *why = "the device's architecture \"" + device + "\" is none of AMD's";
    return false;
  }
  switch (image_kind(image)) {
    case ImageKind::kCodeObject:
      return check_object(image, target, version, object, why);
    case ImageKind::kCompressedBundle:
      if (version.major < 6) {
        *why = "the offload bundle is compressed, which ROCm " + version.text() +
               " does not load: build it with --no-offload-compress";
        return false;
      }
      return check_compressed_bundle(image, why);
    case ImageKind::kBundle:
      break;
    default:
      *why = "the module is neither an AMDGPU code object nor an offload bundle";
      return false;
  }
  std::vector<BundleEntry> entries;
  if (!read_bundle(image, &entries, why)) return false;
  std::string offered;
  for (const BundleEntry& entry : entries) {
    Target code;
    if (!target_of_entry(entry.id, &code)) continue;
    if (!offered.empty()) offered += ", ";
    offered += code.text();
    if (runs_on(code, target)) return check_object(entry.code, target, version, object, why);
  }
  *why = "the offload bundle has code for " + (offered.empty() ? "no AMD device" : offered) +
         ", this device is " + target.text();
  return false;
}

bool check_cuda_image(std::string_view image, std::string* why) {
  std::uint32_t magic = 0;
  if (!read_at(image, 0, &magic)) return cut_short("the module", image, why);
  if (magic == kFatbinMagic) {
    std::uint16_t header = 0;
    std::uint64_t content = 0;
    const bool whole = read_at(image, 6, &header) && read_at(image, 8, &content) &&
                       content <= image.size() && header <= image.size() - content;
    return whole || cut_short("the fatbin", image, why);
  }
  if (image_kind(image) != ImageKind::kCodeObject) return true;  // PTX, or the driver says what
  Elf64_Ehdr header;
  const bool whole =
      read_at(image, 0, &header) && header.e_shoff <= image.size() &&
      std::uint64_t{header.e_shnum} * header.e_shentsize <= image.size() - header.e_shoff;
  return whole || cut_short("the cubin", image, why);
}

}  // namespace lockstep::hip
