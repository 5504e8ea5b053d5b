/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline's insides. */
#ifndef RUNNEL_MULTI_PIPELINE_H
#define RUNNEL_MULTI_PIPELINE_H

#include "graph/part.h"
#include "model/session.h"
#include "model/survey.h"
#include <pthread.h>
#include <runnel/pipeline.h>

typedef struct rnl_pipe_stage rnl_pipe_stage;

/* A value that one stage computes for later ones: in host memory, which the device with memory of its own copies fast,
 * and which those that share the host's use in place. */
typedef struct rnl_crossing {
    uint32_t value;
    rnl_device *pins; /* borrowed: pinned memory of this device; NULL: any memory */
} rnl_crossing;

/* A crossing of one batch. Its memory stays for the next one. */
typedef struct rnl_parcel {
    rnl_tensor tensor;
    rnl_buffer *pinned;
    void *plain;
    size_t capacity;
    void *taken; /* from a session, where the size was not known beforehand */
} rnl_parcel;

/* A batch under way. The caller's tensors, in the graph's order, stay the caller's; outputs in the caller's order. */
typedef struct rnl_batch {
    const rnl_tensor **inputs; /* one for each of the graph's */
    rnl_tensor *outputs;
    size_t output_count;
    uint32_t *output_indices; /* which of the graph's */
    bool *output_given;       /* its memory came from here */
    size_t output_capacity, given_capacity;
    rnl_parcel *parcels; /* one a crossing */
    rnl_complete_fn complete;
    void *user;
    rnl_error error; /* status RNL_OK: none so far */
    bool is_cancelled, is_done;
    uint64_t number;  /* of the submissions, from 1 on */
    uint64_t bytes;   /* of the inputs */
    rnl_trace *trace; /* retained: it is recorded there; or NULL */
} rnl_batch;

/* A thread of a stage, with the session that it runs. */
typedef struct rnl_lane {
    rnl_pipeline *pipeline;
    rnl_pipe_stage *stage;
    rnl_session *session;
    pthread_t thread;
    bool has_thread;
    rnl_tensor *inputs, *outputs; /* scratch: the session's */
} rnl_lane;

struct rnl_pipe_stage {
    rnl_graph *graph; /* the part */
    rnl_model *model;
    size_t own_outputs;       /* of the part's: the graph's own; behind them come crossings */
    int32_t *input_sources;   /* of each input: the graph's input, or -1 - crossing */
    uint32_t *output_targets; /* of each output: the graph's output, or the crossing */
    rnl_pipeline_stage info;
    rnl_lane *lanes;
    size_t lane_count;
    /* Under the pipeline's lock: */
    rnl_batch **queue; /* a ring as large as there are batches */
    size_t queue_first, queue_count;
    pthread_cond_t work;
    bool has_cond, is_lost;
    rnl_error loss;
    rnl_trace_cost trace_cost;
};

struct rnl_pipeline {
    rnl_graph *graph;
    rnl_device **devices; /* retained */
    size_t device_count;
    rnl_pipe_stage *stages;
    size_t stage_count;
    rnl_crossing *crossings;
    size_t crossing_count;
    rnl_batch *batches; /* a ring in the order of the submissions */
    size_t batch_count, first_batch, batches_under_way;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_lock, has_cond;
    bool stop, delivers; /* somebody calls `complete` */
    uint64_t submitted, completed;
    rnl_trace *trace; /* retained; or NULL */
    rnl_trace_turn trace_turn;
};

/* ---- pipeline_open.c: the cut; sets stages' info, graphs and models ---- */
RNL_NODISCARD rnl_status rnl_pipeline_open_stages(rnl_pipeline *pipeline, const rnl_pipeline_options *options);

/* ---- pipeline_stage.c ---- */
/* Opens the stages for this cut: cuts[device] is where its nodes begin. RNL_RESOURCE_EXHAUSTED: *out_device has no
 * room, and needs so many bytes, or 0. */
typedef struct rnl_stage_plan {
    const rnl_flow *flow;
    const rnl_survey *survey;
    const rnl_model_options *options;
    const uint32_t *cuts;
    const size_t *budgets;
    uint32_t depth;
} rnl_stage_plan;
RNL_NODISCARD rnl_status rnl_stages_open(rnl_pipeline *pipeline, const rnl_stage_plan *plan, size_t *out_device,
                                         size_t *out_needed);
void rnl_stages_close(rnl_pipeline *pipeline);
/* Runs of a stage at a time: one is copied while another computes, where the device has memory of its own. */
size_t rnl_stage_lanes(const rnl_device *device, uint32_t depth);

/* ---- pipeline_batch.c ---- */
/* One batch through one stage. */
RNL_NODISCARD rnl_status rnl_lane_run(rnl_lane *lane, rnl_batch *batch);
void rnl_parcels_free(rnl_batch *batch, size_t count);
/* Looks at the caller's tensors and notes them. */
RNL_NODISCARD rnl_status rnl_batch_take(const rnl_pipeline *pipeline, rnl_batch *batch, const rnl_tensor *inputs,
                                        size_t input_count, rnl_tensor *outputs, size_t output_count);
/* On failure no output is valid: takes back the memory that some got. */
void rnl_batch_take_back(rnl_batch *batch);
/* A device that fails at the least of things is lost. */
bool rnl_device_is_lost(rnl_device *device);

#endif
