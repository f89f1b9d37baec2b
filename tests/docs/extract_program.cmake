# cmake -DPAGE=README.md -DOUTPUT=program.cpp -P extract_program.cmake: the page's only block of C++
# with a main function, as it stands.
file(READ "${PAGE}" _page)
string(FIND "${_page}" "int main()" _main)
if(_main EQUAL -1)
  message(FATAL_ERROR "${PAGE} has no program")
endif()
string(SUBSTRING "${_page}" 0 ${_main} _before)
string(FIND "${_before}" "```cpp\n" _begin REVERSE)
math(EXPR _begin "${_begin} + 7")
string(SUBSTRING "${_page}" ${_begin} -1 _rest)
string(FIND "${_rest}" "\n```" _end)
string(SUBSTRING "${_rest}" 0 ${_end} _program)
file(WRITE "${OUTPUT}" "${_program}\n")
