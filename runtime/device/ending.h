/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the process. Drivers take themselves down in exit(), while other threads may be inside them or come later
 * (Intel's CPU runtime then aborts with `Pure virtual function called!'). So every OpenCL call goes through this
 * (device/cl_guard.h): when exit() reaches the library, which is before it reaches the drivers, those that are under
 * way are waited for, and no further one is begun. A thread that would use a stream then sleeps until the process is
 * gone: were it told of a failure, it would give back memory that commands may still use.
 */
#ifndef RUNNEL_DEVICE_ENDING_H
#define RUNNEL_DEVICE_ENDING_H

#include <runnel/rt.h>

/* What a call that is not made any more returns. No driver's code. */
#define RNL_CL_ENDING (-32000)

/* True: the call may be made; then rnl_cl_end. */
RNL_API bool rnl_cl_begin(void);
/* True as long as calls that began before are waited for: one of them may wait for what this call does. */
RNL_API bool rnl_cl_begin_late(void);
/* Return what they are given. */
RNL_API int32_t rnl_cl_end(int32_t code);
RNL_API void *rnl_cl_end_new(void *object);

/* True when releasing does nothing any more. Any thread. */
RNL_API bool rnl_ending(void);
/* Does not return once the process ends, but in the thread that ends it. Without a lock. */
void rnl_ending_sleep(void);

/* Called when drivers have been loaded, which is when they register what they do at exit. */
void rnl_ending_watch(void);

#endif
