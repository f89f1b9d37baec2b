// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include <cstdint>
#include <string_view>

/// \file
/// Keys that entries have in files, and which kind has which.
namespace lockstep {

enum class EntryKey : std::uint8_t {
  kKind,
  kName,
  kNameHex,
  kStream,
  kHash,
  kGrid,
  kBlock,
  kSharedMemBytes,
  kCluster,
  kCooperative,
  kDirection,
  kBytes,
  kValue,
  kValueSize,
  kExtent,
  kDevice,
  kPeerDevice,
  kThread,
  kSeq,
  kTime,
  kCaptured,
  kReplayed,
  kFailed,
  kPending,
  kInternal,
  kWarmup,
  kStale,
  kDisabled,
  kGraph,
  kVersion,
  kNode,
  kBranch,
  kLaunch,
  kEvent,
  kMark,
  kAttrs,
  kArgs,
  kArgsHash,
  kSource,
  kDestination,
  kNone,  ///< no key of this version
};

/// kNone when it is not a key of this version.
EntryKey find_entry_key(std::string_view text) noexcept;

/// Bit of every key that entries of that kind have; a key that is not among them is kept as one
/// that this version does not know.
std::uint64_t keys_of(OperationKind kind) noexcept;

}  // namespace lockstep
