// SPDX-License-Identifier: Apache-2.0
#include "recorder/segment.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "recorder/clock.h"
#include "recorder/memory.h"
#include "recorder/settings.h"
#include "recorder/texts.h"

namespace lockstep::recorder {

Control* g_control = nullptr;
std::uint32_t g_clock = kClockNanoseconds;
volatile std::uint32_t g_active = 0;
__thread Ring* t_ring __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

__thread std::uint64_t t_thread __attribute__((tls_model("initial-exec"))) = 0;

// Guards everything below except what is atomic.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
alignas(Control) unsigned char g_local_control[sizeof(Control)];
std::atomic<Ring*> g_rings[kMaxRings];
int g_ring_files[kMaxRings];
int g_control_file = -1;  ///< holds the lock of the shared control block
Settings g_settings;
char g_message[512];
enum class Prepared { kNo, kYes, kFailed } g_prepared = Prepared::kNo;
bool g_complained = false;
std::atomic<bool> g_closed{false};
pthread_key_t g_thread_key;
Hub* g_hub = nullptr;
const LocalConsumerHooks* g_hooks = nullptr;
std::atomic<std::uint64_t> g_identity{0};
std::atomic<std::uint64_t> g_thread_count{0};

void complain(const char* what, int error) noexcept {
  if (g_complained) return;
  g_complained = true;
  std::fprintf(stderr, "lockstep: recording is incomplete: %s: %s\n", what, std::strerror(error));
}

void before_fork() noexcept {
  // In this order: who holds the first two may be waiting for the consumer to make room.
  lock_texts();
  pthread_mutex_lock(&g_lock);
  if (g_hooks != nullptr) g_hooks->before_fork();
}

void after_fork_in_parent() noexcept {
  if (g_hooks != nullptr) g_hooks->after_fork(false);
  pthread_mutex_unlock(&g_lock);
  unlock_texts();
}

void after_fork_in_child() noexcept {
  // The rings are the parent's: forget them. The control block is made anew by the first record.
  // Its count does not tell how many there are: it may lie in a file where the parent, which is
  // running already, counts rings that this process never had.
  for (std::uint32_t i = 0; i < kMaxRings; ++i) {
    Ring* ring = g_rings[i].load(std::memory_order_relaxed);
    if (ring == nullptr) break;
    unmap_ring(ring);
    g_rings[i].store(nullptr, std::memory_order_relaxed);
    if (g_ring_files[i] >= 0) ::close(g_ring_files[i]);
  }
  if (g_control_file >= 0) ::close(g_control_file);
  g_control_file = -1;
  g_control = nullptr;
  t_ring = nullptr;
  t_thread = 0;
  g_complained = false;
  g_active = g_active & ~static_cast<std::uint32_t>(kWantedByTraces);
  if (g_hooks != nullptr) g_hooks->after_fork(true);
  pthread_mutex_unlock(&g_lock);
  unlock_texts();
}

void thread_ends(void*) noexcept {
  Ring* ring = t_ring;
  t_ring = nullptr;
  // Whoever takes it over sees all that this thread wrote.
  if (ring != nullptr) ring->state.store(kRingClosed, std::memory_order_release);
}

bool make_control() noexcept {
  std::uint32_t image = 0;
  Control* control = nullptr;
  const bool shared = g_settings.directory[0] != '\0';
  if (shared) {
    control = create_shared_control(g_settings.directory, &image, &g_control_file);
    if (control == nullptr) {
      complain("cannot create shared memory in LOCKSTEP_RECORD_DIR", errno);
      return false;
    }
    if (g_hub == nullptr) g_hub = map_hub(g_settings.directory);
  } else {
    control = new (g_local_control) Control{};
  }
  control->magic = kControlMagic;
  control->version = kLayoutVersion;
  control->image = image;
  control->pid = getpid();
  control->pid_namespace = shared ? own_pid_namespace() : 0;
  control->rank = g_settings.rank;
  control->clock = choose_clock();
  control->shared = shared ? 1 : 0;
  control->base_ticks = clock_ticks(control->clock);
  control->base_nanoseconds = monotonic_nanoseconds();
  control->ring_bytes = g_settings.ring_bytes;
  std::uint32_t consumers = 0;
  if (shared) consumers |= 1u << kParentConsumer;
  if (g_hooks != nullptr) consumers |= 1u << kLocalConsumer;
  control->consumers.store(consumers, std::memory_order_release);
  g_clock = control->clock;
  if (shared) {
    char from[4096];
    char to[4096];
    std::snprintf(from, sizeof(from), "%s/%ld.%u.new", g_settings.directory,
                  static_cast<long>(getpid()), image);
    std::snprintf(to, sizeof(to), "%s/%ld.%u.image", g_settings.directory,
                  static_cast<long>(getpid()), image);
    if (std::rename(from, to) != 0) {
      ::close(g_control_file);
      g_control_file = -1;
      complain("cannot create shared memory in LOCKSTEP_RECORD_DIR", errno);
      return false;
    }
  }
  // Pairs with intern(): either it sees the block and publishes its text, or publish_process does.
  __atomic_store_n(&g_control, control, __ATOMIC_SEQ_CST);
  return true;
}

void publish_thread(Ring* ring) noexcept {
  unsigned char* room = reserve_record(ring, sizeof(ThreadRecord));
  if (room == nullptr) return;
  auto* record = reinterpret_cast<ThreadRecord*>(room);
  record->thread = ring->thread;
  publish_record(ring, &record->header, RecordType::kThread, sizeof(ThreadRecord), kStateDone);
}

/// What the first ring begins with: the command line, and all texts that were interned before.
void publish_process(Ring* ring) noexcept {
  static char command[65536];
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  std::size_t size = 0;
  while (file >= 0 && size < sizeof(command)) {
    const ssize_t got = read(file, command + size, sizeof(command) - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (file >= 0) ::close(file);
  publish_pieces(ring, RecordType::kProcess, 0, command, size);
  const std::uint32_t count = text_count();
  for (std::uint32_t id = 1; id <= count; ++id) {
    const char* text = nullptr;
    std::size_t length = 0;
    if (find_text(id, &text, &length)) publish_pieces(ring, RecordType::kText, id, text, length);
  }
}

Ring* take_over_ring() noexcept {
  const std::uint32_t count = g_control->ring_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Ring* ring = g_rings[i].load(std::memory_order_relaxed);
    std::uint32_t closed = kRingClosed;
    if (ring->state.compare_exchange_strong(closed, kRingInUse, std::memory_order_acquire)) {
      return ring;
    }
  }
  return nullptr;
}

Ring* make_ring() noexcept {
  const std::uint32_t index = g_control->ring_count.load(std::memory_order_relaxed);
  if (index == kMaxRings) {
    complain("more threads launch at once than there may be rings", EAGAIN);
    return nullptr;
  }
  int file = -1;
  Ring* ring =
      create_ring(g_settings.directory, g_control->image, index, g_settings.ring_bytes, &file);
  if (ring == nullptr) {
    complain("cannot reserve a ring (LOCKSTEP_TRACE_BUFFER_MB sets its size)", errno);
    return nullptr;
  }
  ring->state.store(kRingInUse, std::memory_order_relaxed);
  g_ring_files[index] = file;
  g_rings[index].store(ring, std::memory_order_release);
  g_control->ring_count.store(index + 1, std::memory_order_release);
  return ring;
}

void notify_consumers() noexcept {
  if (g_hub != nullptr) {
    g_hub->wake.fetch_add(1, std::memory_order_release);
    futex_wake(&g_hub->wake);
  }
  if (g_hooks != nullptr) g_hooks->wake(true);
}

bool is_unread(std::uint32_t consumer, std::uint32_t index) noexcept {
  const auto& word = g_control->unread[consumer][index % kMaxRings / 64];
  return (word.load(std::memory_order_acquire) >> (index % 64) & 1) != 0;
}

std::uint64_t oldest_tail(const Ring* ring) noexcept {
  const std::uint32_t consumers = g_control->consumers.load(std::memory_order_acquire);
  std::uint64_t oldest = ring->write_position;  // nobody drains: nothing is kept
  for (std::uint32_t i = 0; i < kConsumers; ++i) {
    if ((consumers & (1u << i)) == 0 || is_unread(i, ring->index)) continue;
    const std::uint64_t tail = ring->tail[i].load(std::memory_order_acquire);
    if (tail < oldest) oldest = tail;
  }
  return oldest;
}

}  // namespace

Ring* acquire_ring() noexcept {
  char message[sizeof(g_message)];
  if (!prepare(message, sizeof(message))) return nullptr;
  // Signals stay out: a handler that records would find the lock taken by its own thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&g_lock);
  Ring* ring = nullptr;
  bool first = false;
  if (!g_closed && (g_control != nullptr || make_control())) {
    first = g_control->ring_count.load(std::memory_order_relaxed) == 0;
    ring = take_over_ring();
    if (ring == nullptr) ring = make_ring();
    if (ring == nullptr) g_control->dropped.fetch_add(1, std::memory_order_relaxed);
  }
  if (ring != nullptr) {
    ring->thread = this_thread();
    ring->busy = 0;
    t_ring = ring;
    pthread_setspecific(g_thread_key, ring);
    // Texts come before anything that names them: other threads get their rings after this.
    if (first) publish_process(ring);
  }
  pthread_mutex_unlock(&g_lock);
  if (ring != nullptr) publish_thread(ring);
  if (first && ring != nullptr && g_hooks != nullptr) g_hooks->wake(false);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ring;
}

void wrap(Ring* ring, std::uint64_t to_end) noexcept {
  if (to_end != 0) {
    auto* filler = reinterpret_cast<RecordHeader*>(ring->data() + ring->write_offset);
    filler->size = static_cast<std::uint32_t>(to_end);
    filler->type = RecordType::kWrap;
  }
  ring->write_position += to_end;
  ring->write_offset = 0;
}

bool make_room(Ring* ring, std::uint64_t need) noexcept {
  const std::uint64_t wanted = ring->write_position + need;
  if (ring->shared != 0 && ring->backed_bytes < ring->capacity && wanted > ring->backed_bytes &&
      !back_ring(ring, g_ring_files[ring->index], wanted)) {
    complain("no memory is left for shared rings", errno);
    g_control->dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  bool stalled = false;
  for (std::uint32_t round = 0;; ++round) {
    if (g_control->closing.load(std::memory_order_acquire) != 0) return false;
    const std::uint32_t space = ring->space.load(std::memory_order_acquire);
    if (stalled) ring->waiting.store(1, std::memory_order_seq_cst);
    const std::uint64_t tail = oldest_tail(ring);
    if (wanted <= tail + ring->capacity) {
      const bool filling = wanted > tail + ring->capacity / 2;
      if (filling) notify_consumers();
      ring->soft_limit = tail + (filling ? ring->capacity : ring->capacity / 2);
      if (ring->backed_bytes < ring->capacity && ring->soft_limit > ring->backed_bytes) {
        ring->soft_limit = ring->backed_bytes;
      }
      ring->waiting.store(0, std::memory_order_relaxed);
      return true;
    }
    if (!stalled) {
      stalled = true;
      g_control->stalls.fetch_add(1, std::memory_order_relaxed);
      notify_consumers();
      continue;
    }
    futex_wait(&ring->space, space, 10000000);
    if (round % 32 == 31) {
      notify_consumers();
      if (ring->shared != 0 && !parent_lives(g_settings.directory)) {
        complain("the recording process is gone", ESRCH);
        close_recorder();
      }
    }
  }
}

void publish_pieces(Ring* ring, RecordType type, std::uint64_t id, const void* bytes,
                    std::size_t size) noexcept {
  constexpr std::size_t kPiece = 64 * 1024;
  if (!enter(ring)) return;
  std::size_t offset = 0;
  do {
    const std::size_t part = size - offset < kPiece ? size - offset : kPiece;
    const auto whole =
        static_cast<std::uint32_t>(sizeof(PieceRecord) + ((part + 7) & ~std::size_t{7}));
    unsigned char* room = reserve_record(ring, whole);
    if (room == nullptr) break;
    auto* record = reinterpret_cast<PieceRecord*>(room);
    record->id = id;
    record->total = size;
    record->offset = offset;
    record->bytes = part;
    if (part != 0) {
      std::memcpy(room + sizeof(PieceRecord), static_cast<const unsigned char*>(bytes) + offset,
                  part);
    }
    publish_record(ring, &record->header, type, whole, kStateDone);
    offset += part;
  } while (offset < size);
  leave(ring);
}

Control* control(bool create) noexcept {
  Control* existing = __atomic_load_n(&g_control, __ATOMIC_ACQUIRE);
  if (existing != nullptr || !create) return existing;
  pthread_mutex_lock(&g_lock);
  if (g_control == nullptr && g_prepared == Prepared::kYes && !g_closed) make_control();
  existing = g_control;
  pthread_mutex_unlock(&g_lock);
  return existing;
}

bool prepare(char* message, std::size_t capacity) noexcept {
  pthread_mutex_lock(&g_lock);
  if (g_prepared == Prepared::kNo) {
    bool ok = read_settings(&g_settings, g_message, sizeof(g_message));
    if (ok && pthread_key_create(&g_thread_key, [](void*) { thread_ends(nullptr); }) != 0) {
      std::snprintf(g_message, sizeof(g_message), "no thread key is left for the recorder");
      ok = false;
    }
    if (ok) {
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
      if (g_settings.directory[0] != '\0') want(kWantedByParent, true);
    }
    g_prepared = ok ? Prepared::kYes : Prepared::kFailed;
  }
  const bool ok = g_prepared == Prepared::kYes;
  if (!ok) std::snprintf(message, capacity, "%s", g_message);
  pthread_mutex_unlock(&g_lock);
  return ok;
}

std::uint64_t attach(const LocalConsumerHooks* hooks) noexcept {
  pthread_mutex_lock(&g_lock);
  g_hooks = hooks;
  std::uint64_t first = 0;
  if (g_control != nullptr) {
    const std::uint32_t count = g_control->ring_count.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count; ++i) {
      Ring* ring = g_rings[i].load(std::memory_order_relaxed);
      ring->tail[kLocalConsumer].store(ring->head.load(std::memory_order_acquire),
                                       std::memory_order_release);
    }
    g_control->consumers.fetch_or(1u << kLocalConsumer, std::memory_order_acq_rel);
    first = g_control->sequence.load(std::memory_order_acquire);
  }
  pthread_mutex_unlock(&g_lock);
  return first;
}

void want(std::uint32_t bit, bool wanted) noexcept {
  if (wanted) {
    __atomic_fetch_or(&g_active, bit, __ATOMIC_SEQ_CST);
  } else {
    __atomic_fetch_and(&g_active, ~bit, __ATOMIC_SEQ_CST);
  }
}

void close_recorder() noexcept {
  // No lock: called while a process exits, and while a launcher waits.
  g_closed = true;
  want(kWantedByParent | kWantedByFile | kWantedByTraces, false);
  Control* control = __atomic_load_n(&g_control, __ATOMIC_ACQUIRE);
  if (control == nullptr) return;
  control->closing.store(1, std::memory_order_release);
  const std::uint32_t count = control->ring_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    Ring* ring = g_rings[i].load(std::memory_order_acquire);
    ring->space.fetch_add(1, std::memory_order_release);
    futex_wake(&ring->space);
  }
}

Ring* ring_at(std::uint32_t index) noexcept {
  return index < kMaxRings ? g_rings[index].load(std::memory_order_acquire) : nullptr;
}

std::uint64_t next_identity() noexcept {
  return g_identity.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t this_thread() noexcept {
  if (t_thread == 0) t_thread = g_thread_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return t_thread;
}

}  // namespace lockstep::recorder
