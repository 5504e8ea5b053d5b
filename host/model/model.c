/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/watch.h"
#include "graph/integers.h"
#include "kernel/team.h"
#include "model/evaluate.h"
#include "model/fuse.h"
#include "model/nan.h"
#include "ops/compile_ahead.h"
#include "ops/deterministic.h"
#include "ops/gemm.h"
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
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
    for (size_t i = 0; i < model->inner_count; i++)
        rnl_model_release(model->inner[i]);
    rnl_free(model->inner);
    rnl_free(model->reads_contents);
    rnl_free(model->last_read);
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

typedef struct program_work {
    const rnl_model *model;
    const rnl_plan *plan;
    size_t total, done;
} program_work;

/* Its functions may be there without it. */
static bool is_ready(const rnl_plan *plan, const rnl_program *program)
{
    return rnl_program_is_built(program) || (rnl_program_is_left(program) && !rnl_steps_need(&plan->steps, program));
}

static rnl_status build_program(void *user, rnl_program *program)
{
    program_work *work = user;
    const rnl_model_options *options = &work->model->options;
    if (is_ready(work->plan, program))
        return RNL_OK;
    if (rnl_steps_need(&work->plan->steps, program))
        TRY(rnl_program_build(program), "preparing %s", rnl_program_name(program));
    else
        rnl_program_leave(program);
    const rnl_progress progress = {rnl_program_file(program), ++work->done, work->total,
                                   rnl_program_from_cache(program)};
    if (options->progress)
        options->progress(options->progress_user, &progress);
    return RNL_OK;
}

static size_t largest_slot(const rnl_plan *plan)
{
    size_t largest = 0;
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].size_bytes > largest)
            largest = plan->slots[i].size_bytes;
    return largest;
}

