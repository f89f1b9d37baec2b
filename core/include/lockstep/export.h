// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Marks what the core library exports. Everything else is hidden.
#define LOCKSTEP_API __attribute__((visibility("default")))
