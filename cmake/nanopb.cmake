# SPDX-License-Identifier: Apache-2.0
# Generates the C of a .proto with nanopb's generator and links its runtime. Debian: nanopb (brings protoc and Python's
# protobuf) and libnanopb-dev, whose static library is position independent.
find_program(NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator REQUIRED)
find_library(NANOPB_LIBRARY NAMES protobuf-nanopb REQUIRED)
find_path(NANOPB_INCLUDE pb.h PATH_SUFFIXES nanopb REQUIRED)
function(rnl_nanopb target proto)
  get_filename_component(stem ${proto} NAME_WE)
  get_filename_component(folder ${proto} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${out}/${stem}.pb.c ${out}/${stem}.pb.h
    COMMAND ${NANOPB_GENERATOR} -q -I ${folder} -D ${out} ${proto}
    DEPENDS ${proto} COMMENT "Generating ${stem}.pb.c" VERBATIM)
  target_sources(${target} PRIVATE ${out}/${stem}.pb.c ${out}/${stem}.pb.h)
  set_source_files_properties(${out}/${stem}.pb.c PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(${target} SYSTEM PRIVATE ${out} ${NANOPB_INCLUDE})
  target_link_libraries(${target} PUBLIC ${NANOPB_LIBRARY})
  # Its functions stay inside our shared library: a program may bring a nanopb of its own.
  set_target_properties(${target} PROPERTIES RNL_EMBEDDED_ARCHIVE ${NANOPB_LIBRARY})
  get_filename_component(archive ${NANOPB_LIBRARY} NAME)
  target_link_options(${target} INTERFACE -Wl,--exclude-libs,${archive})
endfunction()
