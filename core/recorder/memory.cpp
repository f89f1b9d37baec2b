// SPDX-License-Identifier: Apache-2.0
#include "recorder/memory.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <linux/futex.h>
#include <new>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace lockstep::recorder {
namespace {

void* map_file(int file, std::uint64_t bytes) noexcept {
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Anonymous memory that begins where a huge page can: first touches of small pages cost a launch
/// more than all the rest of its record (measured: 75 ns a record against 10).
void* map_anonymous(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
  void* memory = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<unsigned char*>(memory);
  const std::uint64_t skipped = -reinterpret_cast<std::uintptr_t>(begin) & (kHuge - 1);
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t kept = (bytes + page - 1) & ~(page - 1);
  if (skipped != 0) munmap(begin, skipped);
  if (skipped + kept < bytes + kHuge)
    munmap(begin + skipped + kept, bytes + kHuge - skipped - kept);
  // A kernel that has none says so, and small ones do.
  madvise(begin + skipped, kept, MADV_HUGEPAGE);
  return begin + skipped;
}

}  // namespace

std::uint64_t own_pid_namespace() noexcept {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

Control* create_shared_control(const char* directory, std::uint32_t* image, int* file) noexcept {
  char path[4096];
  char hidden[4096];
  const long pid = getpid();
  for (*image = 0; *image < 100000; ++*image) {
    std::snprintf(path, sizeof(path), "%s/%ld.%u.image", directory, pid, *image);
    const int probe = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (probe < 0) {
      if (errno == EEXIST) continue;
      return nullptr;
    }
    close(probe);
    // Filled aside and renamed over the name it has claimed: the drainer ignores empty files.
    std::snprintf(hidden, sizeof(hidden), "%s/%ld.%u.new", directory, pid, *image);
    *file = open(hidden, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (*file < 0) return nullptr;
    void* memory = map_file(*file, sizeof(Control));
    const bool backed =
        memory != nullptr && (fallocate(*file, 0, 0, sizeof(Control)) == 0 || errno == EOPNOTSUPP);
    if (!backed) {
      close(*file);
      return nullptr;
    }
    auto* control = new (memory) Control{};
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    control->locked = fcntl(*file, F_SETLK, &lock) == 0 ? 1 : 0;
    return control;
  }
  errno = EEXIST;
  return nullptr;
}

Ring* create_ring(const char* directory, std::uint32_t image, std::uint32_t index,
                  std::uint64_t capacity, int* file) noexcept {
  const std::uint64_t bytes = kRingDataOffset + capacity;
  void* memory = nullptr;
  *file = -1;
  if (directory[0] == '\0') {
    memory = map_anonymous(bytes);
    if (memory == nullptr) return nullptr;
  } else {
    char path[4096];
    std::snprintf(path, sizeof(path), "%s/%ld.%u.%u.ring", directory, static_cast<long>(getpid()),
                  image, index);
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*file < 0) return nullptr;
    memory = map_file(*file, bytes);
    if (memory == nullptr ||
        (fallocate(*file, 0, 0, kRingDataOffset) != 0 && errno != EOPNOTSUPP)) {
      close(*file);
      return nullptr;
    }
  }
  auto* ring = new (memory) Ring{};
  ring->magic = kRingMagic;
  ring->index = index;
  ring->shared = *file >= 0 ? 1 : 0;
  ring->capacity = capacity;
  ring->backed_bytes = *file >= 0 ? 0 : capacity;
  return ring;
}

bool back_ring(Ring* ring, int file, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
  if (bytes > ring->capacity) bytes = ring->capacity;
  while (ring->backed_bytes < bytes) {
    std::uint64_t step = ring->capacity - ring->backed_bytes;
    if (step > kStep) step = kStep;
    if (fallocate(file, 0, static_cast<off_t>(kRingDataOffset + ring->backed_bytes),
                  static_cast<off_t>(step)) != 0 &&
        errno != EOPNOTSUPP) {
      if (errno == EINTR) continue;
      return false;
    }
    ring->backed_bytes += step;
  }
  return true;
}

void unmap_ring(Ring* ring) noexcept { munmap(ring, kRingDataOffset + ring->capacity); }

Hub* map_hub(const char* directory) noexcept {
  char path[4096];
  std::snprintf(path, sizeof(path), "%s/hub", directory);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Hub), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Hub*>(memory);
}

bool parent_lives(const char* directory) noexcept {
  char path[4096];
  std::snprintf(path, sizeof(path), "%s/hub", directory);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return locked;
}

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value,
                std::uint64_t nanoseconds) noexcept {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(nanoseconds / 1000000000u);
  limit.tv_nsec = static_cast<long>(nanoseconds % 1000000000u);
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>* word) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace lockstep::recorder
