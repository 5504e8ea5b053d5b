/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a CPU device as a team: each has a queue of its own and does its part of every launch. A launch waits
 * for the one before it inside its kernel, by a counter in memory (clkernels/team.clh). pocl's own way, one queue for
 * all, has its threads fall asleep and be woken at each launch, which takes longer than many a launch does.
 *
 *     rnl_team_begin(stream);                                  from here on launches may be taken by the team
 *     rnl_team_launch(stream, &kernel, &range, &is_taken);     else it is the caller's, on the stream's queue
 *     rnl_team_end(stream);                                    the stream's queue waits for the team
 *
 * Whatever else is enqueued on the stream in between waits for the team, and the team for that. Launches of several
 * streams are taken in the same order by all threads, or else two threads could wait for each other in two places. For
 * pocl on x86-64, where a trial shows that it works; RUNNEL_TEAM=off turns it off, =on has each run use it, and
 * otherwise what is faster is found by measuring (host/model/teamwork.h).
 */
#ifndef RUNNEL_KERNEL_TEAM_H
#define RUNNEL_KERNEL_TEAM_H

#include "device/stream.h"
#include "kernel/program.h"

struct rnl_compile_job; /* kernel/compilers.h */

/* A kernel's function in the driver's code (kernel/team_calls.h). */
struct rnl_call_context;
typedef void (*rnl_call_function)(void **arguments, struct rnl_call_context *context, uint64_t x, uint64_t y,
                                  uint64_t z);

/* What a kernel is given: memory, which may be none, or a value. */
typedef struct rnl_team_arg {
    bool is_memory;
    cl_mem memory;
    const void *value;
    size_t bytes;
} rnl_team_arg;
#define RNL_TEAM_MOST_ARGS 94

/* A kernel object of ours. */
typedef struct rnl_team_kernel {
    cl_kernel object; /* NULL: not made yet, and rnl_team_call alone takes it */
    rnl_program *program;
    const char *name;
    bool has_local;             /* memory of a work-group */
    bool is_known;              /* it was asked where its … */
    rnl_call_function function; /* … is; NULL: not found */
    bool waits;                 /* it was compiled with rnl_team_define's: has two arguments more */
    cl_uint first_arg;          /* of those */
    size_t widest;              /* groups in a dimension of the widest range that was launched as a whole */
    enum { RNL_TEAM_UNSET, RNL_TEAM_ALONE, RNL_TEAM_TOGETHER } set; /* what they were set for last */
} rnl_team_kernel;

/* Of a launch, that its work-groups may leave for the one of them that is done last: so many of each of so many. */
#define RNL_TEAM_SUMS 2048
#define RNL_TEAM_MOST_THREADS 8 /* one thread enqueues for all */

/* "TEAM" where kernels of this file can wait for each other on this device, else NULL. */
const char *rnl_team_define(const rnl_device *device, const char *file);
/*
 * Where a range of our kernels begins on this device, in the first dimension: pocl compiles a kernel for offsets of 0,
 * and once more for others, which a team's parts have. 0 where there is no team, or nobody has asked for it yet.
 */
size_t rnl_team_offset(const rnl_device *device, const rnl_range *range);
/* Where it will begin once somebody has asked, unless the trial fails. */
size_t rnl_team_likely_offset(const rnl_device *device, const rnl_range *range);
/* Whether the device may have a team that nobody has asked for yet, and neither cache nor process has its program. */
bool rnl_team_is_new(rnl_device *device);
/* The team's own program, for a process that compiles. */
RNL_NODISCARD rnl_status rnl_team_make_job(rnl_device *device, struct rnl_compile_job *out_job);

/*
 * A kernel's function without its program, where the device's team may call it: known in this process, or kept on disk
 * by one before. NULL where it is not, or where there is no team (yet).
 */
