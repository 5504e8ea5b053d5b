/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline's threads, and the batches that go from one to the next. */
#include "multi/pipeline.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/trace.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_DEPTH 2
#define MOST_DEPTH 64

/* The pipeline whose `complete` this thread is in. */
static _Thread_local const rnl_pipeline *inside;

/* ---- under the lock ---------------------------------------------------------------------------------------------- */

static rnl_batch *batch_at(const rnl_pipeline *pipeline, size_t index)
{
    return &pipeline->batches[(pipeline->first_batch + index) % pipeline->batch_count];
}

static void push(rnl_pipeline *pipeline, rnl_pipe_stage *stage, rnl_batch *batch)
{
    stage->queue[(stage->queue_first + stage->queue_count++) % pipeline->batch_count] = batch;
    pthread_cond_signal(&stage->work);
}

static rnl_batch *pop(const rnl_pipeline *pipeline, rnl_pipe_stage *stage)
{
    rnl_batch *batch = stage->queue[stage->queue_first];
    stage->queue_first = (stage->queue_first + 1) % pipeline->batch_count;
    stage->queue_count--;
    return batch;
}

/* Hands out what has got through, in order; by one thread at a time. The place is free before `complete` may submit. */
static void deliver(rnl_pipeline *pipeline)
{
    if (pipeline->delivers)
        return;
    pipeline->delivers = true;
    while (pipeline->batches_under_way > 0 && batch_at(pipeline, 0)->is_done) {
        rnl_batch *batch = batch_at(pipeline, 0);
        rnl_complete_fn complete = batch->complete;
        void *user = batch->user;
        rnl_trace *trace = batch->trace;
        const rnl_error error = batch->error;
        batch->trace = NULL;
        if (error.status != RNL_OK)
            rnl_batch_take_back(batch);
        pipeline->first_batch = (pipeline->first_batch + 1) % pipeline->batch_count;
        pipeline->batches_under_way--;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->lock);
        rnl_trace_release(trace);
        inside = pipeline;
        complete(user, error.status == RNL_OK ? NULL : &error);
        inside = NULL;
        pthread_mutex_lock(&pipeline->lock);
        pipeline->completed++;
        pthread_cond_broadcast(&pipeline->changed);
    }
    pipeline->delivers = false;
}

/* ---- a thread of a stage ----------------------------------------------------------------------------------------- */

static rnl_status name_stage(const rnl_lane *lane, rnl_status status)
{
    const rnl_device *device = lane->stage->model->device;
    char spec[RNL_DEVICE_SPEC_BYTES];
    return rnl_error_add(status, "stage %zu of %zu, on %s (%s)", (size_t)(lane->stage - lane->pipeline->stages),
                         lane->pipeline->stage_count, rnl_device_get_info(device)->name, rnl_device_spec(device, spec));
}

static rnl_status fail_lost(const rnl_pipeline *pipeline, const rnl_pipe_stage *stage)
{
    const rnl_device *device = pipeline->devices[stage->info.device];
    char spec[RNL_DEVICE_SPEC_BYTES];
    const char *end = strchr(stage->loss.message, '\n');
    const size_t length = end ? (size_t)(end - stage->loss.message) : strlen(stage->loss.message);
    return FAIL(RNL_UNAVAILABLE, "the pipeline has lost the device of stage %zu of %zu, %s (%s): %.*s",
                (size_t)(stage - pipeline->stages), pipeline->stage_count, rnl_device_get_info(device)->name,
                rnl_device_spec(device, spec), (int)length, stage->loss.message);
}

/* Planning for what crosses is a part of it. */
static rnl_status run_recorded(rnl_lane *lane, rnl_batch *batch)
{
    char name[64];
    const uint64_t start = rnl_trace_now();
    rnl_trace *before = rnl_trace_use(batch->trace);
    rnl_session_record(lane->session, batch->trace);
    const rnl_status status = rnl_lane_run(lane, batch);
    rnl_trace_use(before);
    snprintf(name, sizeof name, "batch %llu in stage %zu", (unsigned long long)batch->number,
             (size_t)(lane->stage - lane->pipeline->stages));
    rnl_trace_span(batch->trace, name, start);
    return status;
}

