/* SPDX-License-Identifier: Apache-2.0 */
#include "model/late.h"

#include "base/memory.h"
#include "graph/custom.h"
#include <string.h>

rnl_late rnl_late_kind(const rnl_node *node)
{
    static const struct {
        const char *op_type;
        rnl_late kind;
    } kinds[] = {{"NonZero", RNL_LATE_HOST},
                 {"Compress", RNL_LATE_HOST},
                 {"Unique", RNL_LATE_HOST},
                 {"If", RNL_LATE_IF},
                 {"Loop", RNL_LATE_LOOP},
                 {"Scan", RNL_LATE_SCAN},
                 {"NonMaxSuppression", RNL_LATE_HOST}};
    if (node->schema && node->schema->custom)
        return node->schema->evaluate ? RNL_LATE_HOST : RNL_LATE_NOT;
    for (size_t i = 0; node->domain[0] == '\0' && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].op_type, node->op_type) == 0)
            return kinds[i].kind;
    return RNL_LATE_NOT;
}

/* ---- on the host ---------------------------------------------------------------------------------------------- */

static rnl_status read_input(rnl_frame *frame, const rnl_node *node, uint32_t index, rnl_tensor_desc *out_desc)
{
    rnl_cell *cell;
    TRY(rnl_frame_input(frame, node, index, &cell));
    if (!cell)
        return RNL_OK;
    TRY(rnl_cell_to_host(frame->session, cell));
    *out_desc = cell->desc;
    out_desc->host = cell->host;
    return RNL_OK;
}

static rnl_status make_outputs(rnl_op_context *context, rnl_cell **cells)
{
    for (size_t i = 0; i < context->output_count; i++) {
        const rnl_tensor_desc *desc = &context->outputs[i];
        if (desc->dtype == RNL_DTYPE_NONE)
            continue;
        TRY(rnl_cell_create(desc->dtype, desc->rank, desc->shape, &cells[i]));
        TRY(rnl_cell_alloc_host(cells[i]));
        context->results[i] = cells[i]->owned;
    }
    return RNL_OK;
}

static rnl_status run_on_host(rnl_frame *frame, const rnl_node *node)
{
    rnl_zone zone = {0};
    rnl_tensor_desc *inputs = NULL, *outputs = NULL;
    void **results = NULL;
    rnl_cell **cells = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_zone_alloc(&zone, node->input_count + 1u, sizeof *inputs, &inputs));
    GOTO(rnl_zone_alloc(&zone, node->output_count, sizeof *outputs, &outputs));
    GOTO(rnl_zone_alloc(&zone, node->output_count, sizeof *results, &results));
    GOTO(rnl_zone_alloc(&zone, node->output_count, sizeof *cells, &cells));
    for (uint32_t i = 0; i < node->input_count; i++)
        GOTO(read_input(frame, node, i, &inputs[i]));
    rnl_op_context context = {node, node->input_count, node->output_count, inputs, outputs, results};
    GOTO(node->schema->infer(&context));
    GOTO(rnl_custom_check_declared(frame->model->graph, &context));
    GOTO(make_outputs(&context, cells));
    GOTO(node->schema->evaluate(&context));
    for (uint32_t i = 0; i < node->output_count; i++)
        rnl_frame_give(frame, node, i, cells[i]);
done:
    for (uint32_t i = 0; cells && i < node->output_count; i++)
        rnl_cell_release(cells[i]);
    rnl_zone_free(&zone);
    return status;
}

rnl_status rnl_late_run(rnl_frame *frame, const rnl_node *node)
{
    switch (rnl_late_kind(node)) {
    case RNL_LATE_HOST:
        return run_on_host(frame, node);
    case RNL_LATE_IF:
        return rnl_run_if(frame, node);
    case RNL_LATE_LOOP:
        return rnl_run_loop(frame, node);
    case RNL_LATE_SCAN:
        return rnl_run_scan(frame, node);
    case RNL_LATE_NOT:
        break;
    }
    return FAIL(RNL_INTERNAL, "%s is planned, not run late", node->op_type);
}

/* ---- graphs of nodes ------------------------------------------------------------------------------------------ */

/* Constants are the inner model's too. */
static rnl_status pass_captures(rnl_frame *frame, const rnl_node *node, rnl_frame *inner)
{
    const rnl_graph *graph = inner->model->graph;
    const uint32_t own = (uint32_t)graph->input_count - graph->capture_count;
    for (uint32_t i = 0; i < graph->capture_count; i++) {
        uint32_t outer_value = node->inputs[graph->first_capture + i], value = graph->input_values[own + i];
        rnl_cell *cell;
        if (inner->model->constants.tensors[value])
            continue;
        TRY(rnl_frame_get(frame, outer_value, &cell));
        rnl_cell_set(&inner->cells[value], cell);
        inner->is_planned[value] = frame->is_planned[outer_value];
    }
    return RNL_OK;
}

/* Of the type and rank that the graph declares. */
static rnl_status pass_input(rnl_frame *inner, size_t index, rnl_cell *cell)
{
    const rnl_graph *graph = inner->model->graph;
    const rnl_value_info *info = &graph->inputs[index];
    if (info->dtype != RNL_DTYPE_NONE && info->dtype != cell->desc.dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' of its graph is %s, not %s", info->name,
                    rnl_dtype_name(info->dtype), rnl_dtype_name(cell->desc.dtype));
    if (!inner->model->constants.tensors[graph->input_values[index]])
        rnl_cell_set(&inner->cells[graph->input_values[index]], cell);
    return RNL_OK;
}

static rnl_status run_inner(rnl_frame *frame, const rnl_node *node, rnl_frame *inner, rnl_cell *const *inputs,
                            rnl_cell **outputs)
{
    const rnl_graph *graph = inner->model->graph;
    const size_t own = graph->input_count - graph->capture_count;
    for (size_t i = 0; i < own; i++)
        TRY(pass_input(inner, i, inputs[i]));
    TRY(pass_captures(frame, node, inner));
    TRY(rnl_frame_run(inner));
    for (size_t i = 0; i < graph->output_count; i++) {
        rnl_cell *cell;
        TRY(rnl_frame_get(inner, graph->output_values[i], &cell));
        outputs[i] = rnl_cell_retain(cell);
    }
    return RNL_OK;
}

rnl_status rnl_call_graph(rnl_frame *frame, const rnl_node *node, rnl_graph *graph, rnl_cell *const *inputs,
                          rnl_cell **outputs)
{
    rnl_model *model = rnl_model_inner(frame->model, graph);
    rnl_frame inner = {0};
    rnl_status status = RNL_OK;
    memset(outputs, 0, graph->output_count * sizeof *outputs);
    if (!model)
        return FAIL(RNL_INTERNAL, "no model for a graph of the node");
    GOTO(rnl_frame_init(&inner, frame->session, model));
    GOTO(run_inner(frame, node, &inner, inputs, outputs));
done:
    for (size_t i = 0; status != RNL_OK && i < graph->output_count; i++)
        rnl_cell_set(&outputs[i], NULL);
    rnl_frame_free(&inner);
    return status;
}
