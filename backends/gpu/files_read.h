// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Which files a run-time compiler (NVRTC, hipRTC) reads besides the texts it is given: what it made
// of files that may change cannot be kept. Neither compiler tells; so whatever is not known to read
// nothing but the given texts and the compiler's own headers counts as reading something else.
namespace lockstep::gpu {

// The first option that is not known to leave files alone; "" when there is none.
std::string option_that_may_read(const std::vector<std::string>& options);

// The first thing in `text` that may read a file which is neither one of the texts `given` by name
// nor a header of the compiler's own: <name>, when it looks into its `own_folders_only`. NVRTC
// looks for "name" in the source's folder and in the one it runs in, without any option. "" when
// there is none. Comments, strings and branches that are left out are not told apart from what is
// compiled.
std::string text_that_may_read(std::string_view text, const std::vector<std::string_view>& given,
                               bool own_folders_only);

}  // namespace lockstep::gpu
