# lockstep_note(<text>): one more line of the summary table.
function(lockstep_note text)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_NOTES "${text}")
endfunction()

# Helpers that give every target the same warnings, visibility and output place.

# lockstep_configure_target(<target>): warnings, hidden symbols, reproducible paths. Applied to our
# own targets one by one, never through global flags, so that a parent project is left alone.
function(lockstep_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
    # gcc 12 warns of overlap in std::string's own operator+ (its bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # As clang does it: within a library its own functions are called without a detour.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
  if(LOCKSTEP_WARNINGS_AS_ERRORS)
    set_target_properties(${target} PROPERTIES COMPILE_WARNING_AS_ERROR ON)
  endif()
endfunction()

include(LockstepBackend)

# lockstep_add_plugin(<name> SOURCES <file>... [LIBRARIES <target>...]): a backend of our own, in
# the build tree's folder of plugins and installed.
function(lockstep_add_plugin name)
  cmake_parse_arguments(arg "NO_INSTALL" "" "SOURCES;LIBRARIES" ${ARGN})
  set(target lockstep_backend_${name})
  lockstep_add_backend(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES})
  lockstep_configure_target(${target})
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${LOCKSTEP_PLUGIN_DIR}"
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/../..")
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION "${LOCKSTEP_INSTALL_PLUGIN_DIR}" COMPONENT runtime)
  endif()
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PLUGINS ${name})
endfunction()

# lockstep_add_program(<name> SOURCES <file>... [LIBRARIES <target>...] [COMPONENT <component>]):
# a program in the build tree's bin folder, installed when a component is named.
function(lockstep_add_program name)
  cmake_parse_arguments(arg "" "COMPONENT;DESTINATION" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  lockstep_configure_target(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${LOCKSTEP_BINARY_DIR}"
    BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  if(arg_COMPONENT)
    install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT ${arg_COMPONENT})
  endif()
endfunction()

# lockstep_compile_quickly(<target>): for test code, which is compiled once and run for a moment.
# What it tests keeps the build type's own flags. Halves the time of a lane.
function(lockstep_compile_quickly target)
  target_compile_options(${target} PRIVATE -O0 -g1)
endfunction()
