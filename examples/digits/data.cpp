// SPDX-License-Identifier: Apache-2.0
#include "data.h"

#include <lockstep/error.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace digits {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian");

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw lockstep::Error(lockstep::ErrorCode::kInvalidFile, path.string() + ": " + what);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened; --data names the folder of the example's files");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

Samples read_samples(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  Samples samples;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string where = "line " + std::to_string(number);
    std::istringstream fields(line);
    std::string field;
    std::vector<int> values;
    while (std::getline(fields, field, ',')) {
      std::size_t used = 0;
      int value = -1;
      try {
        value = std::stoi(field, &used);
      } catch (const std::logic_error&) {
        refuse(path, where + ": `" + field + "` is not a number");
      }
      if (used != field.size() || value < 0 || value > 16)
        refuse(path, where + ": `" + field + "` is not 0 … 16");
      values.push_back(value);
    }
    if (values.size() != kPixels + 1 || values.back() >= kClasses) {
      refuse(path, where + ": expected 64 pixels and a label 0 … 9");
    }
    for (int i = 0; i < kPixels; ++i)
      samples.pixels.push_back(static_cast<float>(values[i]) / 16.0f);
    samples.labels.push_back(values.back());
  }
  if (samples.labels.empty()) refuse(path, "holds no sample");
  return samples;
}

std::map<std::string, Tensor> read_safetensors(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) refuse(path, "too short for a safetensors file");
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const std::size_t data_begin = sizeof header_size + header_size;
  if (header_size > bytes.size() - sizeof header_size)
    refuse(path, "its header is longer than the file");

  std::map<std::string, Tensor> tensors;
  try {
    const auto header =
        nlohmann::json::parse(bytes.begin() + sizeof header_size,
                              bytes.begin() + static_cast<std::ptrdiff_t>(data_begin));
    for (const auto& [name, description] : header.items()) {
      if (name == "__metadata__") continue;
      if (description.at("dtype") != "F32") refuse(path, "tensor " + name + " is not float32");
      Tensor tensor;
      std::size_t count = 1;
      for (const auto& size : description.at("shape")) {
        tensor.shape.push_back(size.get<std::size_t>());
        count *= tensor.shape.back();
      }
      const auto begin = description.at("data_offsets").at(0).get<std::size_t>();
      const auto end = description.at("data_offsets").at(1).get<std::size_t>();
      if (begin > end || end > bytes.size() - data_begin || end - begin != count * sizeof(float)) {
        refuse(path, "tensor " + name + " does not fit the file");
      }
      tensor.values.resize(count);
      std::memcpy(tensor.values.data(), bytes.data() + data_begin + begin, end - begin);
      tensors.emplace(name, std::move(tensor));
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(path, std::string("its header is not as expected: ") + error.what());
  }
  return tensors;
}

}  // namespace digits
