// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

/// \file
/// One line of a trace file to one item. The JSON library stays behind this border.
namespace lockstep {

/// Bytes that must be readable behind a line (their content does not matter).
inline constexpr std::size_t kLinePadding = 64;

/// What is wrong with a line; whoever knows file and line number makes an Error of it.
class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class LineKind : std::uint8_t { kEntry, kStream, kGraph, kMeta, kFooter, kHeader };

/// Where a decoder puts what a line says; only the member that LineKind names is touched.
struct DecodedLine {
  LaunchTraceEntry entry;
  StreamDefinition stream;
  GraphDefinition graph;
  TraceFooter footer;
  TraceInfo info;  ///< header and meta lines are merged into what is there
};

class LineDecoder {
 public:
  explicit LineDecoder(bool check_hashes);
  ~LineDecoder();
  LineDecoder(const LineDecoder&) = delete;
  LineDecoder& operator=(const LineDecoder&) = delete;

  /// \throws DecodeError. `line` is followed by kLinePadding readable bytes.
  LineKind decode(std::string_view line, DecodedLine& into);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// JSON text without white space. \throws Error kInvalidArgument when it is not JSON.
std::string compact_json(const std::string& text);
/// Makes compact_json() usable until the process has ended. Called before the end begins.
void prepare_json();

}  // namespace lockstep