rnl_call_function rnl_team_get_function(rnl_device *device, rnl_program *program, const char *kernel);
/* Whether there is one, or will be, once somebody has asked for the team and its trial has not failed. */
bool rnl_team_has_function(rnl_device *device, rnl_program *program, const char *kernel);
/* Whether the team of this device, if there is one (yet), collects launches of such a range of a kernel that waits. */
bool rnl_team_collects(const rnl_device *device, const rnl_range *range);
/* The same of the one that there may be. */
bool rnl_team_may_collect(const rnl_device *device, const rnl_range *range);

/* RUNNEL_TEAM's value, read anew each time. */
typedef enum rnl_team_wish { RNL_TEAM_AS_MEASURED, RNL_TEAM_OFF, RNL_TEAM_ON } rnl_team_wish;
RNL_API rnl_team_wish rnl_team_get_wish(void);

/* Nothing happens where the device has no team. Not while another begin has no end. */
RNL_API void rnl_team_begin(rnl_stream *stream);
/*
 * Behind it, for a thread that will wait for the end of all that it launches: it does the first thread's part of what
 * is collected itself, while no other stream launches. A driver's thread is not woken for it, nor the caller at the
 * end, which takes some 50 us each on a virtual machine. The driver's other threads are woken once, and look for more
 * for some 0.2 ms at the end of a run that followed another as soon. Not where little is left of the thread's stack,
 * and not with RUNNEL_TEAM_HELP=off. Launches of this stream may then return late, and rnl_team_end when all has been
 * done.
 */
RNL_API void rnl_team_help(rnl_stream *stream);
RNL_API bool rnl_team_is_helped(const rnl_stream *stream);
RNL_API RNL_NODISCARD rnl_status rnl_team_end(rnl_stream *stream);
/*
 * Before a short launch that follows others with nothing in between: begins, or ends where threads of the team keep
 * falling asleep, which says that others want their processors. Then some hundred such calls are in vain.
 */
RNL_NODISCARD rnl_status rnl_team_follow(rnl_stream *stream);

/*
 * Enqueues a part of the range on each thread's queue, with the other arguments set before. *out_taken is false, and
 * nothing is enqueued, where the team does not take it: there is none, the range cannot be cut, another team has these
 * threads at the moment, the stream waits for what is not its own, or each of its commands is timed or watched.
 * Failures become the stream's. In a trace a launch is the first thread's part of it, with the time that it waits for
 * others.
 */
RNL_NODISCARD rnl_status rnl_team_launch(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range,
                                         bool *out_taken);
/* Whether rnl_team_call may take it: the driver need not be given arguments then. */
bool rnl_team_may_call(const rnl_stream *stream, const rnl_team_kernel *kernel, const rnl_range *range);
/* The same with the arguments given here, but for the two of rnl_team_define's. Memory is retained until it has run. */
RNL_NODISCARD rnl_status rnl_team_call(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range,
                                       const rnl_team_arg *args, uint32_t count, bool *out_taken);
/* Enqueues what the team has taken and collected. At the end this needs no asking for. */
RNL_NODISCARD rnl_status rnl_team_push(rnl_stream *stream);
/* That one was launched as a whole. */
void rnl_team_note_whole(rnl_team_kernel *kernel, const rnl_range *range);
/* Sets the two arguments for a launch that the team did not take. */
RNL_NODISCARD rnl_status rnl_team_leave_out(rnl_team_kernel *kernel);

/* Waits until the team's threads have done with its kernels; nothing is launched meanwhile. */
void rnl_team_rest(rnl_device *device);
/*
 * How long a team's threads waited for each other, where it took longer than some 20 us: since when, and then as a part
 * of the time of all but one.
 */
typedef struct rnl_team_mark {
    uint64_t cycles, waited;
} rnl_team_mark;
RNL_API rnl_team_mark rnl_team_set_mark(const rnl_device *device);
RNL_API double rnl_team_waited(const rnl_device *device, const rnl_team_mark *since);

/* Whether the device has a team; makes it first. */
RNL_API bool rnl_device_has_team(rnl_device *device);
/* That it took so far; and those of them that were collected. */
RNL_API uint64_t rnl_device_team_launches(const rnl_device *device);
RNL_API uint64_t rnl_device_team_calls(const rnl_device *device);

#endif
