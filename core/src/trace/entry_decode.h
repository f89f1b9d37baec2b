// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace_entry.h>

#include "src/trace/json_values.h"

namespace lockstep {

/// One entry or node of a graph from its JSON object. \throws DecodeError.
void decode_entry(const object& line, LaunchTraceEntry& entry, bool check_hash);

}  // namespace lockstep
