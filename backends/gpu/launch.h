// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "objects.h"

namespace lockstep::gpu {

// Hot: the linker lays what is on the path of a launch side by side, on few pages.
[[gnu::hot]] lockstep_code launch(lockstep_stream* stream, const lockstep_launch_desc* desc,
                                  lockstep_error* error);
lockstep_code copy(lockstep_stream* stream, const lockstep_copy_desc* desc, lockstep_error* error);
lockstep_code set(lockstep_stream* stream, const lockstep_set_desc* desc, lockstep_error* error);

// What a launch is to the driver; shared by streams and graph nodes.
[[gnu::hot]] lockstep_code plan_launch(const lockstep_launch_desc* desc, KernelLaunch* launch,
                                       lockstep_error* error);
// Which limit a launch breaks, in words; "" when none that we know of.
[[gnu::noinline]] std::string explain_launch(const lockstep_launch_desc* desc,
                                             const lockstep_device* device);
[[gnu::hot]] void fill_kernel(lockstep_record& record, const lockstep_kernel* kernel,
                              const KernelLaunch& launch, const lockstep_launch_desc* desc);
// Interned JSON text of launch attributes that are kept and not hashed; 0 = none.
std::uint32_t intern_attributes(const KernelLaunch& launch);
inline std::uint32_t attributes_number(const KernelLaunch& launch) {
  return launch.programmatic || launch.has_priority ? intern_attributes(launch) : 0;
}

struct PlannedCopy {
  Copy copy;
  Call call = Call::kCopyAny;
  std::uint32_t direction = LOCKSTEP_COPY_NONE;
  std::int32_t peer_device = -1;
  std::int32_t device = -1;  // source of a peer copy
  bool empty = false;
};
// Checks a description and finds direction and call. `capturing` chooses calls that are legal then.
lockstep_code plan_copy(const lockstep_copy_desc* desc, bool capturing, PlannedCopy* plan,
                        lockstep_error* error);
void fill_copy(lockstep_record& record, const PlannedCopy& plan);
std::uint32_t direction_of(bool source_is_device, bool destination_is_device);
// The call for one direction and extent.
Call call_for(std::uint32_t direction, std::uint64_t height, std::uint64_t depth, bool peer);

struct PlannedSet {
  Set plane;  // the first one
  std::uint64_t planes = 1;
  std::uint64_t slice_pitch = 0;
  Call call = Call::kSet8;
  bool empty = false;
};
lockstep_code plan_set(const lockstep_set_desc* desc, PlannedSet* plan, lockstep_error* error);
void fill_set(lockstep_record& record, const Set& set);

}  // namespace lockstep::gpu
