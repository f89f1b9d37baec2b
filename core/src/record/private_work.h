// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Work of ours that no trace of the program may see.
namespace lockstep {

/// While one lives, what its thread enqueues is private: traces that the thread opens meanwhile see
/// that and nothing else, all other traces and files do not see it. Allocations, streams and graphs
/// are known to all as ever. May be nested; must end on the thread that began it.
/// \throws Error as host_recorder() does.
class PrivateWork {
 public:
  PrivateWork();
  ~PrivateWork();
  PrivateWork(const PrivateWork&) = delete;
  PrivateWork& operator=(const PrivateWork&) = delete;
};

}  // namespace lockstep