static rnl_status run_unrecorded(rnl_lane *lane, rnl_batch *batch)
{
    rnl_session_record(lane->session, NULL);
    return rnl_lane_run(lane, batch);
}

/* Without the lock. */
static rnl_status run_stage(rnl_lane *lane, rnl_batch *batch, bool is_lost, bool is_cancelled, uint64_t *out_ns)
{
    const uint64_t start = rnl_clock_ns();
    *out_ns = 0;
    if (is_cancelled)
        return FAIL(RNL_CANCELLED, "the batch was cancelled");
    if (is_lost)
        return fail_lost(lane->pipeline, lane->stage);
    rnl_status status = batch->trace ? run_recorded(lane, batch) : run_unrecorded(lane, batch);
    *out_ns = rnl_clock_ns() - start;
    return status == RNL_OK ? RNL_OK : name_stage(lane, status);
}

static void note_failure(rnl_lane *lane, rnl_batch *batch, bool found_lost)
{
    rnl_pipe_stage *stage = lane->stage;
    batch->error = *rnl_last_error();
    if (!found_lost || stage->is_lost)
        return;
    stage->is_lost = true;
    stage->loss = batch->error;
}

static void serve(rnl_lane *lane, rnl_batch *batch)
{
    rnl_pipeline *pipeline = lane->pipeline;
    rnl_pipe_stage *stage = lane->stage;
    const bool is_lost = stage->is_lost, is_cancelled = batch->is_cancelled;
    uint64_t ns;
    pthread_mutex_unlock(&pipeline->lock);
    const uint64_t plans = rnl_model_plans_built(stage->model);
    const rnl_status status = run_stage(lane, batch, is_lost, is_cancelled, &ns);
    const bool has_planned = rnl_model_plans_built(stage->model) != plans;
    const bool found_lost = status != RNL_OK && !is_lost && rnl_device_is_lost(stage->model->device);
    pthread_mutex_lock(&pipeline->lock);
    stage->info.run_count += ns > 0;
    stage->info.busy_ns += ns;
    if (status == RNL_OK && pipeline->trace && !has_planned)
        rnl_trace_cost_add(&stage->trace_cost, batch->trace, batch->bytes, ns);
    if (status != RNL_OK)
        note_failure(lane, batch, found_lost);
    const size_t next = (size_t)(stage - pipeline->stages) + 1;
    batch->is_done = status != RNL_OK || next == pipeline->stage_count;
    if (batch->is_done)
        deliver(pipeline);
    else
        push(pipeline, &pipeline->stages[next], batch);
}

