// SPDX-License-Identifier: Apache-2.0
#include "src/record/recorded_image.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/memory.h"

namespace lockstep::record {
namespace {

/// The whole file; null with errno set when it cannot be had, or is shorter than `least`.
void* map_whole(const std::filesystem::path& path, std::size_t least, std::size_t* size) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status {};
  void* memory = nullptr;
  if (fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= least) {
    *size = static_cast<std::size_t>(status.st_size);
    memory = mmap(nullptr, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  } else {
    errno = EINVAL;
  }
  const int error = errno;
  close(file);
  errno = error;
  return memory;
}

std::string ring_name(const recorder::Control& control, std::uint32_t index) {
  return std::to_string(control.pid) + "." + std::to_string(control.image) + "." +
         std::to_string(index) + ".ring";
}

}  // namespace

std::unique_ptr<RecordedImage> RecordedImage::open(const std::filesystem::path& file) {
  std::size_t size = 0;
  auto* control =
      static_cast<recorder::Control*>(map_whole(file, sizeof(recorder::Control), &size));
  if (control == nullptr) return nullptr;
  if (control->magic != recorder::kControlMagic || control->version != recorder::kLayoutVersion) {
    munmap(control, size);
    return nullptr;
  }
  return std::unique_ptr<RecordedImage>(new RecordedImage(file, control));
}

RecordedImage::RecordedImage(const std::filesystem::path& file, recorder::Control* control)
    : folder_(file.parent_path()),
      file_(file),
      foreign_(control->pid_namespace == 0 ||
               control->pid_namespace != recorder::own_pid_namespace()),
      control_(control),
      reader_(
          *control, recorder::kParentConsumer,
          [this](std::uint32_t index) { return map_ring(index); }, 0),
      assembler_(*control) {}

RecordedImage::~RecordedImage() {
  for (const MappedRing& mapped : rings_) munmap(mapped.ring, mapped.bytes);
  munmap(control_, sizeof(recorder::Control));
}

recorder::Ring* RecordedImage::map_ring(std::uint32_t index) {
  std::size_t size = 0;
  auto* ring = static_cast<recorder::Ring*>(
      map_whole(folder_ / ring_name(*control_, index), recorder::kRingDataOffset, &size));
  if (ring != nullptr && ring->magic == recorder::kRingMagic && ring->capacity != 0 &&
      ring->capacity + recorder::kRingDataOffset == size) {
    rings_.push_back({ring, size});
    return ring;
  }
  unmapped_ = ring == nullptr ? std::strerror(errno) : "it is no ring";
  if (ring != nullptr) munmap(ring, size);
  return nullptr;
}

bool RecordedImage::alive() const {
  // What a number means elsewhere cannot be asked for. Where nothing can be locked either, the
  // image counts as alive until the recording ends.
  if (foreign_) return control_->locked == 0 || lock_holder().has_value();
  return kill(static_cast<pid_t>(control_->pid), 0) == 0 || errno == EPERM;
}

std::optional<std::int64_t> RecordedImage::lock_holder() const {
  const int file = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = fcntl(file, F_GETLK, &lock) == 0;
  close(file);
  if (!known || lock.l_type == F_UNLCK) return std::nullopt;
  return std::max<std::int64_t>(lock.l_pid, 0);
}

bool RecordedImage::is_mapped() const {
  const std::string name = "/" + (folder_.filename() / file_.filename()).native();
  errno = 0;
  std::ifstream maps("/proc/" + std::to_string(control_->pid) + "/maps");
  if (!maps) return errno == EACCES || errno == EPERM;
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

bool RecordedImage::runs() const {
  if (foreign_) return alive();
  // A program that closes all files it knows nothing of (a daemon) has lost its lock.
  return alive() && (lock_holder().has_value() || is_mapped());
}

std::int64_t RecordedImage::pid() const {
  const std::int64_t holder = foreign_ ? lock_holder().value_or(0) : 0;
  return holder > 0 ? holder : control_->pid;
}

std::uint64_t RecordedImage::drain(const NameFile& name_file, bool force) {
  if (!sink_ && !failure_) {
    assembler_.on_first_entry([this, &name_file, force] { create_file(name_file, force); });
  }
  assembler_.clock().update();
  const std::uint64_t until = control_->sequence.load(std::memory_order_acquire);
  const std::uint64_t visited = reader_.drain(until, alive(), assembler_);
  // The callback refers to this call's parameters.
  assembler_.on_first_entry(nullptr);
  flush_now_and_then();
  return visited;
}

void RecordedImage::create_file(const NameFile& name_file, bool force) {
  try {
    sink_.emplace(name_file(*control_), assembler_.info(), force, control_->base_nanoseconds);
    sink_->connect(assembler_);
  } catch (const Error& error) {
    failure_ = error;
  }
}

/// Whoever records may be killed too: its file then is truncated, but holds nearly everything.
void RecordedImage::flush_now_and_then() {
  constexpr std::chrono::milliseconds kInterval{50};
  const auto now = std::chrono::steady_clock::now();
  if (!sink_ || now - flushed_ < kInterval) return;
  flushed_ = now;
  sink_->flush_old();
}

std::optional<RecordedFile> RecordedImage::finish(const NameFile& name_file, bool force,
                                                  bool running) {
  // Who still runs is no longer recorded, and must not wait for room.
  control_->closing.store(1, std::memory_order_release);
  drain(name_file, force);
  const std::uint32_t damaged = reader_.damaged_rings();
  // All entries may have been in them.
  if (!sink_ && !failure_ && damaged != 0) create_file(name_file, force);
  check();
  if (!sink_) return std::nullopt;
  RecordedFile file;
  file.path = sink_->path();
  file.pid = control_->pid;
  file.image = control_->image;
  if (control_->rank >= 0) file.rank = static_cast<std::uint32_t>(control_->rank);
  const TraceFooter footer = sink_->finish(control_, damaged, running ? 1 : 0);
  check();
  file.entries = footer.entries;
  file.dropped = footer.dropped;
  file.stalls = footer.stalls;
  file.racing = footer.racing;
  file.coverage = footer.coverage;
  file.running = running;
  if (!unmapped_.empty()) {
    file.problem =
        "a buffer of the program cannot be mapped, and what it held is lost: " + unmapped_;
  } else if (damaged != 0) {
    file.problem = "the program wrote over a buffer of the recorder; what that held is lost";
  }
  return file;
}

void RecordedImage::remove_files() {
  const std::uint32_t count = control_->ring_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, recorder::kMaxRings); ++i) {
    std::error_code ignored;  // the whole folder goes at the end
    std::filesystem::remove(folder_ / ring_name(*control_, i), ignored);
  }
}

const Error* RecordedImage::failure() const noexcept {
  if (failure_) return &*failure_;
  return sink_ && sink_->failure() ? &*sink_->failure() : nullptr;
}

void RecordedImage::check() const {
  if (const Error* error = failure()) throw *error;
}

}  // namespace lockstep::record
