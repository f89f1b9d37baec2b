// SPDX-License-Identifier: Apache-2.0
#include "src/record/local_recorder.h"

#include <lockstep/error.h>

#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <optional>
#include <pthread.h>
#include <signal.h>
#include <thread>

#include "recorder/memory.h"
#include "src/record/host_recorder.h"
#include "src/record/trace_name.h"
#include "src/trace/trace_decode.h"

namespace lockstep::record {
namespace {

std::atomic<LocalRecorder*> g_recorder{nullptr};

/// Outlives static objects, as everything here has to.
struct Preparation {
  std::mutex mutex;
  std::optional<Error> failure;
};
Preparation& preparation() {
  static auto* const instance = new Preparation;
  return *instance;
}

const recorder::Api& find_api() {
  // A preload library's recorder sees more than this one would: it is used instead.
  if (void* symbol = dlsym(RTLD_DEFAULT, recorder::kPreloadSymbol)) {
    const auto* api = reinterpret_cast<recorder::PreloadFunction>(symbol)();
    if (api->version != recorder::kLayoutVersion || api->size < sizeof(recorder::Api)) {
      throw Error(ErrorCode::kIncompatiblePlugin,
                  "the preloaded Lockstep recorder is of another version than this library: use "
                  "the `lockstep` of the same installation");
    }
    return *api;
  }
  return *recorder::api();
}

}  // namespace

/// The consumer's side of this process's rings.
struct LocalRecorder::Segment {
  Segment(const recorder::Api& api, recorder::Control& control_block, std::uint64_t first)
      : control(control_block),
        reader(control_block, recorder::kLocalConsumer, api.ring, first),
        assembler(control_block) {
    const char* text = nullptr;
    std::size_t length = 0;
    for (std::uint32_t id = 1; api.text(id, &text, &length); ++id) {
      assembler.add_text(id, {text, length});
    }
    assembler.set_command(own_command());
  }

  /// Records that were lost so far, but for those in rings that were given up.
  std::uint64_t dropped() const {
    return control.dropped.load(std::memory_order_relaxed) + assembler.damaged_records();
  }
  /// What a trace has lost that began when dropped() was `before`. A ring that was given up goes on
  /// losing what is put into it.
  std::uint64_t dropped_since(std::uint64_t before) const {
    return dropped() - before + reader.damaged_rings();
  }

