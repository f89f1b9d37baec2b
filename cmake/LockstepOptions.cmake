# Every switch a user may set, with its default. Tests, tools and examples are built only when
# Lockstep is the project being configured, not when another project adds it.

option(LOCKSTEP_BUILD_CLI "Build the lockstep command line" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_BUILD_EXAMPLES "Build the example programs" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_BUILD_CONFORMANCE "Build lockstep-conformance" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_BUILD_TESTING_LIBRARY "Build lockstep::testing, which needs GoogleTest" ${PROJECT_IS_TOP_LEVEL})
option(LOCKSTEP_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(LOCKSTEP_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
set(LOCKSTEP_PRECOMPILED_HEADERS OFF CACHE STRING "Precompile standard headers: OFF, TESTS or ON (cmake/LockstepPrecompiled.cmake)")
set_property(CACHE LOCKSTEP_PRECOMPILED_HEADERS PROPERTY STRINGS OFF TESTS ON)
option(LOCKSTEP_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(LOCKSTEP_BACKEND_CUDA "AUTO" CACHE STRING "Build the cuda plugin: AUTO, ON or OFF")
set(LOCKSTEP_BACKEND_HIP "AUTO" CACHE STRING "Build the hip plugin: AUTO, ON or OFF")
set(LOCKSTEP_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")
set_property(CACHE LOCKSTEP_BACKEND_CUDA PROPERTY STRINGS AUTO ON OFF)
set_property(CACHE LOCKSTEP_BACKEND_HIP PROPERTY STRINGS AUTO ON OFF)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The build tree mirrors the install tree, so that a plugin is found beside the core library in
# both without any environment variable.
set(LOCKSTEP_LIBRARY_DIR "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}")
set(LOCKSTEP_PLUGIN_DIR "${LOCKSTEP_LIBRARY_DIR}/lockstep/backends")
set(LOCKSTEP_BINARY_DIR "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_BINDIR}")
set(LOCKSTEP_INSTALL_PLUGIN_DIR "${CMAKE_INSTALL_LIBDIR}/lockstep/backends")

if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()

if(LOCKSTEP_BUILD_FUZZERS)
  # In everything, the library too: what a fuzzer cannot see it cannot find its way through.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
