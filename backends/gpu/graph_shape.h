// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "objects.h"

namespace lockstep::gpu {

// Whether two graphs have the same nodes, by kind, in the same order and with the same edges, child
// graphs included: what an update of one to the other asks for. *outcome is LOCKSTEP_UPDATE_DONE
// when they do, else what differs.
Result compare_shapes(Handle a, const std::vector<GraphNode>& a_nodes, Handle b,
                      const std::vector<GraphNode>& b_nodes, std::uint32_t* outcome);

}  // namespace lockstep::gpu
