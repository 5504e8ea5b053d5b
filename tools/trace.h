/* SPDX-License-Identifier: Apache-2.0 */
/* --trace FILE. Without it these do nothing. */
#ifndef RUNNEL_CLI_TRACE_H
#define RUNNEL_CLI_TRACE_H

#include "bench.h"

/* Before anything else: what this thread does is recorded from now on. */
rnl_exit rnl_job_trace_begin(rnl_job *job);
/* Whether this thread, and the session once it is there, are recorded. */
rnl_exit rnl_job_trace(rnl_job *job, bool on);
/* A span from `start_ns` on. */
void rnl_job_trace_span(const rnl_job *job, const char *name, uint64_t start_ns);
/* Some more runs, recorded: says how long one takes beside those that were not. */
rnl_exit rnl_job_trace_runs(rnl_job *job, rnl_bench *bench);
/* Writes the file. */
rnl_exit rnl_job_trace_end(rnl_job *job);

#endif
