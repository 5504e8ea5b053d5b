/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a batch: the call itself. */
#include "multi/split.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "model/model.h"

#include <string.h>

/* ---- The call's arguments ------------------------------------------------------------------------------------- */

static rnl_status check_input(const rnl_tensor *input, const rnl_tensor *first)
{
    const char *name = input->name ? input->name : "";
    size_t bytes = 0;
    if (input->rank == 0 || input->rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has %zu dimensions; a batch has 1 to %d", name, input->rank,
                    RNL_MAX_RANK);
    for (size_t i = 0; i < input->rank; i++)
        if (input->shape[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has a negative dimension", name);
    if (input->shape[0] != first->shape[0])
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has %lld rows, where another input of the batch has %lld", name,
                    (long long)input->shape[0], (long long)first->shape[0]);
    const size_t row_bytes = rnl_row_bytes(input->dtype, input->shape, input->rank);
    if (!rnl_size_mul(row_bytes, (size_t)input->shape[0], &bytes) || input->size_bytes < bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has fewer bytes than its shape needs", name);
    if (!input->data && bytes > 0)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has no memory", name);
    return RNL_OK;
}

/* A batch of which parts can be made: some rows, and something in each. */
static bool has_parts(const rnl_multi *multi, const rnl_tensor *inputs, size_t count)
{
    if (count != multi->graph->input_count)
        return false; /* which a session says more about */
    for (size_t i = 0; i < count; i++)
        if (inputs[i].shape[0] < 2 || rnl_row_bytes(inputs[i].dtype, inputs[i].shape, inputs[i].rank) == 0)
            return false;
    return count > 0;
}

static void make_key(const rnl_tensor *inputs, size_t count, int64_t *key)
{
    for (size_t i = 0; i < count; i++) {
        *key++ = (int64_t)inputs[i].rank;
        for (size_t j = 0; j < RNL_MAX_RANK; j++)
            *key++ = j < inputs[i].rank ? inputs[i].shape[j] : 0;
    }
}

static void free_batch(rnl_batch *batch)
{
    rnl_free(batch->jobs);
    rnl_free(batch->parts);
    rnl_free(batch->share);
    rnl_free(batch->key);
}

static rnl_status make_batch(rnl_multi *multi, const rnl_tensor *inputs, size_t count, rnl_batch *batch)
{
    rnl_status status = RNL_OK;
    *batch = (rnl_batch){.multi = multi, .inputs = inputs, .input_count = count, .work = 1};
    batch->rows = (size_t)inputs[0].shape[0];
    for (size_t i = 0; i < count; i++)
        batch->work += (double)batch->rows * (double)rnl_row_bytes(inputs[i].dtype, inputs[i].shape, inputs[i].rank);
    GOTO(rnl_alloc(multi->member_count, sizeof *batch->jobs, &batch->jobs));
    GOTO(rnl_alloc(multi->member_count, (count + multi->graph->output_count) * sizeof *batch->parts, &batch->parts));
    GOTO(rnl_alloc(multi->member_count, sizeof *batch->share, &batch->share));
    GOTO(rnl_alloc(count, (1 + RNL_MAX_RANK) * sizeof *batch->key, &batch->key));
    make_key(inputs, count, batch->key);
done:
    if (status != RNL_OK)
        free_batch(batch);
    return status;
}

/* ---- Outputs -------------------------------------------------------------------------------------------------- */

/* The shape and memory of an output of the caller's; `*out_own` is what is made for it. */
static rnl_status make_target(rnl_multi *multi, const rnl_split *split, const rnl_tensor *output,
                              rnl_batch_target *target, void **out_own)
{
    const rnl_graph *graph = multi->graph;
    size_t bytes = 0;
    TRY(rnl_tensor_find(graph->outputs, graph->output_count, "output", output, &target->index));
    target->of = split->outputs[target->index];
    if (!rnl_size_mul(target->of.row_bytes, (size_t)target->of.shape[0], &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "output '%s' is too large to address", graph->outputs[target->index].name);
    if (!output->data)
        TRY(rnl_alloc(bytes ? bytes : 1, 1, out_own));
    else if (output->size_bytes < bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "output '%s' needs %zu bytes, %zu were given",
                    graph->outputs[target->index].name, bytes, output->size_bytes);
    target->data = output->data ? output->data : *out_own;
    return RNL_OK;
}

static void fill_output(const rnl_batch_target *target, rnl_tensor *output)
{
    output->dtype = target->of.dtype;
    output->rank = target->of.rank;
    memcpy(output->shape, target->of.shape, sizeof output->shape);
    if (!output->data)
        output->size_bytes = target->of.row_bytes * (size_t)target->of.shape[0];
    output->data = target->data;
}

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a && b && (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* One part would write what another has still to read. */
static bool must_stay_whole(const rnl_batch *batch, const rnl_batch_target *targets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = targets[i].of.row_bytes * batch->rows;
        for (size_t j = 0; j < batch->input_count; j++)
            if (overlap(targets[i].data, bytes, batch->inputs[j].data, batch->inputs[j].size_bytes))
                return true;
        for (size_t j = 0; j < i; j++)
            if (overlap(targets[i].data, bytes, targets[j].data, targets[j].of.row_bytes * batch->rows))
                return true;
    }
    return false;
}

/* ---- A shape that is known ------------------------------------------------------------------------------------ */

typedef struct known_call {
    rnl_batch *batch;
    rnl_tensor *outputs;
    size_t output_count;
    rnl_batch_target *targets;
    void **own; /* memory made for outputs */
} known_call;

static void put_on_one(const rnl_batch *batch, size_t member)
{
    memset(batch->share, 0, batch->multi->member_count * sizeof *batch->share);
    batch->share[member] = batch->rows;
}

/* With the lock: everything that the split is asked for. */
static rnl_status read_split(known_call *call, bool *out_found)
{
    rnl_batch *batch = call->batch;
    rnl_multi *multi = batch->multi;
    rnl_split *split = rnl_split_find(multi, batch->key);
    *out_found = split && !split->is_stale;
    if (!*out_found)
        return RNL_OK;
    for (size_t i = 0; i < call->output_count; i++)
        TRY(make_target(multi, split, &call->outputs[i], &call->targets[i], &call->own[i]));
    rnl_split_refresh(multi, split, batch->rows);
    memcpy(batch->share, split->share, multi->member_count * sizeof *batch->share);
    if (must_stay_whole(batch, call->targets, call->output_count))
        put_on_one(batch, split->best);
    return RNL_OK;
}

static rnl_status run_known(known_call *call, bool *out_found)
{
    rnl_batch *batch = call->batch;
    rnl_multi *multi = batch->multi;
    double ns;
    pthread_mutex_lock(&multi->lock);
    const rnl_status status = read_split(call, out_found);
    pthread_mutex_unlock(&multi->lock);
    if (status != RNL_OK || !*out_found)
        return status;
    TRY(rnl_batch_run(batch, batch->share, call->targets, call->output_count, &ns));
    pthread_mutex_lock(&multi->lock);
    rnl_split_learn(multi, batch, batch->share, ns);
    pthread_mutex_unlock(&multi->lock);
    for (size_t i = 0; i < call->output_count; i++) {
        fill_output(&call->targets[i], &call->outputs[i]);
        call->own[i] = NULL;
    }
    return RNL_OK;
}

static rnl_status try_known(rnl_batch *batch, rnl_tensor *outputs, size_t output_count, bool *out_found)
{
    known_call call = {.batch = batch, .outputs = outputs, .output_count = output_count};
    rnl_status status = RNL_OK;
    *out_found = false;
    GOTO(rnl_alloc(output_count, sizeof *call.targets, &call.targets));
    GOTO(rnl_alloc(output_count, sizeof *call.own, &call.own));
    GOTO(run_known(&call, out_found));
done:
    for (size_t i = 0; call.own && i < output_count; i++)
        rnl_free(call.own[i]);
    rnl_free(call.own);
    rnl_free(call.targets);
    return status;
}

/* ---- A new shape ---------------------------------------------------------------------------------------------- */

/* Gives the caller what it asked for of the graph's outputs, whose memory is in `whole`. */
static rnl_status hand_out(rnl_multi *multi, rnl_split *split, rnl_tensor *whole, rnl_tensor *outputs, size_t count)
{
    const rnl_graph *graph = multi->graph;
    size_t index = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(rnl_tensor_find(graph->outputs, graph->output_count, "output", &outputs[i], &index));
        const size_t bytes = split->outputs[index].row_bytes * (size_t)split->outputs[index].shape[0];
        if (outputs[i].data && outputs[i].size_bytes < bytes)
            return FAIL(RNL_INVALID_ARGUMENT, "output '%s' needs %zu bytes, %zu were given", graph->outputs[index].name,
                        bytes, outputs[i].size_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        (void)!rnl_tensor_find(graph->outputs, graph->output_count, "output", &outputs[i], &index);
        rnl_batch_target target = {.index = index, .of = split->outputs[index], .data = outputs[i].data};
        if (target.data) {
            memcpy(target.data, whole[index].data, target.of.row_bytes * (size_t)target.of.shape[0]);
        } else {
            target.data = whole[index].data;
            whole[index].data = NULL;
        }
        fill_output(&target, &outputs[i]);
    }
    return RNL_OK;
}

static rnl_status run_new(rnl_batch *batch, rnl_tensor *outputs, size_t output_count)
{
    rnl_multi *multi = batch->multi;
    const size_t count = multi->graph->output_count;
    rnl_tensor *whole = NULL;
    rnl_split *split = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc(count, sizeof *whole, &whole));
    GOTO(rnl_split_create(multi, batch->key, &split));
    pthread_mutex_lock(&multi->lock);
    rnl_split_inherit(multi, split);
    pthread_mutex_unlock(&multi->lock);
    GOTO(rnl_split_measure(batch, split, whole));
    GOTO(hand_out(multi, split, whole, outputs, output_count));
    pthread_mutex_lock(&multi->lock);
    rnl_split_note(multi, split);
    pthread_mutex_unlock(&multi->lock);
    split = NULL;
done:
    rnl_split_free(split);
    for (size_t i = 0; whole && i < count; i++)
        rnl_free(whole[i].data);
    rnl_free(whole);
    return status;
}

/* Who comes second finds what the first has measured. */
static rnl_status measure_and_run(rnl_batch *batch, rnl_tensor *outputs, size_t output_count)
{
    bool found = false;
    pthread_mutex_lock(&batch->multi->measuring);
    rnl_status status = try_known(batch, outputs, output_count, &found);
    if (status == RNL_OK && !found)
        status = rnl_multi_check_split(batch->multi);
    if (status == RNL_OK && !found)
        status = run_new(batch, outputs, output_count);
    pthread_mutex_unlock(&batch->multi->measuring);
    return status;
}

rnl_status rnl_multi_run_split(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                               size_t output_count)
{
    rnl_job check;
    rnl_batch batch;
    bool found = false;
    TRY(rnl_job_prepare(multi, inputs, input_count, outputs, output_count, &check));
    TRY(rnl_multi_check_split(multi));
    for (size_t i = 0; i < input_count; i++)
        TRY(check_input(&inputs[i], &inputs[0]));
    if (!has_parts(multi, inputs, input_count))
        return rnl_multi_run(multi, inputs, input_count, outputs, output_count);
    TRY(make_batch(multi, inputs, input_count, &batch));
    rnl_status status = try_known(&batch, outputs, output_count, &found);
    if (status == RNL_OK && !found)
        status = measure_and_run(&batch, outputs, output_count);
    free_batch(&batch);
    return status;
}
