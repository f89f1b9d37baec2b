# Makes the header of an interface 1.1 that might come from the frozen one of 1.0: a wider range, a
# slot at the end of the table, a field at the end of structures that cross the border both ways.
#   cmake -DFROM=1.0/lockstep/backend.h -DTO=1.1/lockstep/backend.h -P make_1_1.cmake
file(READ "${FROM}" text)
function(change old new)
  string(FIND "${text}" "${old}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the header of 1.0 has no `${old}`")
  endif()
  string(REPLACE "${old}" "${new}" changed "${text}")
  set(text "${changed}" PARENT_SCOPE)
endfunction()
change("ABI_VERSION 1000u" "ABI_VERSION 1001u")
change("ABI_MAX 1000u" "ABI_MAX 1001u")
change("} lockstep_backend;"
  "  lockstep_code (*device_generation)(uint32_t ordinal, uint32_t* generation, lockstep_error*);\n} lockstep_backend;")
change("} lockstep_device_info;" "  uint32_t generation, generation_reserved;\n} lockstep_device_info;")
foreach(name allocation_desc pointer_info copy_desc set_desc module_desc kernel_info launch_desc stream_desc node_desc
    node_info error host)
  change("} lockstep_${name};" "  uint64_t new_in_1_1;\n} lockstep_${name};")
endforeach()
file(WRITE "${TO}" "${text}")
