/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model over several devices as a pipeline: the graph is cut into stages, each device holds the weights of its own
 * stage alone and computes it for one batch while the others are at other batches.
 *
 *     rnl_pipeline_create(graph, devices, 2, NULL, &pipeline);
 *     for (...)
 *         rnl_pipeline_submit(pipeline, inputs, 1, outputs, 1, complete, user);   blocks while all places are taken
 *     rnl_pipeline_wait(pipeline);
 *
 * The conventions of runnel/rt.h hold here too.
 */
#ifndef RUNNEL_PIPELINE_H
#define RUNNEL_PIPELINE_H

#include <runnel/runnel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_pipeline rnl_pipeline;

#define RNL_PIPELINE_MOST_DEVICES 64

typedef struct rnl_pipeline_options {
    size_t struct_size;
    uint32_t depth; /* batches that may be under way for each stage; 0 = 2; at most 64 */
    /* What each device may use for its stage, in the devices' order; NULL, or 0 in it: what its pool has left. */
    const uint64_t *memory_bytes;
    /* What batches will look like: names, types and shapes, data where shapes depend on it. Needed where the graph
     * leaves dimensions free. Other shapes run, too; the cut was made for these. */
    const rnl_tensor *inputs;
    size_t input_count;
    /* Goes by arithmetic and memory traffic instead of measuring each kind of device that the whole model fits. */
    bool estimate;
    const rnl_model_options *model; /* of each stage; may be NULL */
    /* What is done for batches, and for opening the stages, is recorded there (runnel/trace.h): each stage's commands
     * on tracks of its own ("stage 1 on 0:1"), and on the threads of the host "batch 1 in stage 0". NULL: it is not. */
    rnl_trace *trace;
} rnl_pipeline_options;
#define RNL_PIPELINE_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(rnl_pipeline_options), 0, NULL, NULL, 0, false, NULL, NULL                                              \
    }

/*
 * Cuts a graph for the devices, in their order, such that the slowest stage is as fast as can be, each stage fits its
 * device's memory and little travels; opens each stage on its device. A device that would only be in the way gets no
 * stage. Where nodes make shapes depend on the data (If, Loop, NonZero), the graph is cut in front of the first of them
 * only; RNL_FAILED_PRECONDITION when it can be cut nowhere. RNL_RESOURCE_EXHAUSTED when no cut fits. `options` may be
 * NULL. Devices may be given more than once.
 */
RNL_API RNL_NODISCARD rnl_status rnl_pipeline_create(rnl_graph *graph, rnl_device *const *devices, size_t device_count,
                                                     const rnl_pipeline_options *options, rnl_pipeline **out_pipeline);
/* Cancels and waits for what was submitted. Not from `complete`. */
RNL_API void rnl_pipeline_release(rnl_pipeline *pipeline);

typedef struct rnl_pipeline_stage {
    size_t device;                 /* index into the devices that were given */
    size_t first_node, node_count; /* in the order of the run; what follows from constants alone not counted twice */
    const char *first_name;        /* of its first node, else of that node's output; borrowed from the graph */
    size_t weight_bytes, arena_bytes;
    size_t crossing_bytes; /* that come from earlier stages, for the inputs that the cut was made for */
    double expected_ns;    /* what the cut was made by */
    bool is_measured;      /* expected_ns is, not estimated */
    uint64_t run_count;    /* batches so far … */
    uint64_t busy_ns;      /* … and the time of their runs in this stage, copying included */
} rnl_pipeline_stage;
/* Writes at most `capacity` stages, in their order, and returns how many there are. Any thread. */
RNL_API size_t rnl_pipeline_get_stages(rnl_pipeline *pipeline, rnl_pipeline_stage *out_stages, size_t capacity);

/*
 * Starts a batch and returns; blocks while as many as possible are under way (depth times stages). Tensors are in host
 * memory; they, and the arrays that hold them, must stay valid until `complete` has been called. An output without
 * memory gets some that is the caller's from then on: rnl_output_release. `complete` is called once for each batch, in
 * the order of the submissions and one at a time, from a thread of the pipeline; it may submit, which is
 * RNL_UNAVAILABLE there instead of blocking, and must not wait for or release the pipeline. A batch that fails says in
 * which stage and on which device; others go on. When a device has been lost, RNL_UNAVAILABLE says which. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_pipeline_submit(rnl_pipeline *pipeline, const rnl_tensor *inputs,
                                                     size_t input_count, rnl_tensor *outputs, size_t output_count,
                                                     rnl_complete_fn complete, void *user);
/* Submits one batch and blocks until it is there. Several threads may do so at a time. */
RNL_API RNL_NODISCARD rnl_status rnl_pipeline_run(rnl_pipeline *pipeline, const rnl_tensor *inputs, size_t input_count,
                                                  rnl_tensor *outputs, size_t output_count);
/* Blocks until all batches submitted so far have been completed. Not from `complete`. */
RNL_API void rnl_pipeline_wait(rnl_pipeline *pipeline);
/*
 * From the next batch on, what is done for batches is recorded in this trace, as with the option of that name; NULL: no
 * longer. Where a track cannot be made, batches go on without. The pipeline may hold a trace until it is released. Any
 * thread.
 */
RNL_API void rnl_pipeline_trace(rnl_pipeline *pipeline, rnl_trace *trace);

/* What is under way ends with RNL_CANCELLED, unless it has got through. Any thread. */
RNL_API void rnl_pipeline_cancel(rnl_pipeline *pipeline);

#ifdef __cplusplus
}
#endif
#endif
