/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/evaluate.h"
#include "ops/gemm.h"
#include <string.h>

#define PLAN_CACHE_BYTES ((size_t)64 << 20)

rnl_model *rnl_model_retain(rnl_model *model)
{
    if (model)
        atomic_fetch_add(&model->references, 1);
    return model;
}

void rnl_model_release(rnl_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1)
        return;
    if (model->has_cache)
        rnl_plan_cache_free(&model->plans);
    rnl_weights_free(&model->weights);
    rnl_constants_free(&model->constants);
    if (model->has_lock)
        pthread_mutex_destroy(&model->progress_lock);
    rnl_device_release(model->device);
    rnl_graph_release(model->graph);
    rnl_free(model);
}

/* ---- programs ------------------------------------------------------------------------------------------------- */

static rnl_status build_programs(rnl_model *model, const rnl_plan *plan)
{
    rnl_status status = RNL_OK;
    size_t total = 0, done = 0;
    pthread_mutex_lock(&model->progress_lock);
    for (size_t i = 0; i < plan->program_count; i++)
        total += !rnl_program_is_built(plan->programs[i]);
    for (size_t i = 0; i < plan->program_count; i++) {
        rnl_program *program = plan->programs[i];
        if (rnl_program_is_built(program))
            continue;
        GOTO(rnl_program_build(program), "preparing %s", rnl_program_name(program));
        rnl_progress progress = {rnl_program_file(program), ++done, total, rnl_program_from_cache(program)};
        if (model->options.progress)
            model->options.progress(model->options.progress_user, &progress);
    }
done:
    pthread_mutex_unlock(&model->progress_lock);
    return status;
}

/* CLBlast compiles at its first call: not in a run. A product that does not fit beside the weights is left to the run.
 */
static rnl_status warm_products(rnl_model *model, const rnl_plan *plan)
{
    rnl_stream *stream = NULL;
    if (plan->steps.gemm_count == 0)
        return RNL_OK;
    TRY(rnl_stream_create(model->device, &stream));
    rnl_status status = RNL_OK;
    for (size_t i = 0; i < plan->steps.gemm_count && status == RNL_OK; i++) {
        status = rnl_clblast_warm(stream, &plan->steps.gemms[i]);
        if (status == RNL_RESOURCE_EXHAUSTED)
            status = RNL_OK;
    }
    rnl_stream_release(stream);
    return status;
}

/* ---- plans ---------------------------------------------------------------------------------------------------- */

typedef struct plan_request {
    rnl_model *model;
    const rnl_tensor_desc *inputs;
} plan_request;

static rnl_status build_plan(void *user, rnl_plan **out_plan)
{
    const plan_request *request = user;
    rnl_model *model = request->model;
    uint64_t start = rnl_clock_ns();
    TRY(rnl_plan_create(model, request->inputs, out_plan));
    pthread_mutex_lock(&model->plans.lock);
    model->plans.last_plan_ns = rnl_clock_ns() - start;
    pthread_mutex_unlock(&model->plans.lock);
    rnl_status status = build_programs(model, *out_plan);
    if (status == RNL_OK)
        status = warm_products(model, *out_plan);
    if (status != RNL_OK) {
        rnl_plan_release(*out_plan);
        *out_plan = NULL;
    }
    return status;
}