static void *work(void *argument)
{
    rnl_lane *lane = argument;
    rnl_pipeline *pipeline = lane->pipeline;
    pthread_mutex_lock(&pipeline->lock);
    while (!pipeline->stop || lane->stage->queue_count > 0) {
        if (lane->stage->queue_count > 0)
            serve(lane, pop(pipeline, lane->stage));
        else
            pthread_cond_wait(&lane->stage->work, &pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return NULL;
}

/* ---- creating ---------------------------------------------------------------------------------------------------- */

static void stop_threads(rnl_pipeline *pipeline)
{
    if (!pipeline->has_lock)
        return;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->stop = true;
    for (size_t i = 0; i < pipeline->stage_count; i++)
        if (pipeline->stages[i].has_cond)
            pthread_cond_broadcast(&pipeline->stages[i].work);
    pthread_mutex_unlock(&pipeline->lock);
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        rnl_pipe_stage *stage = &pipeline->stages[i];
        for (size_t k = 0; k < stage->lane_count; k++)
            if (stage->lanes[k].has_thread)
                pthread_join(stage->lanes[k].thread, NULL);
    }
}

static void free_batches(rnl_pipeline *pipeline)
{
    for (size_t i = 0; pipeline->batches && i < pipeline->batch_count; i++) {
        rnl_parcels_free(&pipeline->batches[i], pipeline->crossing_count);
        rnl_free(pipeline->batches[i].inputs);
        rnl_free(pipeline->batches[i].output_indices);
        rnl_free(pipeline->batches[i].output_given);
    }
    rnl_free(pipeline->batches);
}

void rnl_pipeline_release(rnl_pipeline *pipeline)
{
    if (!pipeline)
        return;
    if (pipeline->has_cond && pipeline->batches) {
        rnl_pipeline_cancel(pipeline);
        rnl_pipeline_wait(pipeline);
    }
    stop_threads(pipeline);
    free_batches(pipeline);
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].has_cond)
            pthread_cond_destroy(&pipeline->stages[i].work);
        rnl_free(pipeline->stages[i].queue);
    }
    rnl_stages_close(pipeline);
    rnl_free(pipeline->stages);
    for (size_t i = 0; i < pipeline->device_count; i++)
        rnl_device_release(pipeline->devices[i]);
    rnl_free(pipeline->devices);
    if (pipeline->has_cond)
        pthread_cond_destroy(&pipeline->changed);
    if (pipeline->has_lock)
        pthread_mutex_destroy(&pipeline->lock);
    rnl_graph_release(pipeline->graph);
    rnl_trace_release(pipeline->trace);
    rnl_free(pipeline);
}

static rnl_status make_batches(rnl_pipeline *pipeline, uint32_t depth)
{
    pipeline->batch_count = (size_t)depth * pipeline->stage_count;
    TRY(rnl_alloc(pipeline->batch_count, sizeof *pipeline->batches, &pipeline->batches));
    for (size_t i = 0; i < pipeline->batch_count; i++) {
        rnl_batch *batch = &pipeline->batches[i];
        TRY(rnl_alloc(pipeline->crossing_count, sizeof *batch->parcels, &batch->parcels));
        TRY(rnl_alloc(pipeline->graph->input_count, sizeof *batch->inputs, &batch->inputs));
    }
    return RNL_OK;
}

