/* SPDX-License-Identifier: Apache-2.0 */
/* A model's insides: the graph on one device, its weights and its plans. */
#ifndef RUNNEL_MODEL_MODEL_H
#define RUNNEL_MODEL_MODEL_H

#include "model/constants.h"
#include "model/plan.h"
#include "model/plan_cache.h"
#include "model/weights.h"
#include <pthread.h>

struct rnl_model {
    atomic_uint references;
    rnl_graph *graph;   /* retained */
    rnl_device *device; /* retained */
    rnl_model_options options;
    rnl_constants constants;
    rnl_weights weights;
    rnl_plan_cache plans;
    uint64_t content_inputs;       /* bit i: shapes depend on the contents of graph input i */
    pthread_mutex_t progress_lock; /* one builder of programs at a time: a compiler runs on one thread anyway */
    bool has_lock, has_cache;      /* what a failed opening has to undo */
};

/* The plan for these inputs, from the cache or new; released by the caller. `tensors` in the graph's order. */
RNL_NODISCARD rnl_status rnl_model_get_plan(rnl_model *model, const rnl_tensor_desc *inputs, rnl_plan **out_plan);

/* Which of the graph's inputs or outputs (`kind`: "input", "output") a caller's tensor names. */
RNL_NODISCARD rnl_status rnl_tensor_find(const rnl_value_info *infos, size_t count, const char *kind,
                                         const rnl_tensor *tensor, size_t *out_index);

/*
 * Matches a caller's tensors to the graph's inputs and checks names, types and shapes. out_order[i] is the tensor for
 * input i; out_descs[i] its description, with host contents where they are part of the key (also from device memory's
 * absence: then FAILED_PRECONDITION).
 */
RNL_NODISCARD rnl_status rnl_model_match_inputs(const rnl_model *model, const rnl_tensor *tensors, size_t count,
                                                const rnl_tensor **out_order, rnl_tensor_desc *out_descs);

#endif
