/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's codes become statuses here, and only here. */
#ifndef RUNNEL_DEVICE_CL_STATUS_H
#define RUNNEL_DEVICE_CL_STATUS_H

#include "base/status.h"
#include "device/cl_guard.h"

/* RNL_OK for CL_SUCCESS; else sets the error "clFoo: CL_OUT_OF_RESOURCES (-5)" from the call's text up to its
 * parenthesis. */
RNL_API rnl_status rnl_cl_status(cl_int code, const char *call);
RNL_API const char *rnl_cl_code_name(cl_int code);

/* For tests: CL_SUCCESS, or the code that the n-th OpenCL call from now on is to fail with instead of being made. */
RNL_API cl_int rnl_cl_fault(void);
RNL_API void rnl_cl_fail_at(uint64_t n, cl_int code); /* n = 1: the next; 0: never; one-shot */

/*
 * CL turns a call that returns a cl_int into a status: TRY(CL(clFinish(queue)));
 * For a call that returns an object: object = CL_NEW(&code, clCreateX(…, &code)); TRY(rnl_cl_status(code,
 * "clCreateX"));
 */
#define CL(call) rnl_cl_status(RNL_CL_RUN(call), #call)
#define RNL_CL_RUN(call) (rnl_cl_fault_pending() ? rnl_cl_fault() : RNL_CL_GUARD(call))
#define CL_NEW(code_pointer, call)                                                                                     \
    ((*(code_pointer) = rnl_cl_fault_pending() ? rnl_cl_fault() : CL_SUCCESS) ? NULL                                   \
     : rnl_cl_begin()                                                         ? rnl_cl_end_new(call)                   \
                                                                              : (*(code_pointer) = RNL_CL_ENDING, NULL))

RNL_API bool rnl_cl_fault_pending(void); /* counts this call; true when it is the one that fails */

#endif
