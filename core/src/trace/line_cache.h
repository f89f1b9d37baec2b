// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <xxhash.h>

/// \file
/// Entries by the text of their line. Loops write the same line again and again (unless times or
/// sequence numbers are recorded), and a comparison of texts is much cheaper than a decoding.
namespace lockstep {

class LineCache {
 public:
  /// The entry that this very text decodes to, nullptr when it is not remembered.
  const LaunchTraceEntry* find(std::string_view line) {
    if (given_up_ || line.size() > kLongestLine) return nullptr;
    ++asked_;
    // Lines that differ each time would pay for nothing.
    if (asked_ == kTrial && found_ < kTrial / 8) {
      given_up_ = true;
      slots_.clear();
      return nullptr;
    }
    slot_ = static_cast<std::size_t>(XXH3_64bits(line.data(), line.size())) % kSlots;
    if (slots_.empty()) slots_.resize(kSlots);
    const Slot& slot = slots_[slot_];
    if (slot.line != line || line.empty()) return nullptr;
    ++found_;
    return &slot.entry;
  }

  /// After find() of the same line returned nullptr.
  void remember(std::string_view line, const LaunchTraceEntry& entry) {
    if (given_up_ || line.size() > kLongestLine) return;
    slots_[slot_].line.assign(line);
    slots_[slot_].entry = entry;
  }

 private:
  static constexpr std::size_t kSlots = 512;
  static constexpr std::size_t kLongestLine = 2048;
  static constexpr std::uint64_t kTrial = 4096;
  struct Slot {
    std::string line;
    LaunchTraceEntry entry;
  };
  std::vector<Slot> slots_;
  std::size_t slot_ = 0;
  std::uint64_t asked_ = 0, found_ = 0;
  bool given_up_ = false;
};

}  // namespace lockstep
