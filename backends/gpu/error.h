// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/backend.h>

#include <string>
#include <string_view>

#include "calls.h"

namespace lockstep::gpu {

using Result = int;

// Fills the caller's record (which may be null, or older and shorter than ours) and returns code.
// Cold: the compiler moves what leads to it, the making of texts above all, off the launch path.
[[gnu::cold]] lockstep_code fail(lockstep_error* error, lockstep_code code, std::string_view call,
                                 std::string_view message);

// A driver call that failed: code, rule and name from its number, and a message that names the call
// and adds `detail` (what was asked, what to do). Captures that it invalidated remember it.
[[gnu::cold]] lockstep_code fail_native(lockstep_error* error, Call call, Result result,
                                        std::string_view detail = {});

// Copies a compiler's or loader's log into the caller's buffer.
void give_log(lockstep_error* error, std::string_view log);

// The shared part of both vendors' numbers.
lockstep_code code_of(Result result);
lockstep_capture_rule rule_of(Result result);
// What the rule says, in words for people; "" for none.
const char* explain_rule(lockstep_capture_rule rule);

}  // namespace lockstep::gpu
