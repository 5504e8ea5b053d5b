# SPDX-License-Identifier: Apache-2.0
# Which OpenCL implementations each kind of test runs on, and how ctest calls it. tests/run_on sets the environment, and
# skips (77) where an implementation is not installed.
set(RNL_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python with numpy, onnx and onnxruntime, for tests")
set(RNL_MODELS ${CMAKE_SOURCE_DIR}/models CACHE PATH "Where tools/fetch-models put the models")

if(RNL_SANITIZE MATCHES "address")
  set(RNL_TEST_PREFIX asan.)
  set(RNL_IMPLEMENTATIONS asan fake)
elseif(RNL_SANITIZE MATCHES "thread")
  set(RNL_TEST_PREFIX tsan.)
  set(RNL_IMPLEMENTATIONS tsan fake-tsan)
else()
  set(RNL_TEST_PREFIX "")
  set(RNL_IMPLEMENTATIONS pocl pocl-basic pocl-pthread rusticl intel oclgrind fake)
endif()
set(RNL_TEST_ON "" CACHE STRING "The implementations to test on; empty: all. fake_tests builds what the fake one needs")
list(GET RNL_IMPLEMENTATIONS 0 RNL_FIRST_IMPLEMENTATION)

# The caches are shared by all builds: under the sanitizers pocl's compiler leaks and takes long, so a plain build compiles first.
set(RNL_TEST_ENVIRONMENT RUNNEL_CACHE_DIR=${CMAKE_SOURCE_DIR}/build/cache POCL_CACHE_DIR=${CMAKE_SOURCE_DIR}/build/pocl-cache
  RUNNEL_MODELS=${RNL_MODELS} RUNNEL_DECLARATIONS=own RUNNEL_COMMAND=${CMAKE_BINARY_DIR}/runnel RUNNEL_BUILD=${CMAKE_BINARY_DIR}
  RUNNEL_TEST_PYTHON=${RNL_PYTHON})

# Asked for a program's binary pocl compiles those kernels that were not launched. So runnel's own cache of programs is off on
# pocl where it is not what a test looks at, which saves a sixth of the time; pocl's own stays. Tests of the command have it:
# they run many processes, and tuning tables are kept in its folder.
set(RNL_WITHOUT_CACHE_ON pocl pocl-basic pocl-pthread asan asan-ctypes tsan)
set(RNL_WITH_CACHE "^(asan\\.|tsan\\.)?(unit|install|cli)\\."
  "test_(second_start|program|save|stand_in|kernel_source|kernel_args|command_list|interop|tuning|tuning_shipped|gemm_tune|profile)$"
  "fault$" "test_(session|python_wheel)$")

# On pocl these run one in so many of their cases here, and all when they are started by hand: they compile hundreds of programs.
set(RNL_EACH_4 "test_(op_gemm_chain|gemm_strassen)$")
set(RNL_EACH_8 "test_(gemm|op_gemm_panel|op_qgemm|op_conv_block|op_conv_bf16|op_conv_winograd|op_chain|random_graphs)$"
  "test_operators_edges")
set(RNL_EACH_16 "test_(op_gemm|op_gemm_clblast|op_gemm_matrix|op_conv|op_conv_amx|op_qconv_amx|op_map|op_resize|op_conv_transpose|op_select|op_reduce)$")

# CLBlast's kernels, models of instructions, what is asked of pretended devices and models of one operator, those of the
# conformance suite among them, compile for long: pocl leaves its optimiser out, which is most of the time. Other tests have
# it, those of the operators' kernels and of whole models; Intel's runtime everywhere.
set(RNL_UNOPTIMISED "test_op_gemm_(clblast|matrix|wgmma)$" "test_op_qconv_amx$" "test_limits$" "test_operators"
  "test_(views|precision|conformance)$")

# Intel's runtime compiles for long: of the real models these.
set(RNL_SOME_MODELS "ch_PP-OCRv4_rec_infer,magika,resnet50,shufflenet")

# rnl_add_test(NAME LABEL SECONDS IMPLEMENTATION COMMAND...)
function(rnl_add_test name label seconds implementation)
  if(RNL_TEST_ON AND NOT implementation IN_LIST RNL_TEST_ON)
    return()
  endif()
  set(plain ${name})
  if(RNL_TEST_PREFIX AND NOT name MATCHES "\\.${RNL_FIRST_IMPLEMENTATION}\\.")
    set(name ${RNL_TEST_PREFIX}${name})
  endif()
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run_on ${implementation} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${label};${implementation}" TIMEOUT ${seconds}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${RNL_TEST_ENVIRONMENT}")
  if(implementation IN_LIST RNL_WITHOUT_CACHE_ON)
    set(without RUNNEL_CACHE=off RUNNEL_COMPILERS=off)
    foreach(pattern IN LISTS RNL_WITH_CACHE)
      if(name MATCHES "${pattern}")
        set(without "")
      endif()
    endforeach()
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${without})
  endif()
  foreach(each 4 8 16)
    foreach(pattern IN LISTS RNL_EACH_${each})
      if(name MATCHES "${pattern}" AND implementation MATCHES "^pocl")
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT RUNNEL_TEST_EACH=${each})
      endif()
    endforeach()
  endforeach()
  foreach(pattern IN LISTS RNL_UNOPTIMISED)
    if(name MATCHES "${pattern}" AND implementation MATCHES "^(pocl|asan)")
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable)
    endif()
  endforeach()
  if(name MATCHES "test_models$" AND implementation STREQUAL "intel")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT RUNNEL_TEST_ONLY=${RNL_SOME_MODELS})
  endif()
  if(RNL_SANITIZE MATCHES "address" AND (implementation STREQUAL "fake" OR name MATCHES "test_team_saved$"))
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT RUNNEL_TEST_SWEEP=11) # each call fails in the plain build
  endif()
  if(RNL_TEST_PREFIX)
    string(REPLACE ".${RNL_FIRST_IMPLEMENTATION}." ".pocl." plain ${plain})
    set_tests_properties(${name} PROPERTIES DEPENDS ${plain})
  endif()
