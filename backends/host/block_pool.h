// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::hostrt {

// Runs body(first, count) over the numbers [0, total), each once, lower ones first; several threads
// may help, the calling one always takes part and never runs anything else meanwhile. A body that
// returns false stops the rest. Helpers are asked only once the loop has run for some microseconds,
// so that short loops cost no wake-up.
void run_in_parallel(std::uint64_t total,
                     const std::function<bool(std::uint64_t first, std::uint64_t count)>& body);

}  // namespace lockstep::hostrt
