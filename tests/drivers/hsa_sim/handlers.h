// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "signals.h"

// Functions that AMD's runtime wants called when a signal gets a value. One thread calls them all.
namespace hsa_sim {

void wake_handlers() noexcept;
// A destroyed signal has none.
void forget_handlers(Signal& signal);

}  // namespace hsa_sim
