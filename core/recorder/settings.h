// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::recorder {

/// What the environment asks of the recorder.
struct Settings {
  std::uint64_t ring_bytes;
  std::int64_t rank;     ///< -1 = none
  char directory[3072];  ///< "" = rings stay in this process
};

/// Reads LOCKSTEP_TRACE_BUFFER_MB, LOCKSTEP_RECORD_DIR and the variables of MPI, torchrun and
/// Slurm. False: a value is not valid, and `message` says which and why.
bool read_settings(Settings* settings, char* message, std::size_t capacity) noexcept;

}  // namespace lockstep::recorder
