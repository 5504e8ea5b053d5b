/* SPDX-License-Identifier: Apache-2.0 */
/* --trace FILE. Without it these do nothing. */
#ifndef RUNNEL_CLI_TRACE_H
#define RUNNEL_CLI_TRACE_H

#include "bench.h"

/* Before anything else: what this thread does is recorded from now on. A bench says itself which runs are. */
rnl_exit rnl_job_trace_begin(rnl_job *job, bool is_bench);
/* Once the session is there. */
rnl_exit rnl_job_trace_session(rnl_job *job);
/* Whether this thread and all of the job's runs are recorded. */
void rnl_job_trace(rnl_job *job, bool on);
/* A span from `start_ns` on. */
void rnl_job_trace_span(const rnl_job *job, const char *name, uint64_t start_ns);
/* Behind a sample, where it is its turn: one more run, and one that is recorded. In the end: how long they took. */
rnl_exit rnl_job_trace_run(rnl_job *job, rnl_bench *bench, size_t sample);
void rnl_job_trace_print(const rnl_job *job, rnl_bench *bench);
/* Writes the file. */
rnl_exit rnl_job_trace_end(rnl_job *job);

#endif
