// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the source rewriter has to know of preprocessor lines without preprocessing.

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hostjit {

// True for an include of a vendor's header whose contents the prelude provides.
bool includes_what_is_provided(std::string_view directive);

// For an include of what the host cannot do: why, and what to do instead. Else empty.
std::string why_not_included(std::string_view directive);

// Follows `#if` to `#endif`. A file's include guard is not counted.
class Conditions {
 public:
  // `next`: the directive after this one when nothing stands between them, else empty.
  void pass(std::string_view directive, std::string_view next);
  // Whether it is for the compiler alone to say if this place exists.
  bool may_leave_out() const;

 private:
  std::vector<bool> open_;  // false: a guard
};

}  // namespace lockstep::hostjit
