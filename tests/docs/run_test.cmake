# cmake -DPROGRAM=… -P run_test.cmake: the README's test without a golden trace, as it writes one, and
# with it.
set(_folder "${CMAKE_CURRENT_BINARY_DIR}/readme-test")
file(REMOVE_RECURSE "${_folder}")
file(MAKE_DIRECTORY "${_folder}")
foreach(_mode check new check)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env --unset=CI LOCKSTEP_GOLDEN=${_mode} "${PROGRAM}"
    WORKING_DIRECTORY "${_folder}" RESULT_VARIABLE _code OUTPUT_VARIABLE _output ERROR_VARIABLE _output)
  list(APPEND _codes ${_code})
  string(APPEND _outputs "${_output}")
endforeach()
if(NOT _codes STREQUAL "1;0;0" OR NOT _outputs MATCHES "golden/step.jsonl does not exist; LOCKSTEP_GOLDEN=new writes it")
  message(FATAL_ERROR "check, new, check: ended with ${_codes}, not 1;0;0:\n${_outputs}")
endif()
file(REMOVE_RECURSE "${_folder}")
