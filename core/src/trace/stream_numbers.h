// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "src/trace/line_source.h"
#include "src/trace/trace_decode.h"

/// \file
/// Numbers of streams whose first lines were written before they had one. A stream is numbered by
/// its first work, and a line that has been written cannot be changed: what a stream does before
/// (event records, waits) may stand in a file under a provisional number, which a later definition
/// replaces. Who reads sees final numbers only.
namespace lockstep {

/// Keys of stream definitions: `"provisional":true`, and `"replaces":N` of the final one.
inline constexpr std::string_view kProvisionalKey = "provisional";
inline constexpr std::string_view kReplacesKey = "replaces";

class StreamNumbers {
 public:
  /// Takes the next stream definition of the file as it stands there. A provisional one gets its
  /// final number, for which `source` is looked through as far as it takes: in a truncated file,
  /// streams that never worked come behind all that are defined. False for a definition that
  /// replaces a provisional one and says nothing new.
  /// \throws DecodeError.
  bool take(StreamDefinition& definition, LineSource& source);

  /// True while all numbers are final.
  bool empty() const noexcept { return provisional_.empty(); }
  std::uint32_t final_number(std::uint32_t stream) const;

 private:
  struct Stream {
    std::optional<std::uint32_t> number;
    bool replaced = false;  ///< by a definition that take() saw
  };
  struct Said {
    bool provisional = false;
    std::optional<std::uint32_t> replaces;
  };

  static Said read_keys(StreamDefinition& definition);
  void note(const Said& said, std::uint32_t stream);
  void look_for(const Stream& stream, LineSource& source);
  void number_the_rest();

  std::map<std::uint32_t, Stream> provisional_;
  std::uint64_t next_ = 0;  ///< behind all that are defined
  bool seen_all_ = false;
  std::optional<LineDecoder> decoder_;
};

}  // namespace lockstep
