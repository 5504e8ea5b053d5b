# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs beside the command (tools/CMakeLists.txt): libraries, headers, a CMake package and
# pkg-config files. None of them has an absolute path in it: the tree may be moved.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/runnel)

install(TARGETS runnel-rt runnel EXPORT runnel_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS compile_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/runnel-rt COMPONENT library)
install(EXPORT runnel_shared NAMESPACE runnel:: DESTINATION ${package} FILE runnelShared.cmake COMPONENT development)
if(RNL_STATIC)
  # What stands in the archives' place; runnelConfig.cmake finds these.
  target_link_libraries(runnel-rt_static INTERFACE
    "$<INSTALL_INTERFACE:clblast;OpenCL::OpenCL;PkgConfig::RUNNEL_HWLOC;PkgConfig::RUNNEL_XXHASH>"
    "$<INSTALL_INTERFACE:Threads::Threads;m>")
  target_link_options(runnel-rt_static INTERFACE "$<INSTALL_INTERFACE:LINKER:-z,nodelete>")
  install(TARGETS runnel-rt_static runnel_static EXPORT runnel_static
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT runnel_static NAMESPACE runnel:: DESTINATION ${package} FILE runnelStatic.cmake COMPONENT development)
endif()
install(DIRECTORY runtime/include/runnel host/include/runnel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/runnelConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/runnelConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
# Below 1.0 a minor version may change what programs see.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/runnelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/runnelConfig.cmake ${CMAKE_BINARY_DIR}/generated/runnelConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)

# From the file's own folder to the prefix, unless the folders are absolute.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(RNL_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  set(RNL_PC_PREFIX "\${pcfiledir}/${up}")
  string(REGEX REPLACE "/$" "" RNL_PC_PREFIX "${RNL_PC_PREFIX}")
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(RNL_PC_${folder} ${CMAKE_INSTALL_${folder}})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(RNL_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
# Not Requires.private: hwloc's own file asks for what only a static hwloc needs (libudev).
string(REPLACE ";" " " RNL_PC_HWLOC "${HWLOC_LDFLAGS}")
foreach(name runnel-rt runnel)
  configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/generated/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)
endforeach()

install(FILES LICENSE packaging/LICENSE.nanopb DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
install(FILES packaging/runnel.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
install(FILES packaging/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  COMPONENT command RENAME runnel)
