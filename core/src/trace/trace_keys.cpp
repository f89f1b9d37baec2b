// SPDX-License-Identifier: Apache-2.0
#include "src/trace/trace_keys.h"

#include <array>
#include <initializer_list>

namespace lockstep {
namespace {

struct KeyText {
  std::string_view text;
  EntryKey key;
};

constexpr std::array kKeyTexts = {
    KeyText{"kind", EntryKey::kKind},
    KeyText{"name", EntryKey::kName},
    KeyText{"name_hex", EntryKey::kNameHex},
    KeyText{"stream", EntryKey::kStream},
    KeyText{"hash", EntryKey::kHash},
    KeyText{"grid", EntryKey::kGrid},
    KeyText{"block", EntryKey::kBlock},
    KeyText{"shared_mem_bytes", EntryKey::kSharedMemBytes},
    KeyText{"cluster", EntryKey::kCluster},
    KeyText{"cooperative", EntryKey::kCooperative},
    KeyText{"direction", EntryKey::kDirection},
    KeyText{"bytes", EntryKey::kBytes},
    KeyText{"value", EntryKey::kValue},
    KeyText{"value_size", EntryKey::kValueSize},
    KeyText{"extent", EntryKey::kExtent},
    KeyText{"device", EntryKey::kDevice},
    KeyText{"peer_device", EntryKey::kPeerDevice},
    KeyText{"thread", EntryKey::kThread},
    KeyText{"seq", EntryKey::kSeq},
    KeyText{"t", EntryKey::kTime},
    KeyText{"captured", EntryKey::kCaptured},
    KeyText{"replayed", EntryKey::kReplayed},
    KeyText{"failed", EntryKey::kFailed},
    KeyText{"pending", EntryKey::kPending},
    KeyText{"internal", EntryKey::kInternal},
    KeyText{"warmup", EntryKey::kWarmup},
    KeyText{"stale", EntryKey::kStale},
    KeyText{"disabled", EntryKey::kDisabled},
    KeyText{"graph", EntryKey::kGraph},
    KeyText{"version", EntryKey::kVersion},
    KeyText{"node", EntryKey::kNode},
    KeyText{"branch", EntryKey::kBranch},
    KeyText{"launch", EntryKey::kLaunch},
    KeyText{"event", EntryKey::kEvent},
    KeyText{"mark", EntryKey::kMark},
    KeyText{"attrs", EntryKey::kAttrs},
    KeyText{"args", EntryKey::kArgs},
    KeyText{"args_hash", EntryKey::kArgsHash},
    KeyText{"source", EntryKey::kSource},
    KeyText{"destination", EntryKey::kDestination},
};

/// Perfect for the keys above, which a static_assert below proves.
constexpr std::size_t slot_of(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  return (text.size() * 35u + at(0) * 146u + at(text.size() - 1) * 217u +
          at(text.size() / 2) * 206u) &
         255u;
}

constexpr std::size_t kSlots = 256;
constexpr std::uint8_t kFree = 255;

constexpr std::array<std::uint8_t, kSlots> make_slots() {
  std::array<std::uint8_t, kSlots> slots{};
  for (auto& slot : slots) slot = kFree;
  for (std::size_t i = 0; i < kKeyTexts.size(); ++i) {
    slots[slot_of(kKeyTexts[i].text)] = static_cast<std::uint8_t>(i);
  }
  return slots;
}
constexpr std::array<std::uint8_t, kSlots> kSlotTable = make_slots();

constexpr bool is_perfect() {
  for (std::size_t i = 0; i < kKeyTexts.size(); ++i) {
    if (kSlotTable[slot_of(kKeyTexts[i].text)] != i) return false;
  }
  return true;
}
static_assert(is_perfect(), "two keys share a slot: choose other factors in slot_of");

constexpr std::uint64_t bits(std::initializer_list<EntryKey> keys) {
  std::uint64_t result = 0;
  for (const EntryKey key : keys) result |= std::uint64_t{1} << static_cast<unsigned>(key);
  return result;
}

constexpr std::uint64_t kCommon =
    bits({EntryKey::kKind,     EntryKey::kName,     EntryKey::kNameHex,  EntryKey::kStream,
          EntryKey::kHash,     EntryKey::kDevice,   EntryKey::kThread,   EntryKey::kSeq,
          EntryKey::kTime,     EntryKey::kCaptured, EntryKey::kReplayed, EntryKey::kFailed,
          EntryKey::kPending,  EntryKey::kInternal, EntryKey::kWarmup,   EntryKey::kStale,
          EntryKey::kDisabled, EntryKey::kGraph,    EntryKey::kVersion,  EntryKey::kNode,
          EntryKey::kBranch,   EntryKey::kLaunch,   EntryKey::kAttrs});

}  // namespace

EntryKey find_entry_key(std::string_view text) noexcept {
  if (text.empty()) return EntryKey::kNone;
  const std::uint8_t index = kSlotTable[slot_of(text)];
  if (index == kFree || kKeyTexts[index].text != text) return EntryKey::kNone;
  return kKeyTexts[index].key;
}

std::uint64_t keys_of(OperationKind kind) noexcept {
  switch (kind) {
    case OperationKind::kKernelLaunch:
      return kCommon |
             bits({EntryKey::kGrid, EntryKey::kBlock, EntryKey::kSharedMemBytes, EntryKey::kCluster,
                   EntryKey::kCooperative, EntryKey::kArgs, EntryKey::kArgsHash});
    case OperationKind::kMemcpy:
      return kCommon | bits({EntryKey::kDirection, EntryKey::kBytes, EntryKey::kExtent,
                             EntryKey::kPeerDevice, EntryKey::kSource, EntryKey::kDestination});
    case OperationKind::kMemset:
      return kCommon | bits({EntryKey::kBytes, EntryKey::kValue, EntryKey::kValueSize,
                             EntryKey::kExtent, EntryKey::kDestination});
    case OperationKind::kAlloc:
      return kCommon | bits({EntryKey::kBytes});
    case OperationKind::kFree:
      return kCommon | bits({EntryKey::kDestination});
    case OperationKind::kPrefetch:
      return kCommon | bits({EntryKey::kBytes, EntryKey::kDestination});
    case OperationKind::kEventRecord:
    case OperationKind::kEventWait:
    case OperationKind::kSynchronize:
      return kCommon | bits({EntryKey::kEvent});
    case OperationKind::kMark:
      return kCommon | bits({EntryKey::kMark});
    case OperationKind::kUnknown:
      // What a later version hashes is not known here: its hash is kept, not checked.
      return kCommon & ~bits({EntryKey::kHash});
    default:
      return kCommon;
  }
}

}  // namespace lockstep
