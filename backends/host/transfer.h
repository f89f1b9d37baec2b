// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <memory>
#include <vector>

#include "work.h"

namespace lockstep::hostrt {

class Device;

// A copy that was checked: both ends lie within allocations, the direction was found from them.
struct CheckedCopy {
  WorkPtr work;  // null when it is empty
  lockstep_record record;
  bool pageable_source = false;
};
CheckedCopy check_copy(const Device& device, const lockstep_copy_desc& desc);
// The same copy reading from a private copy of its source, made now.
WorkPtr stage_copy(const Work& copy);

// A set that was checked, one work a plane; no works and one record when it is empty.
struct CheckedSet {
  std::vector<WorkPtr> works;
  lockstep_record empty_record;
};
CheckedSet check_set(const Device& device, const lockstep_set_desc& desc);

}  // namespace lockstep::hostrt
