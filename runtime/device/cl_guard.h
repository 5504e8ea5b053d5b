/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL as the runtime calls it: not once the process ends, see device/ending.h. */
#ifndef RUNNEL_DEVICE_CL_GUARD_H
#define RUNNEL_DEVICE_CL_GUARD_H

#include "device/ending.h"
#include <CL/cl.h>

/* For a call that returns a cl_int, and for one that returns an object or NULL. */
#define RNL_CL_GUARD(call) (rnl_cl_begin() ? rnl_cl_end(call) : RNL_CL_ENDING)
#define RNL_CL_GUARD_NEW(call) (rnl_cl_begin() ? rnl_cl_end_new(call) : NULL)

/* Calls whose code nobody looks at, or is looked at in place. None that another macro passes on to CL: a message has
 * the call's text, which would be this one's. */
#define clEnqueueMarkerWithWaitList(...) RNL_CL_GUARD(clEnqueueMarkerWithWaitList(__VA_ARGS__))
#define clEnqueueUnmapMemObject(...) RNL_CL_GUARD(clEnqueueUnmapMemObject(__VA_ARGS__))
#define clFinish(...) RNL_CL_GUARD(clFinish(__VA_ARGS__))
#define clFlush(...) RNL_CL_GUARD(clFlush(__VA_ARGS__))
#define clGetEventInfo(...) RNL_CL_GUARD(clGetEventInfo(__VA_ARGS__))
#define clReleaseCommandQueue(...) RNL_CL_GUARD(clReleaseCommandQueue(__VA_ARGS__))
#define clReleaseContext(...) RNL_CL_GUARD(clReleaseContext(__VA_ARGS__))
#define clReleaseDevice(...) RNL_CL_GUARD(clReleaseDevice(__VA_ARGS__))
#define clReleaseEvent(...) RNL_CL_GUARD(clReleaseEvent(__VA_ARGS__))
#define clReleaseKernel(...) RNL_CL_GUARD(clReleaseKernel(__VA_ARGS__))
#define clReleaseMemObject(...) RNL_CL_GUARD(clReleaseMemObject(__VA_ARGS__))
#define clReleaseProgram(...) RNL_CL_GUARD(clReleaseProgram(__VA_ARGS__))
#define clRetainDevice(...) RNL_CL_GUARD(clRetainDevice(__VA_ARGS__))
#define clRetainEvent(...) RNL_CL_GUARD(clRetainEvent(__VA_ARGS__))
#define clSetEventCallback(...) RNL_CL_GUARD(clSetEventCallback(__VA_ARGS__))
#define clSetUserEventStatus(...) (rnl_cl_begin_late() ? rnl_cl_end(clSetUserEventStatus(__VA_ARGS__)) : RNL_CL_ENDING)
#define clWaitForEvents(...) RNL_CL_GUARD(clWaitForEvents(__VA_ARGS__))

#endif