  recorder::Control& control;
  SegmentReader reader;
  Assembler assembler;
};

Trace MemoryTrace::trace() const {
  Trace result = output.trace(builder);
  result.info = info;
  result.footer = footer;
  result.footer.present = true;
  result.footer.entries = result.entries.size();
  result.footer.racing = builder.racing();
  return result;
}

LocalRecorder::LocalRecorder(const recorder::Api& api)
    : api_(api), first_([&] {
        static constexpr recorder::LocalConsumerHooks kHooks = {on_wake, on_before_fork,
                                                                on_after_fork};
        return api.attach(&kHooks);
      }()) {}

LocalRecorder* LocalRecorder::existing() noexcept {
  return g_recorder.load(std::memory_order_acquire);
}

/// Takes the lock in turn with the thread that drains, which would else take it again at once for
/// as long as launches come.
class LocalRecorder::Turn {
 public:
  explicit Turn(LocalRecorder& recorder) : recorder_(recorder) {
    while (recorder.exiting_.load(std::memory_order_relaxed)) pause();
    recorder.waiting_.fetch_add(1, std::memory_order_relaxed);
    recorder.mutex_.lock();
    recorder.waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  ~Turn() { recorder_.mutex_.unlock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// What was enqueued before the call. A thread that forks may have the lock in between.
  void drain() const {
    const std::uint64_t until = recorder_.enqueued();
    while (!recorder_.drain(until, &recorder_.forks_waiting_)) {
      recorder_.mutex_.unlock();
      while (recorder_.forks_waiting_.load(std::memory_order_relaxed) != 0) pause();
      recorder_.mutex_.lock();
    }
  }
  /// While another thread is to have the lock.
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

 private:
  LocalRecorder& recorder_;
};

LocalRecorder& LocalRecorder::get() {
  if (LocalRecorder* recorder = existing()) return *recorder;
  Preparation& state = preparation();
  const std::lock_guard lock(state.mutex);
  if (LocalRecorder* recorder = existing()) return *recorder;
  if (state.failure) throw *state.failure;
  try {
    const recorder::Api& api = find_api();
    char message[512] = {};
    if (!api.prepare(message, sizeof(message))) {
      throw Error(ErrorCode::kInvalidArgument, message);
    }
    prepare_json();
    std::unique_ptr<SelfRecording> file = SelfRecording::from_environment(api);
    auto* recorder = new LocalRecorder(api);
    if (file) {
      recorder->file_ = std::move(file);
      recorder->wants_thread_.store(true, std::memory_order_relaxed);
      api.want(recorder::kWantedByFile, true);
    }
    g_recorder.store(recorder, std::memory_order_release);
    // A record made before this had nobody to wake.
    if (recorder->file_ && api.control(false) != nullptr) recorder->start_thread();
    return *recorder;
  } catch (const Error& error) {
    state.failure = error;
    std::fprintf(stderr, "lockstep: %s\n", error.what());
    throw;
  }
}

LocalRecorder::Segment* LocalRecorder::segment() {
  if (segment_) return segment_.get();
  recorder::Control* control = api_.control(false);
  if (control == nullptr) return nullptr;
  segment_ = std::make_unique<Segment>(
      api_, *control, generation_.load(std::memory_order_relaxed) == 1 ? first_ : 0);
  if (file_) file_->connect(segment_->assembler, *control);
  return segment_.get();
}

std::uint64_t LocalRecorder::enqueued() {
  const Segment* current = finished_ ? nullptr : segment();
  return current == nullptr ? 0 : current->control.sequence.load(std::memory_order_acquire);
}

bool LocalRecorder::drain(std::uint64_t until, const std::atomic<std::uint32_t>* give_way) {
  Segment* current = finished_ ? nullptr : segment();
  if (current == nullptr) return true;
  current->assembler.clock().update();
  current->reader.drain(until, true, current->assembler, give_way);
  report_failure();
  return current->reader.expected() >= until;
}

void LocalRecorder::report_failure() {
  if (file_) file_->report_failure();
}

std::unique_ptr<MemoryTrace> LocalRecorder::open(const TraceFilter& filter) {
  // Before our lock is taken: a fork takes the recorder's first.
  api_.control(true);
  const Turn lock(*this);
  Segment* current = finished_ ? nullptr : segment();
  if (current == nullptr) {
    throw Error(ErrorCode::kUnavailable, finished_
                                             ? "a trace cannot begin: the process is exiting"
                                             : "a trace cannot begin: the recorder has no memory");
  }
  auto trace = std::make_unique<MemoryTrace>(
      filter, current->control.sequence.load(std::memory_order_acquire),
      recorder::monotonic_nanoseconds());
  if (api_.private_work(0) != 0) trace->builder.make_private();
  trace->generation = generation_.load(std::memory_order_relaxed);
  trace->footer.dropped = current->dropped();
  trace->footer.stalls = current->control.stalls.load(std::memory_order_relaxed);
  current->assembler.add_trace(&trace->builder);
  if (open_traces_++ == 0) api_.want(recorder::kWantedByTraces, true);
  return trace;
}

void LocalRecorder::remove(MemoryTrace& trace) {
  trace.open = false;
  if (!is_current(trace)) return;
  if (segment_) {
    trace.info = segment_->assembler.info();
    trace.footer.dropped = segment_->dropped_since(trace.footer.dropped);
    trace.footer.stalls =
        segment_->control.stalls.load(std::memory_order_relaxed) - trace.footer.stalls;
    trace.footer.coverage = segment_->assembler.coverage();
    segment_->assembler.remove_trace(&trace.builder);
  }
  if (--open_traces_ == 0) api_.want(recorder::kWantedByTraces, false);
}

void LocalRecorder::close(MemoryTrace& trace) noexcept {
  const Turn lock(*this);
  if (!trace.open) return;
  lock.drain();
  remove(trace);
}

void LocalRecorder::discard(std::unique_ptr<MemoryTrace> trace) noexcept {
  if (trace == nullptr || is_current(*trace)) return;
  const Turn lock(*this);
  traces_of_parents_.push_back(std::move(trace));
}

Trace LocalRecorder::snapshot(const MemoryTrace& trace) {
  const Turn lock(*this);
  if (trace.open && is_current(trace)) lock.drain();
  Trace result = trace.trace();
  if (trace.open && segment_) {
    result.info = segment_->assembler.info();
    result.footer.dropped = segment_->dropped_since(trace.footer.dropped);
    result.footer.stalls =
        segment_->control.stalls.load(std::memory_order_relaxed) - trace.footer.stalls;
  }
  return result;
}

bool LocalRecorder::is_current(const MemoryTrace& trace) const noexcept {
  return trace.generation == generation_.load(std::memory_order_relaxed);
}

void LocalRecorder::begin_global() {
  std::unique_ptr<MemoryTrace> fresh = open({});
  std::unique_ptr<MemoryTrace> old;
  const Turn lock(*this);
  old = std::exchange(global_, std::move(fresh));
  if (old) remove(*old);
}

std::unique_ptr<MemoryTrace> LocalRecorder::end_global() noexcept {
  const Turn lock(*this);
  if (!global_) return nullptr;
  lock.drain();
  if (!global_) return nullptr;  // another thread ended it meanwhile
  remove(*global_);
  return std::move(global_);
}

bool LocalRecorder::global_is_open() noexcept {
  const Turn lock(*this);
  return global_ != nullptr;
}

void LocalRecorder::on_wake(bool filling) noexcept {
  // The launching thread may hold the recorder's locks: nothing here takes one of ours.
  LocalRecorder* self = existing();
  if (self == nullptr) return;
  if (!filling && !self->wants_thread_.load(std::memory_order_relaxed)) return;
  self->start_thread();
  self->wake_.fetch_add(1, std::memory_order_release);
  recorder::futex_wake(&self->wake_);
}

void LocalRecorder::start_thread() noexcept {
  if (thread_runs_.exchange(true)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's business
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, run_thread, this) != 0) thread_runs_.store(false);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* LocalRecorder::run_thread(void* argument) {
  constexpr std::uint64_t kFlushInterval = 50'000'000;  // half of what a killed program may lose
  constexpr std::uint64_t kIdleInterval = 3'600'000'000'000;
  auto* self = static_cast<LocalRecorder*>(argument);
  for (;;) {
    while (self->waiting_.load(std::memory_order_relaxed) != 0) Turn::pause();
    const std::uint32_t seen = self->wake_.load(std::memory_order_acquire);
    bool writes_file = false, complete = false;
    {
      const std::lock_guard lock(self->mutex_);
      complete = self->drain(self->enqueued(), &self->waiting_);
      if (self->file_ && !self->finished_) {
        self->file_->flush_old();
        self->report_failure();
        writes_file = true;
      }
    }
    if (!complete) continue;
    recorder::futex_wait(&self->wake_, seen, writes_file ? kFlushInterval : kIdleInterval);
  }
  return nullptr;
}

void LocalRecorder::on_before_fork() noexcept {
  LocalRecorder* self = existing();
  if (self == nullptr) return;
  self->waiting_.fetch_add(1, std::memory_order_relaxed);
  self->forks_waiting_.fetch_add(1, std::memory_order_relaxed);
  self->mutex_.lock();
  self->forks_waiting_.fetch_sub(1, std::memory_order_relaxed);
  self->waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void LocalRecorder::on_after_fork(bool child) noexcept {
  LocalRecorder* self = existing();
  if (self == nullptr) return;
  if (child) {
    self->generation_.fetch_add(1, std::memory_order_relaxed);
    self->waiting_.store(0, std::memory_order_relaxed);
    self->forks_waiting_.store(0, std::memory_order_relaxed);
    self->exiting_.store(false, std::memory_order_relaxed);
    // All of it is kept: to free it would copy, page by page, whatever the parent has recorded.
    self->segments_of_parents_.push_back(std::move(self->segment_));
    self->traces_of_parents_.push_back(std::move(self->global_));
    if (self->file_) {
      // This too because closing it would write the parent's buffer into the parent's file.
      auto fresh = self->file_->for_child();
      self->files_of_parents_.push_back(std::move(self->file_));
      self->file_ = std::move(fresh);
    }
    self->open_traces_ = 0;
    self->thread_runs_.store(false, std::memory_order_relaxed);
  }
  self->mutex_.unlock();
}

void LocalRecorder::on_exit() noexcept {
  // After the static objects of programs, so that what those launch is recorded too.
  LocalRecorder* self = existing();
  if (self != nullptr) self->exit();
}

void LocalRecorder::exit() {
  // exit() may have been called by a signal handler that interrupted a drain: then the trace stays
  // truncated, which is better than never ending. Other threads give way, those too that begin and
  // end one trace after the other: for the lock alone this thread might wait for ever.
  exiting_.store(true, std::memory_order_relaxed);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  forks_waiting_.fetch_add(1, std::memory_order_relaxed);
  bool locked = mutex_.try_lock();
  for (int round = 0; !locked && round < 2000; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    locked = mutex_.try_lock();
  }
  forks_waiting_.fetch_sub(1, std::memory_order_relaxed);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  exiting_.store(false, std::memory_order_relaxed);
  if (!locked) return;
  if (!finished_) {
    drain(enqueued(), nullptr);
    api_.want(recorder::kWantedByFile, false);
    if (file_) {
      file_->finish(segment_ ? &segment_->control : nullptr,
                    segment_ ? segment_->reader.damaged_rings() : 0);
      report_failure();
    }
    finished_ = true;
    // Nobody drains any more, so nobody must wait for it.
    if (segment_) {
      segment_->control.consumers.fetch_and(~(1u << recorder::kLocalConsumer),
                                            std::memory_order_acq_rel);
    }
  }
  mutex_.unlock();
}

}  // namespace lockstep::record

namespace lockstep {

const lockstep_recorder* host_recorder() { return record::LocalRecorder::get().api().table; }

std::string_view recorded_text(std::uint32_t number) {
  const auto* recorder = record::LocalRecorder::existing();
  const char* text = nullptr;
  std::size_t length = 0;
  const recorder::Api& api = recorder != nullptr ? recorder->api() : *recorder::api();
  return api.text(number, &text, &length) ? std::string_view{text, length} : std::string_view{};
}

void record_device(const TraceDevice& device, std::string_view driver, bool simulated) {
  const auto* recorder = record::LocalRecorder::existing();
  if (recorder == nullptr) return;
  const recorder::DeviceHeader header{device.ordinal, simulated ? 1u : 0u};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const std::string_view text : {std::string_view{device.name}, std::string_view{device.arch},
                                      std::string_view{device.uuid}, driver}) {
    bytes.append(text);
    bytes.push_back('\0');
  }
  recorder->api().publish(recorder::RecordType::kDevice, bytes.data(), bytes.size());
}

void record_coverage(std::string_view json) {
  const auto* recorder = record::LocalRecorder::existing();
  if (recorder == nullptr) return;
  recorder->api().publish(recorder::RecordType::kCoverage, json.data(), json.size());
}

}  // namespace lockstep
