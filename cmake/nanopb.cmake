# SPDX-License-Identifier: Apache-2.0
# Generates the C of a .proto with nanopb's generator and links its runtime.
find_program(NANOPB_GENERATOR NAMES nanopb_generator REQUIRED)
find_library(NANOPB_LIBRARY NAMES protobuf-nanopb REQUIRED)
find_path(NANOPB_INCLUDE pb.h PATH_SUFFIXES nanopb REQUIRED)
function(rnl_nanopb target proto)
  get_filename_component(stem ${proto} NAME_WE)
  get_filename_component(folder ${proto} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/generated)
  add_custom_command(OUTPUT ${out}/${stem}.pb.c ${out}/${stem}.pb.h
    COMMAND ${NANOPB_GENERATOR} -q -I ${folder} -D ${out} ${proto}
    DEPENDS ${proto} COMMENT "Generating ${stem}.pb.c" VERBATIM)
  add_library(${target}_pb OBJECT ${out}/${stem}.pb.c ${out}/${stem}.pb.h)
  target_include_directories(${target}_pb SYSTEM PUBLIC ${out} ${NANOPB_INCLUDE})
  set_target_properties(${target}_pb PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  rnl_sanitize(${target}_pb)
  add_dependencies(${target} ${target}_pb)
  target_include_directories(${target} SYSTEM PRIVATE ${out} ${NANOPB_INCLUDE})
  target_link_libraries(${target} PUBLIC ${NANOPB_LIBRARY})
  target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_pb>)
endfunction()
