/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cl_status.h"

#include <stdatomic.h>
#include <string.h>

/* X(code, name, what it means to us) */
#define CL_CODE_LIST(X)                                                                                                \
    X(0, SUCCESS, OK)                                                                                                  \
    X(-1, DEVICE_NOT_FOUND, NOT_FOUND)                                                                                 \
    X(-2, DEVICE_NOT_AVAILABLE, UNAVAILABLE)                                                                           \
    X(-3, COMPILER_NOT_AVAILABLE, UNIMPLEMENTED)                                                                       \
    X(-4, MEM_OBJECT_ALLOCATION_FAILURE, RESOURCE_EXHAUSTED)                                                           \
    X(-5, OUT_OF_RESOURCES, RESOURCE_EXHAUSTED)                                                                        \
    X(-6, OUT_OF_HOST_MEMORY, RESOURCE_EXHAUSTED)                                                                      \
    X(-7, PROFILING_INFO_NOT_AVAILABLE, UNIMPLEMENTED)                                                                 \
    X(-8, MEM_COPY_OVERLAP, INVALID_ARGUMENT)                                                                          \
    X(-9, IMAGE_FORMAT_MISMATCH, INVALID_ARGUMENT)                                                                     \
    X(-10, IMAGE_FORMAT_NOT_SUPPORTED, UNIMPLEMENTED)                                                                  \
    X(-11, BUILD_PROGRAM_FAILURE, INVALID_ARGUMENT)                                                                    \
    X(-12, MAP_FAILURE, RESOURCE_EXHAUSTED)                                                                            \
    X(-13, MISALIGNED_SUB_BUFFER_OFFSET, INVALID_ARGUMENT)                                                             \
    X(-14, EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, INTERNAL)                                                        \
    X(-15, COMPILE_PROGRAM_FAILURE, INVALID_ARGUMENT)                                                                  \
    X(-16, LINKER_NOT_AVAILABLE, UNIMPLEMENTED)                                                                        \
    X(-17, LINK_PROGRAM_FAILURE, INVALID_ARGUMENT)                                                                     \
    X(-18, DEVICE_PARTITION_FAILED, FAILED_PRECONDITION)                                                               \
    X(-19, KERNEL_ARG_INFO_NOT_AVAILABLE, UNIMPLEMENTED)                                                               \
    X(-30, INVALID_VALUE, INTERNAL)                                                                                    \
    X(-31, INVALID_DEVICE_TYPE, INTERNAL)                                                                              \
    X(-32, INVALID_PLATFORM, INTERNAL)                                                                                 \
    X(-33, INVALID_DEVICE, INTERNAL)                                                                                   \
    X(-34, INVALID_CONTEXT, INTERNAL)                                                                                  \
    X(-35, INVALID_QUEUE_PROPERTIES, INTERNAL)                                                                         \
    X(-36, INVALID_COMMAND_QUEUE, INTERNAL)                                                                            \
    X(-37, INVALID_HOST_PTR, INTERNAL)                                                                                 \
    X(-38, INVALID_MEM_OBJECT, INTERNAL)                                                                               \
    X(-39, INVALID_IMAGE_FORMAT_DESCRIPTOR, INTERNAL)                                                                  \
    X(-40, INVALID_IMAGE_SIZE, INTERNAL)                                                                               \
    X(-41, INVALID_SAMPLER, INTERNAL)                                                                                  \
    X(-42, INVALID_BINARY, DATA_LOSS)                                                                                  \
    X(-43, INVALID_BUILD_OPTIONS, INVALID_ARGUMENT)                                                                    \
    X(-44, INVALID_PROGRAM, INTERNAL)                                                                                  \
    X(-45, INVALID_PROGRAM_EXECUTABLE, INTERNAL)                                                                       \
    X(-46, INVALID_KERNEL_NAME, NOT_FOUND)                                                                             \
    X(-47, INVALID_KERNEL_DEFINITION, INVALID_ARGUMENT)                                                                \
    X(-48, INVALID_KERNEL, INTERNAL)                                                                                   \
    X(-49, INVALID_ARG_INDEX, INVALID_ARGUMENT)                                                                        \
    X(-50, INVALID_ARG_VALUE, INVALID_ARGUMENT)                                                                        \
    X(-51, INVALID_ARG_SIZE, INVALID_ARGUMENT)                                                                         \
    X(-52, INVALID_KERNEL_ARGS, INVALID_ARGUMENT)                                                                      \
    X(-53, INVALID_WORK_DIMENSION, INVALID_ARGUMENT)                                                                   \
    X(-54, INVALID_WORK_GROUP_SIZE, INVALID_ARGUMENT)                                                                  \
    X(-55, INVALID_WORK_ITEM_SIZE, INVALID_ARGUMENT)                                                                   \
    X(-56, INVALID_GLOBAL_OFFSET, INVALID_ARGUMENT)                                                                    \
    X(-57, INVALID_EVENT_WAIT_LIST, INTERNAL)                                                                          \
    X(-58, INVALID_EVENT, INTERNAL)                                                                                    \
    X(-59, INVALID_OPERATION, INTERNAL)                                                                                \
    X(-60, INVALID_GL_OBJECT, INTERNAL)                                                                                \
    X(-61, INVALID_BUFFER_SIZE, RESOURCE_EXHAUSTED)                                                                    \
    X(-62, INVALID_MIP_LEVEL, INTERNAL)                                                                                \
    X(-63, INVALID_GLOBAL_WORK_SIZE, INVALID_ARGUMENT)                                                                 \
    X(-64, INVALID_PROPERTY, INTERNAL)                                                                                 \
    X(-65, INVALID_IMAGE_DESCRIPTOR, INTERNAL)                                                                         \
    X(-66, INVALID_COMPILER_OPTIONS, INVALID_ARGUMENT)                                                                 \
    X(-67, INVALID_LINKER_OPTIONS, INVALID_ARGUMENT)                                                                   \
    X(-68, INVALID_DEVICE_PARTITION_COUNT, INVALID_ARGUMENT)                                                           \
    X(-1001, PLATFORM_NOT_FOUND_KHR, NOT_FOUND)

static const struct {
    cl_int code;
    const char *name;
    rnl_status status;
} codes[] = {
#define X(code, name, status) {code, "CL_" #name, RNL_##status},
    CL_CODE_LIST(X)
#undef X
};

static rnl_status status_of(cl_int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].status;
    return RNL_INTERNAL;
}

const char *rnl_cl_code_name(cl_int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "unknown code";
}

rnl_status rnl_cl_status(cl_int code, const char *call)
{
    if (code == CL_SUCCESS)
        return RNL_OK;
    if (code == RNL_CL_ENDING)
        return rnl_error_set(RNL_UNAVAILABLE, 0, "the process is ending: no OpenCL call is made any more");
    return rnl_error_set(status_of(code), code, "%.*s: %s (%d)", (int)strcspn(call, "("), call, rnl_cl_code_name(code),
                         (int)code);
}

static atomic_ullong calls_to_failure; /* 0: none is to fail */
static atomic_int failure_code;

void rnl_cl_fail_at(uint64_t n, cl_int code)
{
    atomic_store(&failure_code, code);
    atomic_store(&calls_to_failure, n);
}

bool rnl_cl_fault_pending(void)
{
    unsigned long long left = atomic_load_explicit(&calls_to_failure, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&calls_to_failure, &left, left - 1))
            return left == 1;
    return false;
}

cl_int rnl_cl_fault(void)
{
    return atomic_load(&failure_code);
}
