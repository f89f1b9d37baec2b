// SPDX-License-Identifier: Apache-2.0
// Classifies 360 real handwritten digits eagerly and by captured graphs, proves that the two do the
// same, and writes what was launched.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "classifier.h"
#include "example.h"

namespace {

namespace ls = lockstep;
using digits::Classifier;

constexpr int kBatchSizes[] = {1, 8, 64};

/// Feeds all samples through `run_batch`, a batch at a time, and returns the classes. The last
/// batch is filled up with blank rows.
std::vector<int> classify(const digits::Samples& samples, const Classifier::Batch& batch,
                          const ls::Stream& stream, const std::function<void()>& run_batch) {
  const std::size_t count = samples.labels.size();
  const auto rows = static_cast<std::size_t>(batch.size);
  std::vector<int> classes;
  for (std::size_t first = 0; first < count; first += rows) {
    const std::size_t used = std::min(rows, count - first);
    const auto pixels = batch.host_pixels.span();
    std::fill(pixels.begin(), pixels.end(), 0.0f);
    std::copy_n(samples.pixels.begin() + static_cast<std::ptrdiff_t>(first * digits::kPixels),
                used * digits::kPixels, pixels.begin());
    run_batch();
    stream.synchronize();
    const auto result = batch.host_classes.span();
    classes.insert(classes.end(), result.begin(),
                   result.begin() + static_cast<std::ptrdiff_t>(used));
  }
  return classes;
}

int count_right(const std::vector<int>& classes, const std::vector<int>& labels) {
  int right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += classes[i] == labels[i] ? 1 : 0;
  return right;
}

void write(const example::Options& options, const char* name, const ls::Trace& trace) {
  if (options.output.empty()) return;
  ls::write_trace(options.output / name, trace, {.force = true});
  std::cout << "wrote " << (options.output / name).string() << '\n';
}

int run(const example::Options& options) {
  const digits::Samples samples = digits::read_samples(options.data / "digits_test.csv");
  const auto weights = digits::read_safetensors(options.data / "digits_mlp.safetensors");

  const ls::Device device = ls::Device::open(options.device);
  ls::Stream stream = device.create_stream();
  example::print_device(device);

  // Eager: every batch size in turn, all of it in one trace.
  const Classifier classifier(device, weights);
  ls::LaunchTrace eager_trace;
  classifier.upload(stream, weights);
  std::vector<Classifier::Batch> batches;
  for (const int size : kBatchSizes) batches.push_back(classifier.make_batch(size));
  std::vector<std::vector<int>> eager;
  for (const auto& batch : batches) {
    eager.push_back(classify(samples, batch, stream, [&] { classifier.enqueue(stream, batch); }));
  }
  const ls::Trace eager_recording = eager_trace.trace();

  // Replay: the same work, launched by one graph a batch size. The weights go up again, so that the
  // two traces hold the same operations; the captures are recorded too, so that `lockstep verify`
  // can compare each graph with what was captured.
  ls::LaunchTrace replay_trace;
  classifier.upload(stream, weights);
  std::vector<ls::GraphExec> graphs;
  for (const auto& batch : batches) {
    graphs.push_back(
        stream.capture([&](ls::Stream& s) { classifier.enqueue(s, batch); }).instantiate());
  }
  bool same = true;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    same = classify(samples, batches[i], stream, [&] { graphs[i].launch(stream); }) == eager[i] &&
           same;
  }
  const ls::Trace replay_recording = replay_trace.trace();

  bool verified = true;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto& batch = batches[i];
    ls::VerifyOptions verify;
    verify.level = ls::VerifyLevel::kValues;
    verify.outputs = {ls::as_bytes(batch.scores), ls::as_bytes(batch.classes),
                      ls::as_bytes(batch.host_classes)};
    verify.set_inputs = [&](ls::StreamRef&) {
      const auto pixels = batch.host_pixels.span();
      for (std::size_t p = 0; p < pixels.size(); ++p) {
        pixels[p] = samples.pixels[(p + 17 * digits::kPixels) % samples.pixels.size()];
      }
    };
    const ls::VerifyReport report = ls::verify(
        graphs[i], [&](ls::Stream& s) { classifier.enqueue(s, batch); }, verify);
    std::cout << "batch " << batch.size << ": " << count_right(eager[i], samples.labels) << " of "
              << samples.labels.size() << " right, graph of " << graphs[i].graph().node_count()
              << " nodes, " << (report.ok() ? "replay verified (L0-L4)" : "replay NOT verified")
              << '\n';
    if (!report.ok()) std::cout << report;
    verified = verified && report.ok();
  }

  const ls::DiffReport difference = ls::diff(eager_recording, replay_recording);
  std::cout << "eager and replay traces: " << difference.left_entries << " and "
            << difference.right_entries << " entries, "
            << (difference.equal ? "equal" : "DIFFERENT") << '\n';
  write(options, "digits-eager.jsonl", eager_recording);
  write(options, "digits-replay.jsonl", replay_recording);
  if (!same) std::cout << "replay gave other classes than eager\n";
  return same && verified && difference.equal ? example::kDone : example::kDifferent;
}

/// The folder of the data: in the source tree when built there, else beside the installed program.
std::filesystem::path default_data() {
  std::filesystem::path source = LOCKSTEP_DIGITS_SOURCE_DATA;
  if (std::filesystem::exists(source)) return source;
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / LOCKSTEP_DIGITS_INSTALLED_DATA;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Classifies 360 handwritten digits, eagerly and by graphs.",
                      default_data(), run);
}
