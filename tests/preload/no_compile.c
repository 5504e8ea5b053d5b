/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: a process in which nothing can be compiled from source. */
#include <CL/cl.h>

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char **strings,
                                                              const size_t *lengths, cl_int *code)
{
    (void)context, (void)count, (void)strings, (void)lengths;
    if (code)
        *code = CL_OUT_OF_RESOURCES;
    return NULL;
}
