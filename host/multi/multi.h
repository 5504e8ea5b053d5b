/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of several devices with one model: members, which have sessions and threads, and jobs, which run there.
 */
#ifndef RUNNEL_MULTI_MULTI_H
#define RUNNEL_MULTI_MULTI_H

#include "base/status.h"
#include "device/trace.h"
#include "multi/shares.h"
#include <pthread.h>
#include <runnel/multi.h>
#include <stdatomic.h>

#define RNL_NOBODY SIZE_MAX

/* One request, or one part of a batch. Its thread owns it, but for what the lock guards. */
typedef struct rnl_job {
    const rnl_tensor *inputs;
    size_t input_count;
    rnl_tensor *outputs; /* written on success */
    size_t output_count;
    size_t member;      /* whose it is */
    double work;        /* what it takes, in any unit: bytes of the inputs */
    bool is_bound;      /* its member is measured: no other one helps out */
    bool keeps_nothing; /* outputs are read, and forgotten */
    rnl_trace *trace;   /* retained: it is recorded there; or NULL */
    atomic_bool stop;
    rnl_complete_fn complete; /* NULL: somebody waits for `ended` */
    void *user;
    /* What came of it. */
    rnl_error error;
    uint64_t elapsed_ns; /* of its last run */
    bool is_clean;       /* that succeeded, without planning, and no other job ran beside it */
    /* Guarded by the lock. */
    uint64_t id;
    uint64_t ticket;               /* of its run, where it was alone when it started; else 0 */
    struct rnl_job *next;          /* in the member's queue */
    struct rnl_job *newer, *older; /* of all */
    bool has_ended;
    pthread_cond_t ended;
} rnl_job;

/* A device's part. Guarded by the lock, but for what is set when it is opened. */
typedef struct rnl_member {
    rnl_multi *multi;
    rnl_device *device; /* retained */
    rnl_model *model;
    char name[200]; /* "NVIDIA H200 (0:0/2.1)" */
    char spec[RNL_DEVICE_SPEC_BYTES];
    size_t in_flight;
    rnl_session **idle; /* room for in_flight */
    size_t idle_count, session_count;
    pthread_cond_t freed;  /* a session is idle */
    pthread_cond_t queued; /* for a thread */
    rnl_job *first, **last;
    size_t queue_length;
    pthread_t *threads; /* room for in_flight */
    size_t thread_count, waiting_threads;
    bool has_conditions, is_lost;
    unsigned blames; /* failures in a row that were put right elsewhere */
    size_t running;
    uint64_t started; /* jobs so far */
    double pending_work;
    double busy_ns, done_work; /* of late */
    double work_ns;   /* their ratio: a unit of work takes that long when the device is busy; 0: not measured */
    uint64_t mark_ns; /* when it began to be busy, or the last job ended */
    double passed_ns; /* that others worked since it got a request */
    unsigned trials;  /* in a row that have only shown that it is slow */
    uint64_t requests, failures;
    size_t share;
    double row_ns, latest_work;
    rnl_trace_cost trace_cost;
} rnl_member;

typedef struct rnl_split rnl_split;

struct rnl_multi {
    rnl_graph *graph; /* retained */
    rnl_multi_policy policy;
    rnl_member *members;
    size_t member_count;
    pthread_mutex_t lock, measuring; /* the latter: one measurement at a time; taken first */
    bool has_lock, has_measuring, stops;
    rnl_job *jobs; /* all, the newest first */
    uint64_t last_id;
    size_t turn;
    rnl_trace *trace; /* retained; NULL: requests are not recorded */
    rnl_trace_turn trace_turn;
    double *fixed_shares; /* NULL: shares are measured */
    bool is_measured;     /* each member has run a request */
    char no_split[256];   /* why batches are not split; "": they are */
    rnl_split *splits;    /* one a shape, the last used first: split.c */
    size_t split_count;
};

/* ---- Jobs (job.c) ---- */

