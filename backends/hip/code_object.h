// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../gpu/driver.h"
#include "architecture.h"

// Reader of AMDGPU code objects (ELF files with a note of MessagePack) and of the bundles that hold
// several of them. Runtimes before 7 crash on what is cut short and on code for other devices, and
// none tells how a kernel takes its parameters: the metadata does.
namespace lockstep::hip {

struct KernelArgument {
  std::uint32_t offset = 0, size = 0;
  bool pointer = false;  // to global memory, or to dynamic shared memory
};

struct KernelMetadata {
  std::string name;                       // as it is asked for
  std::string symbol;                     // its descriptor, "name.kd"
  std::vector<KernelArgument> arguments;  // explicit ones, in their order
  std::uint32_t kernarg_bytes = 0, static_shared_bytes = 0, local_bytes = 0;
  std::uint32_t wavefront_size = 0, max_threads_per_block = 0, vgprs = 0, sgprs = 0;
};

struct CodeObject {
  Target target;
  int version = 0;  // of the code object format: 4, 5, 6
  std::vector<KernelMetadata> kernels;
  const KernelMetadata* find(std::string_view name) const;
};

// What an image is, by its first bytes.
enum class ImageKind : std::uint8_t { kCodeObject, kBundle, kCompressedBundle, kOther };
ImageKind image_kind(std::string_view image);

// Reads a whole code object; false with the reason when it is cut short, damaged or no such thing.
bool read_code_object(std::string_view image, CodeObject* object, std::string* why);

struct BundleEntry {
  std::string_view id;    // hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-
  std::string_view code;  // within the bundle
};
bool read_bundle(std::string_view image, std::vector<BundleEntry>* entries, std::string* why);

// Whether a compressed bundle is there as far as its header says. What is in it stays unseen.
bool check_compressed_bundle(std::string_view image, std::string* why);

// Checks an image for a device and a release before the runtime sees it; `object` is what will run
// and stays empty for a compressed bundle.
bool check_image(std::string_view image, const std::string& device, const Version& version,
                 CodeObject* object, std::string* why);
// The same for images of NVIDIA, which a runtime that forwards to CUDA takes.
bool check_cuda_image(std::string_view image, std::string* why);

// The parameters as backends/gpu wants them: sizes that only a scalar has are scalars, pointers are
// told by the metadata, the rest is left to typed launches.
gpu::ParameterLayout layout_of(const KernelMetadata& kernel);

}  // namespace lockstep::hip