rnl_status rnl_model_get_plan(rnl_model *model, const rnl_tensor_desc *inputs, rnl_plan **out_plan)
{
    rnl_text key = {0};
    rnl_status status = RNL_OK;
    *out_plan = NULL;
    for (size_t i = 0; i < model->graph->input_count; i++) {
        const rnl_tensor_desc *input = &inputs[i];
        uint32_t head[2] = {(uint32_t)input->dtype, (uint32_t)input->rank};
        rnl_text_add_bytes(&key, (const char *)head, sizeof head);
        rnl_text_add_bytes(&key, (const char *)input->shape, input->rank * sizeof *input->shape);
        if (input->host)
            rnl_text_add_bytes(&key, input->host, (size_t)rnl_desc_elements(input) * rnl_dtype_bytes(input->dtype));
    }
    GOTO(key.status);
    plan_request request = {model, inputs};
    GOTO(rnl_plan_cache_get(&model->plans, key.data ? key.data : "", key.length, build_plan, &request, out_plan));
done:
    rnl_text_free(&key);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static bool has_fixed_shapes(const rnl_model *model)
{
    for (size_t i = 0; i < model->graph->input_count; i++) {
        const rnl_value_info *input = &model->graph->inputs[i];
        if (input->rank == SIZE_MAX || (model->content_inputs >> (i < 63 ? i : 63) & 1))
            return false;
        for (size_t j = 0; j < input->rank; j++)
            if (input->shape[j] < 0)
                return false;
    }
    return true;
}

static rnl_status plan_fixed_shapes(rnl_model *model)
{
    size_t count = model->graph->input_count;
    rnl_tensor_desc *inputs = NULL;
    rnl_plan *plan = NULL;
    TRY(rnl_alloc(count, sizeof *inputs, &inputs));
    for (size_t i = 0; i < count; i++) {
        const rnl_value_info *info = &model->graph->inputs[i];
        inputs[i].dtype = info->dtype;
        inputs[i].rank = info->rank;
        memcpy(inputs[i].shape, info->shape, info->rank * sizeof *info->shape);
    }
    rnl_status status = rnl_model_get_plan(model, inputs, &plan);
    rnl_plan_release(plan);
    rnl_free(inputs);
    return status;
}

static rnl_status check_graph(const rnl_graph *graph)
{
    const rnl_operator_info *rows;
    size_t count;
    return rnl_graph_check(graph, &rows, &count);
}

static rnl_status init_model(rnl_model *model, const rnl_model_options *options)
{
    if (options) {
        size_t known = options->struct_size < sizeof *options ? options->struct_size : sizeof *options;
        memcpy(&model->options, options, known);
    }
    size_t limit = model->options.plan_cache_bytes ? model->options.plan_cache_bytes : PLAN_CACHE_BYTES;
    if (pthread_mutex_init(&model->progress_lock, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the model");
    model->has_lock = true;
    TRY(rnl_plan_cache_init(&model->plans, limit));
    model->has_cache = true;
    TRY(rnl_constants_init(&model->constants, model->graph));
    TRY(rnl_weights_init(&model->weights, model->device, model->graph, model->constants.tensors));
    model->content_inputs = rnl_graph_content_inputs(model->graph);
    return has_fixed_shapes(model) ? plan_fixed_shapes(model) : RNL_OK;
}

rnl_status rnl_model_open(rnl_graph *graph, rnl_device *device, const rnl_model_options *options, rnl_model **out_model)
{
    if (!out_model)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_open: out_model is NULL");
    *out_model = NULL;
    if (!graph || !device)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_open: %s is NULL", graph ? "device" : "graph");
    rnl_model *model = NULL;
    rnl_status status = RNL_OK;
    TRY(check_graph(graph));
    TRY(rnl_alloc(1, sizeof *model, &model));
    atomic_init(&model->references, 1);
    model->graph = rnl_graph_retain(graph);
    model->device = rnl_device_retain(device);
    GOTO(init_model(model, options));
    *out_model = model;
    return RNL_OK;
done:
    rnl_model_release(model);
    return status;
}

rnl_status rnl_model_prepare(rnl_model *model, const rnl_tensor *inputs, size_t input_count)
{
    size_t count = model->graph->input_count;
    const rnl_tensor **order = NULL;
    rnl_tensor_desc *descs = NULL;
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc(count, sizeof *order, &order));
    GOTO(rnl_alloc(count, sizeof *descs, &descs));
    GOTO(rnl_model_match_inputs(model, inputs, input_count, order, descs));
    GOTO(rnl_model_get_plan(model, descs, &plan));
done:
    rnl_plan_release(plan);
    rnl_free(order);
    rnl_free(descs);
    return status;
}

void rnl_model_get_stats(rnl_model *model, rnl_model_stats *out_stats)
{
    *out_stats = (rnl_model_stats){0};
    pthread_mutex_lock(&model->weights.lock);
    out_stats->weight_bytes = model->weights.size_bytes;
    pthread_mutex_unlock(&model->weights.lock);
    pthread_mutex_lock(&model->plans.lock);
    out_stats->plan_count = model->plans.count;
    out_stats->plan_bytes = model->plans.size_bytes;
    out_stats->plans_built = model->plans.plans_built;
    out_stats->plans_evicted = model->plans.plans_evicted;
    out_stats->last_plan_ns = model->plans.last_plan_ns;
    out_stats->program_count = model->plans.program_count;
    pthread_mutex_unlock(&model->plans.lock);
}
