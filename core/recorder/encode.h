// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "recorder/layout.h"

/// \file
/// lockstep_record → EntryRecord: everything the record points to is copied.
namespace lockstep::recorder {

/// Bytes that `record` takes as an EntryRecord, a multiple of 8. Arguments that would take more
/// than the largest record are left out (*with_arguments false).
std::uint32_t encoded_size(const lockstep_record& record, bool* with_arguments) noexcept;

/// Fills everything of `entry` but its header.
void encode(EntryRecord* entry, const lockstep_record& record, bool with_arguments) noexcept;

}  // namespace lockstep::recorder
