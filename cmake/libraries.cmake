# SPDX-License-Identifier: Apache-2.0
# The shared and the static libraries, made of the same objects. Both show the functions of the public headers alone.

# rnl_shared(NAME EXPORTED OBJECT-LIBRARY...): EXPORTED is its name as runnel::EXPORTED, for those who find_package(runnel).
function(rnl_shared name exported)
  add_library(${name} SHARED)
  target_link_libraries(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES SOVERSION 0 INSTALL_RPATH "$ORIGIN" EXPORT_NAME ${exported})
  if(NOT RNL_PYTHON_WHEEL) # which holds no links
    set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION})
  endif()
  # Drivers crash when a library that made OpenCL calls is unloaded under them.
  target_link_options(${name} PRIVATE -Wl,-z,nodelete -Wl,--no-undefined)
  rnl_set_flags(${name})
endfunction()

# rnl_static(NAME EXPORTED OBJECT-LIBRARY...): target NAME_static, libNAME.a. It holds one object, in which all that is not
# rnl_ and public is local (nanopb too): a program may have functions of the same names, and a nanopb of its own.
function(rnl_static name exported)
  if(CMAKE_C_FLAGS MATCHES "-flto" OR CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    message(FATAL_ERROR "The static libraries cannot be made with link-time optimisation: set RNL_STATIC to OFF")
  endif()
  set(object ${CMAKE_BINARY_DIR}/generated/${name}.o)
  set(parts "")
  set(archives "")
  foreach(part IN LISTS ARGN)
    list(APPEND parts $<TARGET_OBJECTS:${part}>)
    get_target_property(embedded ${part} RNL_EMBEDDED_ARCHIVE)
    if(embedded)
      list(APPEND archives ${embedded})
    endif()
  endforeach()
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_LINKER} -r -o ${object} ${parts} ${archives}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbol=rnl_* ${object}
    DEPENDS ${parts} ${archives} COMMENT "Joining the objects of lib${name}.a" VERBATIM COMMAND_EXPAND_LISTS)
  add_library(${name}_static STATIC ${object})
  set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C EXPORT_NAME ${exported}
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
