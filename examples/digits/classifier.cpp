// SPDX-License-Identifier: Apache-2.0
#include "classifier.h"

#include <cstdint>
#include <utility>

#include "digits_kernels.embed.h"

namespace digits {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr const char* kLayerNames[] = {"0", "2", "4"};

std::uint32_t blocks_for(int items) {
  return (static_cast<std::uint32_t>(items) + kThreads - 1) / kThreads;
}

const Tensor& find(const std::map<std::string, Tensor>& weights, const std::string& name) {
  const auto found = weights.find(name);
  if (found == weights.end()) {
    throw ls::Error(ls::ErrorCode::kInvalidFile, "the weights have no tensor named " + name);
  }
  return found->second;
}

}  // namespace

Classifier::Classifier(const ls::Device& device, const std::map<std::string, Tensor>& weights)
    : device_(device),
      module_(device.compile(digits_kernels, {.kernels = {"dense<true>", "dense<false>", "argmax"},
                                              .source_name = "digits.cu"})),
      dense_relu_(module_.kernel("dense<true>")),
      dense_(module_.kernel("dense<false>")),
      argmax_(module_.kernel("argmax")) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Tensor& weight = find(weights, std::string(kLayerNames[i]) + ".weight");
    const Tensor& bias = find(weights, std::string(kLayerNames[i]) + ".bias");
    if (weight.shape.size() != 2 || bias.shape != std::vector<std::size_t>{weight.shape[0]}) {
      throw ls::Error(ls::ErrorCode::kInvalidFile,
                      std::string("layer ") + kLayerNames[i] + " has shapes that do not fit");
    }
    layers_[i].inputs = static_cast<int>(weight.shape[1]);
    layers_[i].outputs = static_cast<int>(weight.shape[0]);
    layers_[i].weight = device.allocate<float>(weight.values.size());
    layers_[i].bias = device.allocate<float>(bias.values.size());
  }
}

void Classifier::upload(const ls::Stream& stream,
                        const std::map<std::string, Tensor>& weights) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    stream.copy(layers_[i].weight, find(weights, std::string(kLayerNames[i]) + ".weight").values);
    stream.copy(layers_[i].bias, find(weights, std::string(kLayerNames[i]) + ".bias").values);
  }
  stream.synchronize();
}

Classifier::Batch Classifier::make_batch(int size) const {
  const auto rows = static_cast<std::size_t>(size);
  Batch batch{size,
              device_.allocate_pinned<float>(rows * kPixels),
              device_.allocate_pinned<int>(rows),
              device_.allocate<float>(rows * kPixels),
              device_.allocate<float>(rows * static_cast<std::size_t>(layers_[0].outputs)),
              device_.allocate<float>(rows * static_cast<std::size_t>(layers_[1].outputs)),
              device_.allocate<float>(rows * kClasses),
              device_.allocate<int>(rows)};
  return batch;
}

void Classifier::enqueue(const ls::StreamRef& stream, const Batch& batch) const {
  stream.copy(batch.pixels, batch.host_pixels);
  const auto layer = [&](const ls::Kernel& kernel, const Layer& weights,
                         const ls::Buffer<float>& input, const ls::Buffer<float>& output) {
    stream.launch(kernel, {.grid = blocks_for(batch.size * weights.outputs), .block = kThreads},
                  input, weights.weight, weights.bias, output, batch.size, weights.inputs,
                  weights.outputs);
  };
  layer(dense_relu_, layers_[0], batch.pixels, batch.hidden_1);
  layer(dense_relu_, layers_[1], batch.hidden_1, batch.hidden_2);
  layer(dense_, layers_[2], batch.hidden_2, batch.scores);
  stream.launch(argmax_, {.grid = blocks_for(batch.size), .block = kThreads}, batch.scores,
                batch.classes, batch.size, kClasses);
  stream.copy(batch.host_classes, batch.classes);
}

}  // namespace digits
