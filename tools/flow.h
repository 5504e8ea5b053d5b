/* SPDX-License-Identifier: Apache-2.0 */
/* Runs side by side, each of which submits itself again when it is done. */
#ifndef RUNNEL_CLI_FLOW_H
#define RUNNEL_CLI_FLOW_H

#include <pthread.h>
#include <runnel/runnel.h>

typedef struct rnl_flow rnl_flow;

typedef struct rnl_flow_run {
    rnl_flow *flow;
    void *subject; /* what it runs; the caller's */
} rnl_flow_run;

/* Submits once, to end by rnl_flow_complete with the run. */
typedef rnl_status (*rnl_flow_submit_fn)(rnl_flow_run *run);

struct rnl_flow {
    rnl_flow_submit_fn submit;
    rnl_flow_run *run;
    size_t count;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t running, done; /* done: in the last sample */
    uint64_t until_ns;
    rnl_error failure; /* the first; status RNL_OK: none */
};

/* False without memory. Close it in either case. */
bool rnl_flow_open(rnl_flow *flow, size_t count, rnl_flow_submit_fn submit);
/* All run for that long, and each at least once. *out_ms: of one run. False: flow->failure. */
bool rnl_flow_sample(rnl_flow *flow, double least_ns, double *out_ms);
void rnl_flow_complete(void *run, const rnl_error *error);
void rnl_flow_close(rnl_flow *flow);

#endif
