# cmake -DINPUT=<text> -DOUTPUT=<file> -DVARIABLE=<name> [-DNAMESPACE=<ns>] -P EmbedText.cmake
# Makes the text of a file a C++ variable: with a namespace a source that defines
# `const char* const <name>`, without one a header with `inline constexpr char <name>[]`.
file(READ "${INPUT}" text)
# Compilers bound the length of one literal: one every 8000 characters, which they join.
string(LENGTH "${text}" length)
set(literals "\"\"")
set(position 0)
while(position LESS length)
  string(SUBSTRING "${text}" ${position} 8000 piece)
  string(APPEND literals "\nR\"lockstep_text(${piece})lockstep_text\"")
  math(EXPR position "${position} + 8000")
endwhile()
if(DEFINED NAMESPACE)
  file(WRITE "${OUTPUT}" "namespace ${NAMESPACE} {
extern const char* const ${VARIABLE};
const char* const ${VARIABLE} = ${literals};
}  // namespace ${NAMESPACE}
")
else()
  file(WRITE "${OUTPUT}" "#pragma once\ninline constexpr char ${VARIABLE}[] = ${literals};\n")
endif()
