# SPDX-License-Identifier: Apache-2.0
# Turns the .cl and .clh files of a folder into one C table of byte arrays, compiled into a target.
function(rnl_embed_kernels target folder)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cl ${folder}/*.clh)
  set(table ${CMAKE_BINARY_DIR}/generated/kernel_table.c)
  add_custom_command(OUTPUT ${table}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${table} "-DKERNELS=${kernels}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${kernels} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    COMMENT "Embedding OpenCL C sources" VERBATIM)
  target_sources(${target} PRIVATE ${table})
endfunction()
