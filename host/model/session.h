/* SPDX-License-Identifier: Apache-2.0 */
/* A session's insides: what one caller needs to run plans of one model. */
#ifndef RUNNEL_MODEL_SESSION_H
#define RUNNEL_MODEL_SESSION_H

#include "model/model.h"
#include "ops/execute.h"

#define RNL_BOUND_PLANS 8

/* A plan with memory: one cl_mem a slot, as sub-buffers of the session's arena. */
typedef struct rnl_bound_plan {
    rnl_plan *plan;       /* retained; NULL: a free entry */
    rnl_buffer **buffers; /* one a slot; arena slots own theirs, weights are borrowed */
    cl_mem *memories;     /* of the buffers, as steps take them */
    uint64_t last_used;
} rnl_bound_plan;

typedef struct rnl_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool created, stop, busy;
    const rnl_tensor *inputs;
    rnl_tensor *outputs;
    size_t input_count, output_count;
    rnl_complete_fn complete;
    void *user;
} rnl_worker;

struct rnl_session {
    rnl_model *model; /* retained */
    rnl_stream *stream;
    rnl_kernel_set *kernels;
    rnl_buffer **blocks; /* the arena */
    size_t block_count, block_capacity;
    size_t arena_bytes, arena_peak_bytes;
    rnl_bound_plan bound[RNL_BOUND_PLANS];
    const rnl_plan *constants_of; /* whose constants the arena holds */
    uint64_t run_count;
    void **outputs; /* host memory lent to the caller, one an output of the graph */
    size_t *output_capacity;
    const rnl_tensor **order; /* scratch: the caller's tensors in the graph's order */
    rnl_tensor_desc *descs;
    size_t step_count;
    atomic_bool running, cancelled;
    rnl_worker worker;
};

/* Binds a plan to memory, growing the arena when needed; *out_bound is valid until the next call. */
RNL_NODISCARD rnl_status rnl_session_bind(rnl_session *session, rnl_plan *plan, rnl_bound_plan **out_bound);
/* Lets go of all bound plans and the arena. The stream must be idle. */
void rnl_session_unbind(rnl_session *session);
/* Fails when a step wrote behind its value (RUNNEL_ARENA=off). */
RNL_NODISCARD rnl_status rnl_session_check_guards(rnl_session *session, const rnl_bound_plan *bound);
RNL_NODISCARD rnl_status rnl_session_write_guards(rnl_session *session, const rnl_bound_plan *bound);

/* One run, without the flags that guard against a second one. */
RNL_NODISCARD rnl_status rnl_session_execute(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                             rnl_tensor *outputs, size_t output_count);

#endif
