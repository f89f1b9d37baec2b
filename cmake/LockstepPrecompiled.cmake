# Precompiled headers, for machines that compile all of Lockstep once and without a compiler cache:
# half of the time of such a build is the parsing of standard headers. OFF by default: a build with
# them does not notice that a file includes less than it uses. The lane of clang does: it has them
# for the tests alone (TESTS), and builds the rest as who installs Lockstep does.
#
# Only headers of others, never our own: what they would rebuild is everything.
# <iostream> is left out: it adds an initializer to each file.
set(_standard_headers
  <algorithm> <array> <atomic> <cerrno> <chrono> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring>
  <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <set>
  <span> <sstream> <stdexcept> <string> <string_view> <thread> <unordered_map> <utility> <vector>)
# What ccache has to be told to work with them: that no file tells the time or the date, and that
# headers as new as their users (a precompiled one is) are fine; and gcc, to name them where it
# preprocesses.
set(_launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
set(_more_options "")
if(_launcher MATCHES "ccache")
  set(_more_options "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>" "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  list(PREPEND _launcher env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime")
endif()
# What fewer sources share costs more than it saves.
set(_fewest_sources 12)

# _lockstep_all_targets(<variable> <folder>): what is built in the folder and below it.
function(_lockstep_all_targets variable folder)
  get_directory_property(found DIRECTORY "${folder}" BUILDSYSTEM_TARGETS)
  get_directory_property(folders DIRECTORY "${folder}" SUBDIRECTORIES)
  foreach(each IN LISTS folders)
    _lockstep_all_targets(below "${each}")
    list(APPEND found ${below})
  endforeach()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# _lockstep_describe(<target>): sets in the caller what a compiler wants to be the same where a
# header is precompiled and where it is used: `options`, `code` (of a library or of a program) and
# `libraries` (whose headers are precompiled too; they come with definitions).
function(_lockstep_describe target)
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(FILTER options EXCLUDE REGEX "^(-W|-ffile-prefix-map|.*:-W)")
  get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
  get_target_property(linked ${target} LINK_LIBRARIES)
  set(libraries "")
  if("fmt::fmt" IN_LIST linked)
    list(APPEND libraries fmt::fmt)
  endif()
  if("GTest::gmock_main" IN_LIST linked)
    list(APPEND libraries GTest::gmock_main)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(code program)
  else()
    set(code library)
  endif()
  if(NOT visibility)
    set(code "")
  endif()
  set(options "${options}" PARENT_SCOPE)
  set(libraries "${libraries}" PARENT_SCOPE)
  set(code "${code}" PARENT_SCOPE)
endfunction()

# _lockstep_precompile(<target> <code> <options> <libraries>): the target whose precompiled header
# others use.
function(_lockstep_precompile target code options libraries)
  set(empty "${PROJECT_BINARY_DIR}/${target}.cpp")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "int main() {}\n")
  if(code STREQUAL "program")
    add_executable(${target} EXCLUDE_FROM_ALL "${empty}")
  else()
    add_library(${target} OBJECT EXCLUDE_FROM_ALL "${empty}")
  endif()
  lockstep_configure_target(${target})
  target_compile_options(${target} PRIVATE ${options})
  target_link_libraries(${target} PRIVATE ${libraries})
  set(headers ${_standard_headers})
  if("fmt::fmt" IN_LIST libraries)
    list(APPEND headers <fmt/format.h>)
  endif()
  if("GTest::gmock_main" IN_LIST libraries)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
    target_link_libraries(${target} PRIVATE nlohmann_json::nlohmann_json)
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${_launcher}")
endfunction()

# The targets by what they need to be the same.
if(LOCKSTEP_PRECOMPILED_HEADERS STREQUAL "TESTS")
  _lockstep_all_targets(_targets "${PROJECT_SOURCE_DIR}/tests")
else()
  _lockstep_all_targets(_targets "${PROJECT_SOURCE_DIR}")
endif()
set(_kinds "")
foreach(_target IN LISTS _targets)
  get_target_property(_type ${_target} TYPE)
  if(NOT _type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
    continue()
  endif()
  _lockstep_describe(${_target})
  if(NOT code)
    continue()
  endif()
  string(MD5 _kind "${code} ${options} ${libraries}")
  if(NOT _kind IN_LIST _kinds)
    list(APPEND _kinds ${_kind})
    set(_targets_${_kind} "")
    set(_files_${_kind} "")
  endif()
  get_target_property(_sources ${_target} SOURCES)
  list(FILTER _sources INCLUDE REGEX "\\.cpp$")
  list(APPEND _files_${_kind} ${_sources})
  list(APPEND _targets_${_kind} ${_target})
endforeach()

foreach(_kind IN LISTS _kinds)
  list(LENGTH _files_${_kind} _count)
  if(_count LESS _fewest_sources)
    continue()
  endif()
  list(GET _targets_${_kind} 0 _target)
  _lockstep_describe(${_target})
  set(_owner lockstep_precompiled_for_${_target})
  _lockstep_precompile(${_owner} "${code}" "${options}" "${libraries}")
  foreach(_target IN LISTS _targets_${_kind})
    target_precompile_headers(${_target} REUSE_FROM ${_owner})
    target_compile_options(${_target} PRIVATE ${_more_options})
    set_target_properties(${_target} PROPERTIES CXX_COMPILER_LAUNCHER "${_launcher}")
  endforeach()
endforeach()
