# SPDX-License-Identifier: Apache-2.0
function(rnl_sanitize target)
  if(RNL_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(RNL_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${RNL_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=undefined)
    target_link_options(${target} PRIVATE -fsanitize=${RNL_SANITIZE})
  endif()
endfunction()
