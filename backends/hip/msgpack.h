// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::hip {

// Reads MessagePack values one after the other, as much of the format as metadata of kernels needs.
// Never reads beyond what it was given; after the first damage every answer is false.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view bytes) : bytes_(bytes) {}

  // The next value, when it is of the kind; else damage.
  bool map(std::uint32_t* pairs);
  bool array(std::uint32_t* elements);
  bool text(std::string_view* value);
  bool number(std::uint64_t* value);  // not negative
  // Whatever comes next, with everything in it.
  bool skip() { return skip(0); }

  bool ok() const { return ok_; }

 private:
  bool skip(int depth);
  bool damaged();
  bool byte(std::uint8_t* value);
  bool big_endian(int bytes, std::uint64_t* value);
  bool take(std::uint64_t count, std::string_view* taken);

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace lockstep::hip
