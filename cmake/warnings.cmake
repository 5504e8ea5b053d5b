# SPDX-License-Identifier: Apache-2.0
function(rnl_set_flags target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
    C_VISIBILITY_PRESET hidden)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE CL_TARGET_OPENCL_VERSION=120)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wno-sign-conversion)
  if(RNL_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  rnl_sanitize(${target})
endfunction()
