// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

struct Samples {
  std::vector<float> pixels;  ///< kPixels a sample, 0 … 1
  std::vector<int> labels;    ///< 0 … 9
};

/// One sample a line: 64 pixels 0–16 and the label. \throws lockstep::Error (kInvalidFile) with
/// file and line.
Samples read_samples(const std::filesystem::path& path);

struct Tensor {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

/// The float32 tensors of a safetensors file (8 bytes header size, a JSON header, the data).
/// \throws lockstep::Error (kInvalidFile) for anything else.
std::map<std::string, Tensor> read_safetensors(const std::filesystem::path& path);

}  // namespace digits
