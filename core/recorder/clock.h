// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::recorder {

/// The cheapest clock that is right on this machine (a Clock of layout.h).
std::uint32_t choose_clock() noexcept;

}  // namespace lockstep::recorder
