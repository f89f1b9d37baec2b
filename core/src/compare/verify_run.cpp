// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/tracer.h>
#include <lockstep/verify.h>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "src/compare/verify_compare.h"
#include "src/compare/verify_values.h"
#include "src/compare/verify_watch.h"
#include "src/record/private_work.h"
#include "src/runtime/states.h"

namespace lockstep {
namespace {

using Bytes = std::vector<std::byte>;
using View = BufferView<std::byte>;

void check(const GraphExec& replay, const std::function<void(Stream&)>& step,
           const VerifyOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::kInvalidArgument, "verify: " + message);
  };
  if (!replay) refuse("the executable graph is empty");
  if (!step) refuse("there is no step to run eagerly");
  if (options.level < VerifyLevel::kValues) return;
  if (options.outputs.empty()) {
    refuse("values (L4) can only be compared where VerifyOptions::outputs names what is written");
  }
  const auto require_memory = [&](const std::vector<View>& views, std::string_view list) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      if (views[i].data() == nullptr || views[i].empty()) {
        refuse(fmt::format("{}[{}] is empty", list, i));
      }
    }
  };
  require_memory(options.outputs, "outputs");
  require_memory(options.in_place, "in_place");
}

/// The memory of a verification: what is compared, and what is put back before each run.
class Memory {
 public:
  Memory(const Stream& stream, const VerifyOptions& options) : stream_(stream) {
    for (std::size_t i = 0; i < options.outputs.size(); ++i) {
      outputs_.push_back(options.outputs[i]);
      compared_.push_back({fmt::format("output {}", i), true, {}, {}, {}, {}});
    }
    for (std::size_t i = 0; i < options.in_place.size(); ++i) {
      const View& view = options.in_place[i];
      in_place_.push_back(view);
      initial_.push_back(read(view));
      // Written too, so compared too; once, when it was also named as an output.
      const bool known = std::any_of(outputs_.begin(), outputs_.end(), [&](const View& output) {
        return output.data() == view.data() && output.size() == view.size();
      });
      if (known) continue;
      outputs_.push_back(view);
      compared_.push_back({fmt::format("in-place {}", i), false, {}, {}, {}, {}});
    }
    // What lies in in-place memory is restored after it was poisoned, so it is not poisoned. Of an
    // output that only overlaps it the rest is, or replay might leave eager's result there.
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      for (std::size_t j = 0; j < in_place_.size(); ++j) {
        const std::ptrdiff_t offset = outputs_[i].data() - in_place_[j].data();
        const auto size = static_cast<std::ptrdiff_t>(outputs_[i].size());
        if (offset < 0 || offset + size > static_cast<std::ptrdiff_t>(in_place_[j].size())) {
          continue;
        }
        compared_[i].poisoned = false;
        const auto first = initial_[j].begin() + offset;
        compared_[i].before.assign(first, first + size);
      }
    }
  }

  void prepare_eager(std::byte poison) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (compared_[i].poisoned) write(outputs_[i], Bytes(outputs_[i].size(), poison));
    }
    restore();
  }
  void prepare_replay() {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (compared_[i].poisoned) {
        write(outputs_[i], verifying::complement(compared_[i].first_eager));
      }
    }
    restore();
  }
  void restore() {
    for (std::size_t i = 0; i < in_place_.size(); ++i) write(in_place_[i], initial_[i]);
  }
  void keep(Bytes verifying::ComparedMemory::*run) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) compared_[i].*run = read(outputs_[i]);
  }
  const std::vector<verifying::ComparedMemory>& compared() const noexcept { return compared_; }

 private:
  Bytes read(const View& view) const {
    Bytes bytes(view.size());
    stream_.copy(std::span<std::byte>(bytes), BufferView<const std::byte>(view));
    stream_.synchronize();
    return bytes;
  }
  void write(const View& view, const Bytes& bytes) const {
    stream_.copy(view, std::span<const std::byte>(bytes));
    stream_.synchronize();
  }

  const Stream& stream_;
  std::vector<View> outputs_, in_place_;
  std::vector<Bytes> initial_;
  std::vector<verifying::ComparedMemory> compared_;
};

}  // namespace

VerifyReport verify(const GraphExec& replay, const std::function<void(Stream&)>& step,
                    const VerifyOptions& options) {
  check(replay, step, options);
  const bool values = options.level >= VerifyLevel::kValues;
  const Device device = replay.device();
  // Nothing below is the caller's work: no trace of theirs may see it.
  const PrivateWork nobody_sees_this;
  // Inputs may have been written on any stream.
  device.synchronize();
  Stream stream = device.create_stream();
  std::optional<Memory> memory;
  if (values) memory.emplace(stream, options);

  TraceFilter this_thread;
  this_thread.threads = {Tracer::this_thread()};
  const void* const backend = &device.state().backend;
  const auto traced = [&](const std::function<void()>& run, bool watched = false) {
    if (options.set_inputs) options.set_inputs(stream);
    device.synchronize();
    LaunchTrace trace(this_thread);
    std::optional<runtime::HostWatch> watch;
    if (watched) watch.emplace();
    run();
    const auto notices = watched ? watch->notices() : std::vector<runtime::HostNotice>();
    watch.reset();
    verifying::mark_streams(notices);
    trace.stop();
    // The step may have used other streams of the device beside the one it was given.
    device.synchronize();
    Trace result = trace.trace();
    verifying::add_notices(result, notices, backend);
    return result;
  };

  if (values) memory->prepare_eager(verifying::kFirstPoison);
  const Trace eager = traced([&] { step(stream); }, true);
  if (values) {
    memory->keep(&verifying::ComparedMemory::first_eager);
    memory->prepare_eager(verifying::kSecondPoison);
    traced([&] { step(stream); });
    memory->keep(&verifying::ComparedMemory::second_eager);
    memory->prepare_replay();
  }
  const Trace replayed = traced([&] { replay.launch(stream); });

  VerifyReport report = verifying::compare(
      eager, replayed, {std::min(options.level, VerifyLevel::kArguments), options.allowed_extra});
  report.requested = options.level;
  if (values) {
    memory->keep(&verifying::ComparedMemory::replay);
    memory->restore();
    // Values are told whatever the levels before say; they are verified only after those.
    const bool equal = verifying::compare_values(memory->compared(), report.findings);
    if (equal && report.verified == VerifyLevel::kArguments) {
      report.verified = VerifyLevel::kValues;
    }
    verifying::sort_findings(report.findings);
  }
  return report;
}

}  // namespace lockstep
