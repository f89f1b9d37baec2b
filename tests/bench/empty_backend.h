// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The driver of which all functions are empty, shaped as a GPU driver's launch call is.
namespace bench {

struct EmptyDriver {
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra);
  int (*graph_launch)(void* executable, void* stream);
};

/// Exported by the plugins as `bench_empty_driver`.
using EmptyDriverFunction = EmptyDriver* (*)();

}  // namespace bench
