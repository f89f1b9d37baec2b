// SPDX-License-Identifier: Apache-2.0
#include "recorder/texts.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace lockstep::recorder {
namespace {

struct Text {
  const char* data;
  std::size_t length;
  std::uint64_t hash;
};

// Pages never move, so that a reader needs no lock.
constexpr std::uint32_t kPage = 4096;
constexpr std::uint32_t kPages = 16384;
std::atomic<Text*> g_pages[kPages];
std::atomic<std::uint32_t> g_count{0};

// Open addressing over text numbers; guarded by the lock.
std::uint32_t* g_slots = nullptr;
std::uint32_t g_slot_count = 0;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

std::uint64_t hash_of(const char* text, std::size_t length) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t i = 0; i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  }
  return hash ^ (hash >> 29);
}

Text& at(std::uint32_t id) noexcept {
  return g_pages[(id - 1) / kPage].load(std::memory_order_acquire)[(id - 1) % kPage];
}

bool grow() noexcept {
  const std::uint32_t wanted = g_slot_count == 0 ? 1024 : g_slot_count * 2;
  auto* slots = static_cast<std::uint32_t*>(std::calloc(wanted, sizeof(std::uint32_t)));
  if (slots == nullptr) return false;
  const std::uint32_t count = g_count.load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= count; ++id) {
    std::uint32_t slot = static_cast<std::uint32_t>(at(id).hash) & (wanted - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (wanted - 1);
    slots[slot] = id;
  }
  std::free(g_slots);
  g_slots = slots;
  g_slot_count = wanted;
  return true;
}

}  // namespace

std::uint32_t add_text(const char* text, std::size_t length, bool* added) noexcept {
  *added = false;
  const std::uint32_t count = g_count.load(std::memory_order_relaxed);
  if (count * 2 >= g_slot_count && !grow()) return 0;
  const std::uint64_t hash = hash_of(text, length);
  std::uint32_t slot = static_cast<std::uint32_t>(hash) & (g_slot_count - 1);
  for (; g_slots[slot] != 0; slot = (slot + 1) & (g_slot_count - 1)) {
    const Text& other = at(g_slots[slot]);
    if (other.hash == hash && other.length == length &&
        std::memcmp(other.data, text, length) == 0) {
      return g_slots[slot];
    }
  }
  if (count == kPage * kPages) return 0;
  Text* page = g_pages[count / kPage].load(std::memory_order_relaxed);
  if (page == nullptr) {
    page = static_cast<Text*>(std::calloc(kPage, sizeof(Text)));
    if (page == nullptr) return 0;
    g_pages[count / kPage].store(page, std::memory_order_release);
  }
  auto* copy = static_cast<char*>(std::malloc(length + 1));
  if (copy == nullptr) return 0;
  std::memcpy(copy, text, length);
  copy[length] = '\0';
  page[count % kPage] = Text{copy, length, hash};
  g_slots[slot] = count + 1;
  g_count.store(count + 1, std::memory_order_seq_cst);
  *added = true;
  return count + 1;
}

bool find_text(std::uint32_t id, const char** text, std::size_t* length) noexcept {
  if (id == 0 || id > g_count.load(std::memory_order_acquire)) return false;
  const Text& found = at(id);
  *text = found.data;
  *length = found.length;
  return true;
}

std::uint32_t text_count() noexcept { return g_count.load(std::memory_order_seq_cst); }

void lock_texts() noexcept { pthread_mutex_lock(&g_lock); }
void unlock_texts() noexcept { pthread_mutex_unlock(&g_lock); }

}  // namespace lockstep::recorder
