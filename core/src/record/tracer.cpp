// SPDX-License-Identifier: Apache-2.0
#include <lockstep/tracer.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "src/record/local_recorder.h"

namespace lockstep {

using record::LocalRecorder;
using record::MemoryTrace;

struct LaunchTrace::State {
  ~State() {
    if (trace) LocalRecorder::get().discard(std::move(trace));
  }

  std::unique_ptr<MemoryTrace> trace;
  std::vector<OperationKind> kinds;
  bool taken = false;
};

LaunchTrace::LaunchTrace(const TraceFilter& filter) : state_(std::make_unique<State>()) {
  state_->kinds = filter.kinds;
  state_->trace = LocalRecorder::get().open(filter);
}

LaunchTrace::LaunchTrace(LaunchTrace&&) noexcept = default;

LaunchTrace& LaunchTrace::operator=(LaunchTrace&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

LaunchTrace::~LaunchTrace() { stop(); }

void LaunchTrace::stop() {
  if (state_) LocalRecorder::get().close(*state_->trace);
}

bool LaunchTrace::active() const noexcept {
  return state_ && state_->trace->open && LocalRecorder::get().is_current(*state_->trace);
}

Trace LaunchTrace::trace() {
  stop();
  return snapshot();
}

Trace LaunchTrace::snapshot() const {
  if (!state_ || !LocalRecorder::get().is_current(*state_->trace)) return {};
  return LocalRecorder::get().snapshot(*state_->trace);
}

std::vector<LaunchTraceEntry> LaunchTrace::take(const ViewOptions& options) {
  stop();
  if (!state_ || std::exchange(state_->taken, true)) return {};
  ViewOptions wanted = options;
  if (wanted.kinds.empty()) wanted.kinds = state_->kinds;
  return view(snapshot(), wanted);
}

void Tracer::begin() { LocalRecorder::get().begin_global(); }

std::vector<LaunchTraceEntry> Tracer::take(const ViewOptions& options) {
  return view(take_trace(), options);
}

Trace Tracer::take_trace() {
  LocalRecorder* recorder = LocalRecorder::existing();
  if (recorder == nullptr) return {};
  const std::unique_ptr<MemoryTrace> trace = recorder->end_global();
  return trace ? trace->trace() : Trace{};
}

bool Tracer::active() noexcept {
  LocalRecorder* recorder = LocalRecorder::existing();
  return recorder != nullptr && recorder->global_is_open();
}

std::uint64_t Tracer::this_thread() noexcept {
  LocalRecorder* recorder = LocalRecorder::existing();
  return (recorder != nullptr ? recorder->api() : *recorder::api()).this_thread();
}

namespace {

constexpr std::uint32_t kPoint = 0;
constexpr std::uint32_t kPush = 1;
constexpr std::uint32_t kPop = 2;

/// Of a program that is recorded from outside and has opened no device and no trace; null for all
/// others. What is wrong with the environment was said where it was found.
const LocalRecorder* recorder_of_environment() noexcept {
  static const LocalRecorder* const asked_for = []() -> const LocalRecorder* {
    const auto is_set = [](const char* name) {
      const char* value = secure_getenv(name);
      return value != nullptr && *value != '\0';
    };
    if (!is_set("LOCKSTEP_RECORD_DIR") && !is_set("LOCKSTEP_TRACE")) return nullptr;
    try {
      return &LocalRecorder::get();
    } catch (const std::exception&) {
      return nullptr;
    }
  }();
  return asked_for;
}

/// Null when no trace is open.
const lockstep_recorder* wanted_table() noexcept {
  const LocalRecorder* recorder = LocalRecorder::existing();
  if (recorder == nullptr) recorder = recorder_of_environment();
  if (recorder == nullptr) return nullptr;
  const lockstep_recorder* table = recorder->api().table;
  return __atomic_load_n(table->active, __ATOMIC_RELAXED) != 0 ? table : nullptr;
}

void record_mark(const lockstep_recorder& table, std::uint32_t name, std::uint32_t which) noexcept {
  lockstep_record record{};
  record.struct_size = sizeof(record);
  record.kind = LOCKSTEP_RECORD_MARK;
  record.name = name;
  record.of.mark.mark = which;
  table.end(table.begin(&record), 0, 0, -1);
}

}  // namespace

void mark(std::string_view name) noexcept {
  const lockstep_recorder* table = wanted_table();
  if (table != nullptr) record_mark(*table, table->intern(name.data(), name.size()), kPoint);
}

MarkRange::MarkRange(std::string_view name) noexcept : name_(0) {
  const lockstep_recorder* table = wanted_table();
  if (table == nullptr) return;
  name_ = table->intern(name.data(), name.size());
  if (name_ != 0) record_mark(*table, name_, kPush);
}

MarkRange::MarkRange(MarkRange&& other) noexcept : name_(std::exchange(other.name_, 0)) {}

MarkRange::~MarkRange() {
  if (name_ == 0) return;
  const lockstep_recorder* table = wanted_table();
  if (table != nullptr) record_mark(*table, name_, kPop);
}

}  // namespace lockstep
