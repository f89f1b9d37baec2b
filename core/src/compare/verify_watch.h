// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <vector>

#include "src/runtime/host_watch.h"

/// \file
/// Puts what host threads learnt during a run into the trace of that run, for verification.
namespace lockstep::verifying {

/// Events of notices are numbered from here, out of the way of those of any trace.
constexpr std::int64_t kFirstWatchedEvent = std::int64_t{1} << 62;

/// Leaves marks, by which add_notices() knows the numbers of the streams. To be called by the
/// thread whose trace it is, while that is open, after everything else.
void mark_streams(const std::vector<runtime::HostNotice>& notices);

/// Takes these marks out of `trace`, of the calling thread alone, and adds queries of that thread
/// and waits and queries of all others as synchronisations, each at its place. Nothing is added
/// where there are none of one backend.
void add_notices(Trace& trace, const std::vector<runtime::HostNotice>& notices,
                 const void* backend);

}  // namespace lockstep::verifying
