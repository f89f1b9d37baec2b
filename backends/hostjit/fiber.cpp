// SPDX-License-Identifier: Apache-2.0
#include "fiber.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace lockstep::hostjit {
namespace {

constexpr std::uint64_t kPattern = 0x5afe57ac5afe57acULL;
// A guarded stack takes two mappings of the 65530 that Linux allows a process by default.
constexpr int kMaximumGuarded = 20000;
std::atomic<int> guarded_stacks{0};

}  // namespace

std::size_t fiber_stack_bytes() {
  static const std::size_t bytes = [] {
    constexpr long kDefault = 64;
    long kibibytes = kDefault;
    if (const char* text = secure_getenv("LOCKSTEP_HOST_STACK_KB"); text != nullptr && *text != 0) {
      char* end = nullptr;
      kibibytes = std::strtol(text, &end, 10);
      if (*end != '\0' || kibibytes < 16 || kibibytes > 65536) {
        std::fprintf(stderr,
                     "lockstep: LOCKSTEP_HOST_STACK_KB='%s' is not a number between 16 and 65536; "
                     "using %ld\n",
                     text, kDefault);
        kibibytes = kDefault;
      }
    }
    return whole_pages(static_cast<std::size_t>(kibibytes) * 1024);
  }();
  return bytes;
}

std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

FiberStack::~FiberStack() {
  if (mapping_ == nullptr) return;
#ifdef LOCKSTEP_ASAN
  __asan_unpoison_memory_region(bottom_, static_cast<std::size_t>(top_ - bottom_));
#endif
  munmap(mapping_, mapped_);
  if (guarded_) guarded_stacks.fetch_sub(1, std::memory_order_relaxed);
}

bool FiberStack::allocate(std::size_t bytes, std::size_t index) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes += page;
  void* memory = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  mapping_ = static_cast<char*>(memory);
  mapped_ = bytes + page;
  bottom_ = mapping_ + page;
  guarded_ = guarded_stacks.fetch_add(1, std::memory_order_relaxed) < kMaximumGuarded &&
             mprotect(mapping_, page, PROT_NONE) == 0;
  checked_ = !guarded_;
  if (checked_) {
    guarded_stacks.fetch_sub(1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < page / sizeof kPattern; ++i) {
      std::memcpy(mapping_ + i * sizeof kPattern, &kPattern, sizeof kPattern);
    }
  }
  // Frames of different threads at different cache sets: equal offsets would evict one another.
  constexpr std::size_t kColours = 24;
  constexpr std::size_t kColourBytes = 128;
  top_ = mapping_ + mapped_ - (index % kColours) * kColourBytes;
  return true;
}

void FiberStack::check_pattern() const {
  std::uint64_t words[8];
  std::memcpy(words, bottom_ - sizeof words, sizeof words);
  for (const std::uint64_t word : words) {
    if (word == kPattern) continue;
    std::fprintf(stderr,
                 "lockstep: a kernel thread overflowed its stack of %zu KiB; raise "
                 "LOCKSTEP_HOST_STACK_KB\n",
                 static_cast<std::size_t>(top_ - bottom_) / 1024);
    std::abort();
  }
}

struct FiberStart {
  [[noreturn]] static void enter(boost::context::detail::transfer_t transfer) {
    Fiber& from = *static_cast<Fiber*>(transfer.data);
    from.context_ = transfer.fctx;
    Fiber& self = *from.peer_;
    self.peer_ = &from;
    Fiber::arrive(self, nullptr);
    self.entry_(self.argument_);
    std::abort();  // an entry never returns
  }
};

Fiber::~Fiber() {
#ifdef LOCKSTEP_TSAN
  if (sanitizer_fiber_ != nullptr && stack_.bottom() != nullptr) {
    __tsan_destroy_fiber(sanitizer_fiber_);
  }
#endif
}

bool Fiber::prepare(std::size_t stack_bytes, std::size_t index, Entry entry, void* argument) {
  if (stack_.bottom() == nullptr) {
    if (!stack_.allocate(stack_bytes, index)) return false;
    sanitizer_bottom_ = stack_.bottom();
    sanitizer_size_ = static_cast<std::size_t>(stack_.top() - stack_.bottom());
  }
#ifdef LOCKSTEP_ASAN
  __asan_unpoison_memory_region(stack_.bottom(), sanitizer_size_);
#endif
#ifdef LOCKSTEP_TSAN
  if (sanitizer_fiber_ != nullptr) __tsan_destroy_fiber(sanitizer_fiber_);
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  entry_ = entry;
  argument_ = argument;
  sanitizer_fake_stack_ = nullptr;
  context_ = boost::context::detail::make_fcontext(
      stack_.top(), static_cast<std::size_t>(stack_.top() - stack_.bottom()), &FiberStart::enter);
  return true;
}

void Fiber::adopt_thread() {
#ifdef LOCKSTEP_TSAN
  sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
}

}  // namespace lockstep::hostjit