static rnl_status start_stage(rnl_pipeline *pipeline, rnl_pipe_stage *stage)
{
    TRY(rnl_alloc(pipeline->batch_count, sizeof *stage->queue, &stage->queue));
    if (pthread_cond_init(&stage->work, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for the pipeline");
    stage->has_cond = true;
    for (size_t i = 0; i < stage->lane_count; i++) {
        if (pthread_create(&stage->lanes[i].thread, NULL, work, &stage->lanes[i]) != 0)
            return FAIL(RNL_RESOURCE_EXHAUSTED, "no thread for the pipeline");
        stage->lanes[i].has_thread = true;
    }
    return RNL_OK;
}

static rnl_status init_pipeline(rnl_pipeline *pipeline, const rnl_pipeline_options *options, uint32_t depth)
{
    if (pthread_mutex_init(&pipeline->lock, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the pipeline");
    pipeline->has_lock = true;
    if (pthread_cond_init(&pipeline->changed, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for the pipeline");
    pipeline->has_cond = true;
    TRY(rnl_alloc(pipeline->device_count, sizeof *pipeline->stages, &pipeline->stages));
    TRY(rnl_pipeline_open_stages(pipeline, options));
    TRY(make_batches(pipeline, depth));
    for (size_t i = 0; i < pipeline->stage_count; i++)
        TRY(start_stage(pipeline, &pipeline->stages[i]));
    return RNL_OK;
}

/* Callers that know nothing of traces have shorter options. */
static rnl_trace *trace_of(const rnl_pipeline_options *options)
{
    const size_t least = offsetof(rnl_pipeline_options, trace) + sizeof options->trace;
    return options && options->struct_size >= least ? options->trace : NULL;
}

static rnl_status init_recorded(rnl_pipeline *pipeline, const rnl_pipeline_options *options, uint32_t depth)
{
    rnl_trace *before = rnl_trace_current();
    if (pipeline->trace)
        rnl_trace_use(pipeline->trace);
    const rnl_status status = init_pipeline(pipeline, options, depth);
    rnl_trace_use(before);
    return status;
}

static rnl_status check_create(rnl_graph *graph, rnl_device *const *devices, size_t count, uint32_t depth)
{
    if (!graph || !devices)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_create: %s is NULL", graph ? "devices" : "graph");
    if (count == 0 || count > RNL_PIPELINE_MOST_DEVICES)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_create: %zu devices; 1 to %d are possible", count,
                    RNL_PIPELINE_MOST_DEVICES);
    for (size_t i = 0; i < count; i++)
        if (!devices[i])
            return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_create: device %zu is NULL", i);
    if (depth > MOST_DEPTH)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_create: a depth of %u; at most %d is possible", (unsigned)depth,
                    MOST_DEPTH);
    return RNL_OK;
}

static void log_stages(const rnl_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->stage_count && rnl_log_enabled(RNL_LOG_INFO); i++) {
        const rnl_pipeline_stage *info = &pipeline->stages[i].info;
        rnl_log(RNL_LOG_INFO, "pipeline: stage %zu has %zu nodes from '%s' on, %zu bytes of weights, on %s", i,
                info->node_count, info->first_name, info->weight_bytes,
                rnl_device_get_info(pipeline->devices[info->device])->name);
    }
}

rnl_status rnl_pipeline_create(rnl_graph *graph, rnl_device *const *devices, size_t device_count,
                               const rnl_pipeline_options *options, rnl_pipeline **out_pipeline)
{
    if (!out_pipeline)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_create: out_pipeline is NULL");
    *out_pipeline = NULL;
    const uint32_t depth = options && options->depth ? options->depth : DEFAULT_DEPTH;
    rnl_pipeline *pipeline = NULL;
    rnl_status status = RNL_OK;
    TRY(check_create(graph, devices, device_count, depth));
    TRY(rnl_alloc(1, sizeof *pipeline, &pipeline));
    pipeline->graph = rnl_graph_retain(graph);
    GOTO(rnl_alloc(device_count, sizeof(rnl_device *), &pipeline->devices));
    for (; pipeline->device_count < device_count; pipeline->device_count++)
        pipeline->devices[pipeline->device_count] = rnl_device_retain(devices[pipeline->device_count]);
    pipeline->trace = rnl_trace_retain(trace_of(options));
    GOTO(init_recorded(pipeline, options, depth));
    log_stages(pipeline);
    *out_pipeline = pipeline;
    pipeline = NULL;
done:
    if (pipeline) {
        const rnl_error error = *rnl_last_error();
        rnl_pipeline_release(pipeline);
        rnl_error_restore(&error);
    }
    return status;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

size_t rnl_pipeline_get_stages(rnl_pipeline *pipeline, rnl_pipeline_stage *out_stages, size_t capacity)
{
    pthread_mutex_lock(&pipeline->lock);
    for (size_t i = 0; i < pipeline->stage_count && i < capacity; i++)
        out_stages[i] = pipeline->stages[i].info;
    pthread_mutex_unlock(&pipeline->lock);
    return pipeline->stage_count;
}

void rnl_pipeline_trace(rnl_pipeline *pipeline, rnl_trace *trace)
{
    pthread_mutex_lock(&pipeline->lock);
    rnl_trace *before = pipeline->trace;
    pipeline->trace = rnl_trace_retain(trace);
    pipeline->trace_turn = (rnl_trace_turn){0};
    pthread_mutex_unlock(&pipeline->lock);
    rnl_trace_release(before);
}

static rnl_status check_lost(const rnl_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->stage_count; i++)
        if (pipeline->stages[i].is_lost)
            return fail_lost(pipeline, &pipeline->stages[i]);
    return RNL_OK;
}

/* Waits for a free place. */
static rnl_status find_room(rnl_pipeline *pipeline)
{
    while (pipeline->batches_under_way == pipeline->batch_count) {
        if (inside == pipeline)
            return FAIL(RNL_UNAVAILABLE, "all %zu places of the pipeline are taken, and its own thread cannot wait",
                        pipeline->batch_count);
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    }
    return check_lost(pipeline);
}

/* That of the stage where recording costs most, among those that know. */
static rnl_trace *next_trace(rnl_pipeline *pipeline)
{
    uint32_t most = 0;
    if (!pipeline->trace)
        return NULL;
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        const uint32_t runs = rnl_trace_cost_interval(&pipeline->stages[i].trace_cost);
        most = runs > most ? runs : most;
    }
    return rnl_trace_takes(pipeline->trace, &pipeline->trace_turn, most) ? pipeline->trace : NULL;
}

static uint64_t count_bytes(const rnl_tensor *inputs, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += inputs[i].size_bytes;
    return bytes;
}

rnl_status rnl_pipeline_submit(rnl_pipeline *pipeline, const rnl_tensor *inputs, size_t input_count,
                               rnl_tensor *outputs, size_t output_count, rnl_complete_fn complete, void *user)
{
    if (!pipeline || !complete)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_pipeline_submit: %s is NULL", pipeline ? "complete" : "pipeline");
    pthread_mutex_lock(&pipeline->lock);
    rnl_status status = find_room(pipeline);
    rnl_batch *batch = batch_at(pipeline, pipeline->batches_under_way);
    if (status == RNL_OK)
        status = rnl_batch_take(pipeline, batch, inputs, input_count, outputs, output_count);
    if (status == RNL_OK) {
        batch->complete = complete;
        batch->user = user;
        batch->error.status = RNL_OK;
        batch->is_cancelled = batch->is_done = false;
        pipeline->batches_under_way++;
        batch->number = ++pipeline->submitted;
        batch->bytes = count_bytes(inputs, input_count);
        batch->trace = rnl_trace_retain(next_trace(pipeline));
        push(pipeline, &pipeline->stages[0], batch);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return status;
}

typedef struct waiter {
    rnl_pipeline *pipeline;
    rnl_error error;
    bool is_done;
} waiter;

static void wake(void *user, const rnl_error *error)
{
    waiter *w = user;
    pthread_mutex_lock(&w->pipeline->lock);
    if (error)
        w->error = *error;
    w->is_done = true;
    pthread_cond_broadcast(&w->pipeline->changed);
    pthread_mutex_unlock(&w->pipeline->lock);
}

rnl_status rnl_pipeline_run(rnl_pipeline *pipeline, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                            size_t output_count)
{
    waiter w = {.pipeline = pipeline};
    if (pipeline && inside == pipeline)
        return FAIL(RNL_FAILED_PRECONDITION, "a pipeline's own thread cannot wait for it");
    TRY(rnl_pipeline_submit(pipeline, inputs, input_count, outputs, output_count, wake, &w));
    pthread_mutex_lock(&pipeline->lock);
    while (!w.is_done)
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    pthread_mutex_unlock(&pipeline->lock);
    return w.error.status == RNL_OK ? RNL_OK : rnl_error_restore(&w.error);
}

void rnl_pipeline_wait(rnl_pipeline *pipeline)
{
    if (!pipeline || inside == pipeline)
        return;
    pthread_mutex_lock(&pipeline->lock);
    const uint64_t until = pipeline->submitted;
    while (pipeline->completed < until)
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    pthread_mutex_unlock(&pipeline->lock);
}

void rnl_pipeline_cancel(rnl_pipeline *pipeline)
{
    if (!pipeline)
        return;
    pthread_mutex_lock(&pipeline->lock);
    for (size_t i = 0; i < pipeline->batches_under_way; i++)
        batch_at(pipeline, i)->is_cancelled = true;
    for (size_t i = 0; i < pipeline->stage_count; i++)
        for (size_t k = 0; k < pipeline->stages[i].lane_count; k++)
            rnl_session_cancel(pipeline->stages[i].lanes[k].session);
    pthread_mutex_unlock(&pipeline->lock);
}
