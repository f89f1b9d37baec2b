// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// CUDA_VISIBLE_DEVICES as the real driver was seen to read it (docs/cuda-measured.md, DEV-04).
namespace cuda_sim {

struct VisibleDevices {
  int code = 0;                        // what cuInit answers: 0, 100 or 101
  std::vector<std::uint32_t> devices;  // by visible ordinal
};

// `list`: null where the variable is not set. Entries count up to the first that names nothing; a
// device named twice is an error.
VisibleDevices read_visible_devices(const char* list, std::uint32_t count);

// Read once, at cuInit. Never destroyed.
const VisibleDevices& visible();

// The 16 bytes of a device's uuid.
std::string uuid_of(std::uint32_t device);

}  // namespace cuda_sim
