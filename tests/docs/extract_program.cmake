# cmake -DPAGE=README.md "-DMARK=int main()" -DOUTPUT=program.cpp -P extract_program.cmake: the page's
# block of C++ in which MARK stands first, as it stands.
file(READ "${PAGE}" _page)
string(FIND "${_page}" "${MARK}" _mark)
if(_mark EQUAL -1)
  message(FATAL_ERROR "${PAGE} has no program with ${MARK}")
endif()
string(SUBSTRING "${_page}" 0 ${_mark} _before)
string(FIND "${_before}" "```cpp\n" _begin REVERSE)
math(EXPR _begin "${_begin} + 7")
string(SUBSTRING "${_page}" ${_begin} -1 _rest)
string(FIND "${_rest}" "\n```" _end)
string(SUBSTRING "${_rest}" 0 ${_end} _program)
file(WRITE "${OUTPUT}" "${_program}\n")