static rnl_status build_programs(rnl_model *model, const rnl_plan *plan)
{
    if (!rnl_compile_is_first(&plan->steps, plan->programs, plan->program_count))
        (void)rnl_device_has_team(model->device); /* which decides what is needed */
    program_work work = {.model = model->root, .plan = plan};
    pthread_mutex_lock(&model->root->progress_lock);
    for (size_t i = 0; i < plan->program_count; i++)
        work.total += !is_ready(plan, plan->programs[i]);
    rnl_status status = work.total == 0 ? RNL_OK
                                        : rnl_compile_ahead(&plan->steps, plan->programs, plan->program_count,
                                                            largest_slot(plan), build_program, &work);
    for (size_t i = 0; i < plan->program_count && status == RNL_OK; i++)
        status = build_program(&work, plan->programs[i]);
    pthread_mutex_unlock(&model->root->progress_lock);
    (void)rnl_device_has_team(model->device); /* before any step: see rnl_team_offset */
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

typedef struct plan_work {
    rnl_model *model;
    const rnl_plan_request *request;
} plan_work;

static rnl_status build_plan(void *user, rnl_plan **out_plan)
{
    const plan_work *work = user;
    rnl_model *model = work->model, *root = model->root;
    uint64_t start = rnl_clock_ns();
    const bool before = rnl_set_deterministic(root->is_deterministic);
    rnl_status status = rnl_plan_create(model, work->request, out_plan);
    rnl_set_deterministic(before);
    TRY(status);
    pthread_mutex_lock(&root->plans.lock);
    root->plans.last_plan_ns = rnl_clock_ns() - start;
    pthread_mutex_unlock(&root->plans.lock);
    status = build_programs(model, *out_plan);
    if (status == RNL_OK)
        status = warm_products(model, *out_plan);
    if (status != RNL_OK) {
        rnl_plan_release(*out_plan);
        *out_plan = NULL;
    }
    return status;
}

/* Which values are there follows from the graph and the first node. */
static void add_key(rnl_text *key, const rnl_model *model, const rnl_plan_request *request)
{
    const uint64_t place[2] = {(uint64_t)(uintptr_t)model, request->first_node};
    rnl_text_add_bytes(key, (const char *)place, sizeof place);
    for (size_t i = 0; i < request->input_count; i++) {
        const rnl_tensor_desc *input = &request->inputs[i];
        const uint32_t head[3] = {(uint32_t)input->dtype, (uint32_t)input->rank, input->host != NULL};
        rnl_text_add_bytes(key, (const char *)head, sizeof head);
        rnl_text_add_bytes(key, (const char *)input->shape, input->rank * sizeof *input->shape);
        if (input->host)
            rnl_text_add_bytes(key, input->host, (size_t)rnl_desc_elements(input) * rnl_dtype_bytes(input->dtype));
    }
}

rnl_status rnl_model_get_plan(rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan)
{
    rnl_text key = {0};
    rnl_status status = RNL_OK;
    *out_plan = NULL;
    add_key(&key, model, request);
    GOTO(key.status);
    plan_work work = {model, request};
    GOTO(rnl_plan_cache_get(&model->root->plans, key.data, key.length, build_plan, &work, out_plan));
done:
    rnl_text_free(&key);
    return status;
}

rnl_status rnl_model_get_first_plan(rnl_model *model, const rnl_tensor_desc *inputs, rnl_plan **out_plan)
{
    const rnl_graph *graph = model->graph;
    const rnl_plan_request request = {0, graph->input_values, inputs, graph->input_count};
    return rnl_model_get_plan(model, &request, out_plan);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static bool has_fixed_shapes(const rnl_model *model)
{
    for (size_t i = 0; i < model->graph->input_count; i++) {
        const rnl_value_info *input = &model->graph->inputs[i];
        if (input->rank == SIZE_MAX || model->reads_contents[model->graph->input_values[i]])
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
    rnl_status status = rnl_model_get_first_plan(model, inputs, &plan);
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

/* What every graph has for itself. */
static rnl_status init_graph(rnl_model *model, const rnl_host_tensor *const *captured)
{
    TRY(rnl_constants_init(&model->constants, model->graph, captured));
    TRY(rnl_weights_init(&model->weights, model->device, model->graph, model->constants.tensors,
                         model->root->options.weight_budget_bytes > 0));
    return rnl_model_find_reads(model);
}

static rnl_status create_model(rnl_graph *graph, rnl_device *device, rnl_model **out_model)
{
    rnl_model *model = NULL;
    TRY(rnl_alloc(1, sizeof *model, &model));
    atomic_init(&model->references, 1);
    model->graph = rnl_graph_retain(graph);
    model->device = rnl_device_retain(device);
    model->root = model;
    *out_model = model;
    return RNL_OK;
}

static rnl_status open_inner_models(rnl_model *model);

static rnl_status open_inner(rnl_model *outer, const rnl_node *node, rnl_graph *graph)
{
    const uint32_t own = (uint32_t)graph->input_count - graph->capture_count;
    const rnl_host_tensor **captured = NULL;
    rnl_model *model = NULL;
    rnl_status status = RNL_OK;
    GOTO(create_model(graph, outer->device, &model));
    outer->inner[outer->inner_count++] = model; /* which releases it */
    model->root = outer->root;
    GOTO(rnl_alloc(graph->value_count, sizeof *captured, &captured));
    for (uint32_t i = 0; i < graph->capture_count; i++)
        captured[graph->input_values[own + i]] = outer->constants.tensors[node->inputs[graph->first_capture + i]];
    GOTO(init_graph(model, captured));
    GOTO(open_inner_models(model));
done:
    rnl_free(captured);
    return status;
}

/* In the order of the nodes that have them. */
static rnl_status open_inner_models(rnl_model *model)
{
    const rnl_graph *graph = model->graph;
    TRY(rnl_alloc(graph->subgraph_count, sizeof *model->inner, &model->inner));
    for (size_t i = 0; i < graph->node_count; i++)
        for (size_t k = 0; k < graph->nodes[i].attribute_count; k++)
            if (graph->nodes[i].attributes[k].type == RNL_ATTRIBUTE_GRAPH)
                TRY(open_inner(model, &graph->nodes[i], graph->nodes[i].attributes[k].graph));
    return RNL_OK;
}

rnl_model *rnl_model_inner(const rnl_model *model, const rnl_graph *graph)
{
    for (size_t i = 0; i < model->inner_count; i++)
        if (model->inner[i]->graph == graph)
            return model->inner[i];
    return NULL;
}

/* What was asked for, where the device can. */
static rnl_status choose_precision(rnl_model *model)
{
    if ((unsigned)model->options.precision > RNL_PRECISION_BF16)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_open: no precision has number %d", (int)model->options.precision);
    if (model->options.precision != RNL_PRECISION_BF16)
        return RNL_OK;
    const bool runs = !rnl_fuse_is_off() && rnl_device_runs(model->device, RNL_INSTRUCTION_BF16);
    model->multiplies_bf16 = runs && rnl_device_gains_by_bf16(model->device);
    if (!model->multiplies_bf16)
        rnl_log(RNL_LOG_WARNING, "bfloat16 was asked for, but %s %s: this model runs in float32",
                rnl_device_get_info(model->device)->name,
                runs ? "multiplies it no faster than float32" : "cannot multiply it in kernels");
    return RNL_OK;
}

static rnl_status init_model(rnl_model *model, const rnl_model_options *options, bool is_dry)
{
    if (options) {
        size_t known = options->struct_size < sizeof *options ? options->struct_size : sizeof *options;
        memcpy(&model->options, options, known);
    }
    TRY(choose_precision(model));
    model->nan_mode = rnl_nan_wanted();
    model->is_deterministic = model->options.deterministic || rnl_switch_is_on("RUNNEL_DETERMINISTIC");
    size_t limit = model->options.plan_cache_bytes ? model->options.plan_cache_bytes : PLAN_CACHE_BYTES;
    if (pthread_mutex_init(&model->progress_lock, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the model");
    model->has_lock = true;
    TRY(rnl_plan_cache_init(&model->plans, limit));
    model->has_cache = true;
    TRY(init_graph(model, NULL));
    TRY(open_inner_models(model));
    model->weights.is_dry = is_dry;
    return has_fixed_shapes(model) && !is_dry ? plan_fixed_shapes(model) : RNL_OK;
}

static rnl_status open_model(rnl_graph *graph, rnl_device *device, const rnl_model_options *options, bool is_dry,
                             rnl_model **out_model)
{
    rnl_model *model = NULL;
    rnl_graph *own = NULL;
    rnl_status status = RNL_OK;
    TRY(check_graph(graph));
    if (!rnl_fuse_is_off())
        TRY(rnl_graph_with_integers(graph, &own));
    GOTO(create_model(own ? own : graph, device, &model));
    GOTO(init_model(model, options, is_dry));
    *out_model = model;
    model = NULL;
done:
    rnl_graph_release(own);
    rnl_model_release(model);
    return status;
}

rnl_status rnl_model_open(rnl_graph *graph, rnl_device *device, const rnl_model_options *options, rnl_model **out_model)
{
    if (!out_model)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_open: out_model is NULL");
    *out_model = NULL;
    if (!graph || !device)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_open: %s is NULL", graph ? "device" : "graph");
    return open_model(graph, device, options, false, out_model);
}

rnl_status rnl_model_open_dry(rnl_graph *graph, rnl_device *device, const rnl_model_options *options,
                              rnl_model **out_model)
{
    *out_model = NULL;
    return open_model(graph, device, options, true, out_model);
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
    GOTO(rnl_model_get_first_plan(model, descs, &plan));
done:
    rnl_plan_release(plan);
    rnl_free(order);
    rnl_free(descs);
    return status;
}

static size_t count_weight_bytes(rnl_model *model)
{
    pthread_mutex_lock(&model->weights.lock);
    size_t bytes = model->weights.size_bytes;
    pthread_mutex_unlock(&model->weights.lock);
    for (size_t i = 0; i < model->inner_count; i++)
        bytes += count_weight_bytes(model->inner[i]);
    return bytes;
}

uint64_t rnl_model_plans_built(rnl_model *model)
{
    pthread_mutex_lock(&model->plans.lock);
    const uint64_t built = model->plans.plans_built;
    pthread_mutex_unlock(&model->plans.lock);
    return built;
}

void rnl_model_get_stats(rnl_model *model, rnl_model_stats *out_stats)
{
    *out_stats = (rnl_model_stats){.weight_bytes = count_weight_bytes(model)};
    pthread_mutex_lock(&model->plans.lock);
    out_stats->plan_count = model->plans.count;
    out_stats->plan_bytes = model->plans.size_bytes;
    out_stats->plans_built = model->plans.plans_built;
    out_stats->plans_evicted = model->plans.plans_evicted;
    out_stats->last_plan_ns = model->plans.last_plan_ns;
    out_stats->program_count = model->plans.program_count;
    pthread_mutex_unlock(&model->plans.lock);
}