/* Arguments as rnl_multi_run's; chooses no member. */
RNL_NODISCARD rnl_status rnl_job_prepare(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count,
                                         rnl_tensor *outputs, size_t output_count, rnl_job *out_job);
/* Names the job, so that it can be cancelled, and counts it as its member's, until it ends. The lock is held. `trace`:
 * where it is recorded, or NULL. */
void rnl_job_begin(rnl_multi *multi, rnl_job *job, rnl_trace *trace);
void rnl_job_end(rnl_multi *multi, rnl_job *job);
/* Runs the job that has begun in this thread, if need be twice. Its failure is this thread's, and in the job. */
RNL_NODISCARD rnl_status rnl_job_run(rnl_multi *multi, rnl_job *job);
/* Has a job that has begun run by a thread of its member, or leaves that to the caller (*out_here). The lock is held.
 */
RNL_NODISCARD rnl_status rnl_job_hand_over(rnl_multi *multi, rnl_job *job, bool *out_here);
/* Waits for a job that was handed over. The lock is held, and given up meanwhile. */
void rnl_job_wait(rnl_multi *multi, rnl_job *job);
/* Begins a job, runs it on its member in whichever thread, and waits. Its failure is this thread's. */
RNL_NODISCARD rnl_status rnl_job_do(rnl_multi *multi, rnl_job *job);

/* Where the next request or batch is recorded, if it is one that is: borrowed, or NULL. `measures`: nobody asked for it
 * but the multi itself. The lock is held. */
rnl_trace *rnl_multi_next_trace(rnl_multi *multi, bool measures);

/* ---- Members (member.c) ---- */

RNL_NODISCARD rnl_status rnl_member_open(rnl_multi *multi, rnl_device *device, const rnl_multi_options *options,
                                         rnl_member *member);
/* Its threads have ended. */
void rnl_member_close(rnl_member *member);
/* An idle session, or a new one; waits where all are in use. The lock is held, and given up meanwhile. */
RNL_NODISCARD rnl_status rnl_member_take_session(rnl_member *member, rnl_session **out_session);
void rnl_member_give_session(rnl_member *member, rnl_session *session);
/* A session could be had without waiting, and nobody waits. The lock is held. */
bool rnl_member_is_free(const rnl_member *member);
/* Queues a job for the member's threads. The lock is held; when there is no thread and none can be made it fails. */
RNL_NODISCARD rnl_status rnl_member_queue(rnl_member *member, rnl_job *job);
/* Tells the threads to end when nothing is queued, and waits for them. */
void rnl_member_stop(rnl_member *member);

/* ---- Who gets a request, and who is there (choose.c) ---- */

/* The member that will be done first, by the policy; not `except`. RNL_NOBODY when there is none. The lock is held. */
size_t rnl_multi_choose(rnl_multi *multi, double work, size_t except);
/* Before and after a job's run on a member. The lock is held. */
void rnl_member_start_job(rnl_member *member, rnl_job *job);
void rnl_member_end_job(rnl_member *member, rnl_job *job, rnl_status status, bool has_planned, uint64_t elapsed_ns);
/* Another member has done what this one failed to do. */
void rnl_multi_blame(rnl_multi *multi, size_t member);
/* After a failure that the request is not to blame for: finds out whether the device is lost. Keeps the error. */
void rnl_multi_suspect(rnl_multi *multi, size_t member);
/* Whether another device may succeed where this one failed: this thread's last failure. */
bool rnl_status_is_devices(rnl_status status);
/* Members that are not lost. The lock is held. */
size_t rnl_multi_count_present(const rnl_multi *multi);
RNL_NODISCARD rnl_status rnl_multi_fail_nobody(void);
/* Runs the request on all members that have not been measured. */
RNL_NODISCARD rnl_status rnl_multi_measure(rnl_multi *multi, rnl_job *like);

void rnl_splits_free(rnl_multi *multi);

#endif
