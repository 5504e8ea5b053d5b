# SPDX-License-Identifier: Apache-2.0
# Script: writes OUTPUT with `rnl_embedded_files`, a table of the files in KERNELS. See runtime/kernel/source.h.
set(arrays "")
set(rows "")
set(index 0)
foreach(kernel IN LISTS KERNELS)
  get_filename_component(name ${kernel} NAME)
  file(READ ${kernel} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char file_${index}[] = {${bytes}0x00};\n")
  string(APPEND rows "    {\"${name}\", (const char *)file_${index}, sizeof file_${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Generated from clkernels/ by cmake/embed_files.cmake. */\n#include \"kernel/source.h\"\n\n${arrays}\n"
  "const rnl_embedded_file rnl_embedded_files[] = {\n${rows}    {NULL, NULL, 0}};\n")
