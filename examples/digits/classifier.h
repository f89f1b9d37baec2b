// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/lockstep.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data.h"

namespace digits {

namespace ls = lockstep;

/// A 64-64-32-10 classifier on a device: weights stay there, batches go through.
class Classifier {
 public:
  /// Compiles the kernels and makes room for the weights.
  Classifier(const ls::Device& device, const std::map<std::string, Tensor>& weights);

  /// Copies the weights to the device and waits for it.
  void upload(const ls::Stream& stream, const std::map<std::string, Tensor>& weights) const;

  /// Memory of one batch size. Input and output are pinned, so that a captured graph reads and
  /// writes them anew at every replay.
  struct Batch {
    int size;
    ls::Buffer<float> host_pixels;
    ls::Buffer<int> host_classes;
    ls::Buffer<float> pixels, hidden_1, hidden_2, scores;
    ls::Buffer<int> classes;
  };
  Batch make_batch(int size) const;

  /// Enqueues one batch: copy in, three layers, argmax, copy out.
  void enqueue(const ls::StreamRef& stream, const Batch& batch) const;

 private:
  struct Layer {
    ls::Buffer<float> weight, bias;
    int inputs, outputs;
  };

  ls::Device device_;
  ls::Module module_;
  ls::Kernel dense_relu_, dense_, argmax_;
  std::array<Layer, 3> layers_;
};

}  // namespace digits
