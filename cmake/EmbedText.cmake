# cmake -DINPUT=<text> -DOUTPUT=<cpp> -DNAMESPACE=<ns> -DVARIABLE=<name> -P EmbedText.cmake
# Writes a C++ source that defines `const char* const <name>` with the text of a file.
file(READ "${INPUT}" _text)
# A raw string literal holds at most 64 KiB on some compilers: one literal every 8000 characters,
# which the compiler joins.
string(LENGTH "${_text}" _length)
set(_body "")
set(_at 0)
while(_at LESS _length)
  string(SUBSTRING "${_text}" ${_at} 8000 _piece)
  string(APPEND _body "R\"lockstep_text(${_piece})lockstep_text\"\n")
  math(EXPR _at "${_at} + 8000")
endwhile()
if(_body STREQUAL "")
  set(_body "\"\"")
endif()
file(WRITE "${OUTPUT}" "// SPDX-License-Identifier: Apache-2.0
// Made from a file of the source tree when building.
namespace ${NAMESPACE} {
extern const char* const ${VARIABLE};
const char* const ${VARIABLE} =
${_body};
}  // namespace ${NAMESPACE}
")
