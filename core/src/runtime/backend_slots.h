// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

/// \file
/// The one way to a plugin's slots.
namespace lockstep::runtime {

/// A table of full size: what lies beyond the size that the plugin's table has, or is null there,
/// calls a function that carries out the slot's null policy (mostly: NOT_SUPPORTED, naming the
/// slot). So every slot may be called, and nobody else has to know a plugin's age.
lockstep_backend complete_table(const lockstep_backend& plugin_table);

}  // namespace lockstep::runtime
