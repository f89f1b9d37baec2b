# Writes OUTPUT, a C++ source with the text of the headers in FILES ("name=path" each) as literals.
set(entries "")
foreach(file IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" matched "${file}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  string(APPEND entries "    {\"${name}\", R\"LOCKSTEP(${text})LOCKSTEP\"},\n")
endforeach()
file(WRITE "${OUTPUT}"
"// SPDX-License-Identifier: Apache-2.0
#include \"embedded.h\"

namespace lockstep::hostjit {
namespace {
constexpr EmbeddedFile kFiles[] = {
${entries}};
}  // namespace
std::span<const EmbeddedFile> embedded_files() { return kFiles; }
}  // namespace lockstep::hostjit
")
