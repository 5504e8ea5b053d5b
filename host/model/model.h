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
    rnl_plan_cache plans; /* the root's: of all graphs */
    rnl_model *root;      /* of the model's own graph; a model of a graph within it shares its lock and its plans */
    rnl_model **inner;    /* one for each of the graph's subgraphs */
    size_t inner_count;
    bool multiplies_bf16;          /* the root's: see narrow.h */
    rnl_nan_mode nan_mode;         /* the root's: see nan.h */
    bool is_deterministic;         /* the root's: see ops/deterministic.h */
    bool *reads_contents;          /* one a value: shapes depend on its contents */
    uint32_t *last_read;           /* one a value: 1 + the last node that reads it; UINT32_MAX: an output; 0: nobody */
    pthread_mutex_t progress_lock; /* one builder of programs at a time, which may have others (kernel/compilers.h) */
    bool has_lock, has_cache;      /* what a failed opening has to undo */
};

/* As rnl_model_open, but no weight gets memory, and nothing is planned: for rnl_survey_create. */
RNL_NODISCARD rnl_status rnl_model_open_dry(rnl_graph *graph, rnl_device *device, const rnl_model_options *options,
                                            rnl_model **out_model);

/* The plan for these inputs, from the cache or new; released by the caller. */
RNL_NODISCARD rnl_status rnl_model_get_plan(rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan);
/* Of a graph that one of the nodes has. */
rnl_model *rnl_model_inner(const rnl_model *model, const rnl_graph *graph);
/* How many were new so far. */
uint64_t rnl_model_plans_built(rnl_model *model);
/* The same from the graph's start, for its inputs in their order. */
RNL_NODISCARD rnl_status rnl_model_get_first_plan(rnl_model *model, const rnl_tensor_desc *inputs, rnl_plan **out_plan);

/* Which of the graph's inputs or outputs (`kind`: "input", "output") a caller's tensor names. */
RNL_NODISCARD rnl_status rnl_tensor_find(const rnl_value_info *infos, size_t count, const char *kind,
                                         const rnl_tensor *tensor, size_t *out_index);

/*
 * Matches a caller's tensors to the graph's inputs and checks names, types and shapes. out_order[i] is the tensor for
 * input i; out_descs[i] its description, with host contents where they are part of the key. Without any memory those
 * are FAILED_PRECONDITION.
 */
RNL_NODISCARD rnl_status rnl_model_match_inputs(const rnl_model *model, const rnl_tensor *tensors, size_t count,
                                                const rnl_tensor **out_order, rnl_tensor_desc *out_descs);

#endif
