# cmake -DLOCKSTEP=… -DPROGRAM=… -P run_commands.cmake: the README's program recorded twice, the
# recordings compared, and verified.
set(_folder "${CMAKE_CURRENT_BINARY_DIR}/readme-commands")
file(REMOVE_RECURSE "${_folder}")
file(MAKE_DIRECTORY "${_folder}")

# run(EXPECTED COMMAND...): the command ends with 0 and says EXPECTED.
function(run expected)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${_folder}"
    RESULT_VARIABLE _code OUTPUT_VARIABLE _output ERROR_VARIABLE _output)
  if(NOT _code EQUAL 0 OR NOT _output MATCHES "${expected}")
    message(FATAL_ERROR "${ARGN}: ended with ${_code}, not 0 and `${expected}`:\n${_output}")
  endif()
  message("${_output}")
endfunction()

foreach(_day yesterday today)
  run("replay verified" "${LOCKSTEP}" record -o ${_day}.jsonl -- "${PROGRAM}")
endforeach()
# Two copies and the kernel eagerly, and the kernel replayed.
run("^equal: 4 entries\n$" "${LOCKSTEP}" diff yesterday.jsonl today.jsonl)
run("^graph [0-9]+ version 1: replay verified \\(L0-L3\\): 1 entry" "${LOCKSTEP}" verify today.jsonl)
file(REMOVE_RECURSE "${_folder}")
