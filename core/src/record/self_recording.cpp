// SPDX-License-Identifier: Apache-2.0
#include "src/record/self_recording.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/record/trace_name.h"

namespace lockstep::record {
namespace {

/// Names the file that was made under its first name, so that programs started by whoever made it
/// do not want that name too. A program that is told to record elsewhere is none of them.
constexpr char kOwner[] = "LOCKSTEP_TRACE_OWNER";

/// Shared by this process and everything forked from it since this library was loaded: whether one
/// of them has taken the first name. Null where nothing is to be recorded.
std::atomic<std::uint32_t>* make_name_taken() noexcept {
  if (secure_getenv("LOCKSTEP_TRACE") == nullptr) return nullptr;
  void* memory = mmap(nullptr, sizeof(std::atomic<std::uint32_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) std::atomic<std::uint32_t>(0);
}
std::atomic<std::uint32_t>* const g_name_taken = make_name_taken();

/// True once for a family of processes; give_name_back() lets another one try.
bool take_name() noexcept { return g_name_taken == nullptr || g_name_taken->exchange(1) == 0; }
void give_name_back() noexcept {
  if (g_name_taken != nullptr) g_name_taken->store(0);
}

bool read_force() {
  const char* text = secure_getenv("LOCKSTEP_TRACE_FORCE");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return false;
  if (std::strcmp(text, "1") == 0) return true;
  throw Error(ErrorCode::kInvalidArgument,
              std::string("LOCKSTEP_TRACE_FORCE is '") + text +
                  "': set it to 1 to replace an existing trace, or to 0");
}

/// LOCKSTEP_TRACE in one spelling, whatever it is relative to.
std::filesystem::path absolute_path(const char* text) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(text, error).lexically_normal();
  if (error) {
    ErrorContext context;
    context.native_code = error.value();
    context.call = "write";
    throw Error(ErrorCode::kInputOutput,
                std::string("LOCKSTEP_TRACE is '") + text +
                    "', which has no absolute path: " + error.message(),
                context);
  }
  return path;
}

/// True while another process writes to it: then it is a relative's, not an old one.
bool is_being_written(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

}  // namespace

SelfRecording::SelfRecording(std::filesystem::path base, bool force)
    : base_(std::move(base)), force_(force) {}

std::unique_ptr<SelfRecording> SelfRecording::from_environment(const recorder::Api& api) {
  const char* text = secure_getenv("LOCKSTEP_TRACE");
  if (text == nullptr || *text == '\0') return nullptr;
  std::filesystem::path path = absolute_path(text);
  if (!path.has_filename()) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string("LOCKSTEP_TRACE is '") + text +
                    "', which names a folder: name the file to record to, e.g. out.jsonl");
  }
  std::unique_ptr<SelfRecording> recording(new SelfRecording(std::move(path), read_force()));
  const recorder::Control* control = api.control(true);
  if (control == nullptr) {
    throw Error(ErrorCode::kInputOutput, "recording cannot begin: no shared memory");
  }
  recording->rank_ = control->rank;
  const std::filesystem::path first =
      trace_path(recording->base_, recording->rank_, true, getpid(), 0);
  // Descendants come with the file's name in their environment; one that took part in a race for it
  // finds it locked. Processes forked before anybody recorded agree among themselves.
  const char* owned = secure_getenv(kOwner);
  const bool descendant =
      (owned != nullptr && first == owned) || is_being_written(first) || !take_name();
  if (!descendant) recording->create_first();
  return recording;
}

void SelfRecording::create_first() {
  TraceInfo header;
  header.producer = "lockstep 0.1";
  header.command = own_command();
  header.pid = getpid();
  try {
    create(header, true, recorder::monotonic_nanoseconds());
  } catch (...) {
    give_name_back();
    throw;
  }
  setenv(kOwner, sink_->path().c_str(), 1);
}

std::unique_ptr<SelfRecording> SelfRecording::for_child() const {
  std::unique_ptr<SelfRecording> child(new SelfRecording(base_, force_));
  child->rank_ = rank_;
  if (name_holder_ >= 0) close(name_holder_);
  return child;
}

void SelfRecording::hold_name() {
  name_holder_ = open(sink_->path().c_str(), O_RDONLY | O_CLOEXEC);
  if (name_holder_ >= 0) flock(name_holder_, LOCK_EX | LOCK_NB);
}

void SelfRecording::create(const TraceInfo& header, bool first, std::uint64_t begin_ns) {
  if (first) {
    sink_.emplace(trace_path(base_, rank_, true, header.pid, 0), header, force_, begin_ns);
    hold_name();
    return;
  }
  // A process that called exec has files with lower numbers. Where that cannot be seen, creating
  // the file says why.
  std::uint32_t image = 0;
  std::filesystem::path path = trace_path(base_, rank_, false, header.pid, image);
  std::error_code unseen;
  while (std::filesystem::exists(path, unseen)) {
    path = trace_path(base_, rank_, false, header.pid, ++image);
  }
  sink_.emplace(std::move(path), header, false, begin_ns);
}

void SelfRecording::connect(Assembler& assembler, const recorder::Control& control) {
  if (sink_) {
    sink_->connect(assembler);
    return;
  }
  assembler.on_first_entry([this, &assembler, begin = control.base_nanoseconds] {
    try {
      create(assembler.info(), false, begin);
      sink_->connect(assembler);
    } catch (const Error& error) {
      failure_ = error;
    }
  });
}

void SelfRecording::flush_old() {
  if (sink_) sink_->flush_old();
}

void SelfRecording::finish(const recorder::Control* control, std::uint64_t damaged_rings) {
  if (sink_) sink_->finish(control, damaged_rings);
  if (name_holder_ >= 0) close(name_holder_);
  name_holder_ = -1;
}

void SelfRecording::report_failure() {
  const Error* error = nullptr;
  if (failure_) error = &*failure_;
  if (sink_ && sink_->failure()) error = &*sink_->failure();
  if (error == nullptr || reported_) return;
  reported_ = true;
  std::fprintf(stderr, "lockstep: the trace is incomplete: %s\n", error->what());
}

}  // namespace lockstep::record
