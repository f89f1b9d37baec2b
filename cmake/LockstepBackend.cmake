# lockstep_add_backend(<name> SOURCES <file>... [LIBRARIES <target>...]): a backend plugin,
# liblockstep_backend_<name>.so, that exports lockstep_backend_query and nothing else and is never
# unloaded. Installed with Lockstep, for plugins of others, and used for its own.
set(_lockstep_plugin_map "${CMAKE_CURRENT_LIST_DIR}/plugin.map")
function(lockstep_add_backend name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(target lockstep_backend_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE lockstep::headers ${arg_LIBRARIES})
  target_link_options(${target} PRIVATE "-Wl,--version-script=${_lockstep_plugin_map}"
    "-Wl,--exclude-libs,ALL" "-Wl,-z,nodelete")
  # A sanitizer's runtime comes with the program.
  if(NOT LOCKSTEP_SANITIZE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE "-Wl,--no-undefined")
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${_lockstep_plugin_map}")
endfunction()
