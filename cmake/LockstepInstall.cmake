# The install tree by component (runtime, cli, dev, examples), find_package, pkg-config, packages.
include(CMakePackageConfigHelpers)

install(TARGETS lockstep_core EXPORT lockstepTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev)
install(TARGETS lockstep_headers EXPORT lockstepTargets)
set_target_properties(lockstep_headers PROPERTIES EXPORT_NAME headers)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/core/include/lockstep" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT dev FILES_MATCHING PATTERN "*.h")

set(_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lockstep")
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION "${_config_dir}" COMPONENT dev)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/lockstepConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/lockstepConfig.cmake" INSTALL_DESTINATION "${_config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/lockstepConfig.cmake" "${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake"
  DESTINATION "${_config_dir}" COMPONENT dev)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/plugin.map" "${PROJECT_SOURCE_DIR}/cmake/LockstepBackend.cmake" DESTINATION "${_config_dir}" COMPONENT dev)

# Relative to the file itself, so that an install tree can be moved.
file(RELATIVE_PATH _pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" _pc_prefix "${_pc_prefix}")
set(LOCKSTEP_PC_PREFIX "\${pcfiledir}/${_pc_prefix}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in" "${PROJECT_BINARY_DIR}/lockstep.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/lockstep.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

if(PROJECT_IS_TOP_LEVEL)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
  set(CPACK_PACKAGE_NAME lockstep)
  set(CPACK_PACKAGE_CONTACT "The Lockstep developers <maintainers@lockstep.invalid>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
  set(CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SECTION libs)
  # One package a component.
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL runtime cli dev examples)
  set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${LOCKSTEP_LIBRARY_DIR}")
  # The host backend compiles kernels when a program runs.
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "g++ | clang")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
  include(CPack)
  cpack_add_component(runtime DESCRIPTION "The library, its plugins and the probe")
  cpack_add_component(cli DESCRIPTION "The command line and the conformance suite" DEPENDS runtime)
  cpack_add_component(dev DESCRIPTION "Headers, CMake package, pkg-config file" DEPENDS runtime)
  cpack_add_component(examples DESCRIPTION "Example programs and their data" DEPENDS runtime)
endif()
