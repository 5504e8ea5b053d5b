/* SPDX-License-Identifier: Apache-2.0 */
#include "model/constants.h"

#include "base/memory.h"
#include "model/evaluate.h"
#include <string.h>

/* Large tensors that are read and written, all nodes together. Small ones are always worth it. */
#define LARGE_BYTES ((size_t)128 << 20)

typedef struct folder {
    rnl_constants *constants;
    rnl_planner planner; /* for the nodes' contexts: only the graph, the values' descriptions and a zone */
    size_t left_bytes;
} folder;

static rnl_status keep(folder *f, uint32_t value, const rnl_tensor_desc *desc)
{
    rnl_host_tensor *tensor = NULL;
    TRY(rnl_zone_alloc(&f->constants->zone, 1, sizeof *tensor, &tensor));
    tensor->dtype = desc->dtype;
    tensor->rank = desc->rank;
    memcpy(tensor->shape, desc->shape, sizeof tensor->shape);
    tensor->data = desc->host;
    tensor->size_bytes = (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
    f->constants->tensors[value] = tensor;
    f->planner.values[value].desc = *desc;
    return RNL_OK;
}

static bool is_foldable(const folder *f, const rnl_node *node)
{
    bool known = node->schema && node->schema->evaluate && node->input_count > 0 && !node->refusal;
    for (uint32_t i = 0; i < node->input_count && known; i++)
        known = node->inputs[i] == RNL_NO_VALUE || f->constants->tensors[node->inputs[i]];
    return known;
}

typedef struct traffic {
    size_t bytes, elements;
    bool is_large; /* some tensor */
} traffic;

static bool add_tensor(const rnl_tensor_desc *desc, traffic *sum)
{
    int64_t elements = 0;
    size_t bytes = 0;
    if (desc->dtype == RNL_DTYPE_NONE)
        return true;
    if (!rnl_shape_elements(desc->shape, desc->rank, &elements) ||
        !rnl_size_mul((size_t)elements, rnl_dtype_bytes(desc->dtype), &bytes))
        return false;
    sum->is_large = sum->is_large || elements > RNL_HOST_MAX_ELEMENTS;
    return rnl_size_add(sum->bytes, bytes, &sum->bytes) &&
           rnl_size_add(sum->elements, (size_t)elements, &sum->elements);
}

/* Small, or within what is left; but what makes more of little is better repeated on the device. */
static bool is_worth(folder *f, const rnl_op_context *context)
{
    traffic read = {0}, written = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < context->input_count; i++)
        if (!add_tensor(&context->inputs[i], &read))
            return false;
    for (size_t i = 0; i < context->output_count; i++)
        if (!add_tensor(&context->outputs[i], &written))
            return false;
    if (!read.is_large && !written.is_large)
        return true;
    if (written.elements > read.elements || !rnl_size_add(read.bytes, written.bytes, &bytes) || bytes > f->left_bytes)
        return false;
    f->left_bytes -= bytes;
    return true;
}

static rnl_status evaluate(folder *f, rnl_op_context *context)
{
    const rnl_node *node = context->node;
    void **results = NULL;
    TRY(rnl_zone_alloc(f->planner.zone, context->output_count, sizeof *results, &results));
    for (size_t i = 0; i < context->output_count; i++) {
        const rnl_tensor_desc *output = &context->outputs[i];
        size_t bytes = (size_t)rnl_desc_elements(output) * rnl_dtype_bytes(output->dtype);
        TRY(rnl_zone_alloc(&f->constants->zone, bytes ? bytes : 1, 1, &results[i]));
    }
    context->results = results;
    TRY(node->schema->evaluate(context));
    for (uint32_t i = 0; i < node->output_count; i++) {
        context->outputs[i].host = results[i];
        if (node->outputs[i] != RNL_NO_VALUE)
            TRY(keep(f, node->outputs[i], &context->outputs[i]));
    }
    return RNL_OK;
}

/* What is wrong with a node is said when a plan meets it. */
static rnl_status fold_node(folder *f, const rnl_node *node)
{
    rnl_op_context context;
    TRY(rnl_plan_context(&f->planner, node, &context));
    rnl_status status = node->schema->infer(&context);
    if (status == RNL_OK && is_worth(f, &context))
        status = evaluate(f, &context);
    return status == RNL_RESOURCE_EXHAUSTED ? status : RNL_OK;
}

static bool is_read(const bool *read, const rnl_node *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->output_count && !any; i++)
        any = node->outputs[i] != RNL_NO_VALUE && read[node->outputs[i]];
    return any;
}

/* An edition leaves nodes behind that nobody reads, such as a quantised model's float32 weights. */
static rnl_status mark_read(folder *f, const rnl_graph *graph, bool **out_read)
{
    bool *read;
    TRY(rnl_zone_alloc(f->planner.zone, graph->value_count, sizeof *read, &read));
    for (size_t i = 0; i < graph->output_count; i++)
        read[graph->output_values[i]] = true;
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        for (uint32_t k = 0; k < node->input_count && is_read(read, node); k++)
            if (node->inputs[k] != RNL_NO_VALUE)
                read[node->inputs[k]] = true;
    }
    *out_read = read;
    return RNL_OK;
}

static rnl_status fold_graph(folder *f, const rnl_graph *graph, const rnl_host_tensor *const *captured)
{
    bool *read;
    rnl_constants *constants = f->constants;
    TRY(mark_read(f, graph, &read));
    TRY(rnl_zone_alloc(&constants->zone, graph->value_count, sizeof *constants->tensors, &constants->tensors));
    TRY(rnl_zone_alloc(f->planner.zone, graph->value_count, sizeof *f->planner.values, &f->planner.values));
    for (size_t i = 0; i < graph->value_count; i++) {
        const rnl_host_tensor *tensor = captured && captured[i] ? captured[i] : graph->values[i].constant;
        constants->tensors[i] = tensor;
        if (tensor)
            f->planner.values[i].desc = rnl_desc_of(tensor);
    }
    for (size_t i = 0; i < graph->node_count; i++)
        if (is_read(read, &graph->nodes[i]) && is_foldable(f, &graph->nodes[i]))
            TRY(fold_node(f, &graph->nodes[i]));
    return RNL_OK;
}

rnl_status rnl_constants_init(rnl_constants *constants, const rnl_graph *graph, const rnl_host_tensor *const *captured)
{
    rnl_zone zone = {0};
    folder f = {.constants = constants, .planner = {.graph = graph, .zone = &zone}, .left_bytes = LARGE_BYTES};
    *constants = (rnl_constants){0};
    rnl_status status = fold_graph(&f, graph, captured);
    rnl_zone_free(&zone);
    if (status != RNL_OK)
        rnl_constants_free(constants);
    return status;
}

void rnl_constants_free(rnl_constants *constants)
{
    rnl_zone_free(&constants->zone);
    constants->tensors = NULL;
}
