// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "signals.h"

// Copy engines: each a thread that does one copy after the other, like a GPU's.
namespace hsa_sim {

struct CopyJob {
  std::vector<hsa_signal_t> after;
  std::function<void()> work;
  hsa_signal_t completion{};
};

void submit_copy(hsa_agent_t to, hsa_agent_t from, CopyJob job);

}  // namespace hsa_sim