endfunction()

# Sets `out` to the implementations that a test runs on: all, unless RNL_RUNS_ON_<name> lists some. On the fake driver,
# which computes nothing, run those made for it and those of RNL_RUNS_ON_FAKE.
function(rnl_runs_on name out)
  set(chosen ${RNL_IMPLEMENTATIONS})
  if(name MATCHES "^test_fake_")
    list(FILTER chosen INCLUDE REGEX "^fake")
  elseif(NOT name IN_LIST RNL_RUNS_ON_FAKE)
    list(FILTER chosen EXCLUDE REGEX "^fake")
  endif()
  if(NOT DEFINED RNL_RUNS_ON_${name})
    string(REGEX REPLACE "^test_(op|operators_edges|operators|python)_.*" "test_\\1" name ${name})
  endif()
  if(DEFINED RNL_RUNS_ON_${name})
    set(chosen "")
    foreach(implementation IN LISTS RNL_IMPLEMENTATIONS)
      if(implementation IN_LIST RNL_RUNS_ON_${name})
        list(APPEND chosen ${implementation})
      endif()
    endforeach()
  endif()
  set(${out} ${chosen} PARENT_SCOPE)
endfunction()

# A test that needs a device, once for each implementation: LABEL.IMPLEMENTATION.NAME
function(rnl_add_device_test name label seconds)
  rnl_runs_on(${name} implementations)
  foreach(implementation IN LISTS implementations)
    rnl_add_test(${label}.${implementation}.${name} ${label} ${seconds} ${implementation} ${ARGN})
    if(implementation MATCHES "^fake")
      add_dependencies(fake_tests ${name})
    endif()
  endforeach()
endfunction()

# The same for a Python program on the C API.
function(rnl_add_python_test name label seconds)
  rnl_runs_on(${name} implementations)
  foreach(implementation IN LISTS implementations)
    string(REGEX REPLACE "^asan$" "asan-ctypes" environment ${implementation})
    rnl_add_test(${label}.${implementation}.${name} ${label} ${seconds} ${environment} ${RNL_PYTHON} ${ARGN})
  endforeach()
endfunction()
