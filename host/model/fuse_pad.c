/* SPDX-License-Identifier: Apache-2.0 */
/* Pad of zeros before windows that have padding of their own. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/evaluate.h"
#include "model/fuse_grow.h"
#include <string.h>

static bool is(const rnl_node *node, const char *op_type)
{
    return rnl_node_is(node, op_type);
}

/* The window counts zeros around its source as it counts the source. */
static bool takes_zeros(const rnl_node *node, uint32_t value)
{
    size_t count;
    if (is(node, "Conv"))
        return node->inputs[0] == value && node->inputs[1] != value;
    if (!is(node, "AveragePool"))
        return false;
    const int64_t *pads = rnl_node_ints(node, "pads", &count);
    bool padded = strcmp(rnl_node_string(node, "auto_pad", "NOTSET"), "NOTSET") != 0;
    for (size_t i = 0; i < count; i++)
        padded = padded || pads[i] != 0;
    return !padded || rnl_node_int(node, "count_include_pad", 0) != 0;
}

static bool pads_with_zero(const rnl_planner *planner, const rnl_node *node)
{
    if (node->input_count < 3 || node->inputs[2] == RNL_NO_VALUE)
        return rnl_node_float(node, "value", 0) == 0;
    const rnl_tensor_desc *value = &planner->values[node->inputs[2]].desc;
    return value->host && rnl_desc_elements(value) == 1 &&
           rnl_number_double(rnl_element_load(value->host, 0, value->dtype), value->dtype) == 0;
}

static bool pads_pixels(const rnl_pad *pad, size_t rank)
{
    bool pixels = pad->mode == 0 && rank >= 3;
    for (size_t i = 0; i < rank; i++)
        pixels = pixels && pad->begin[i] >= 0 && pad->end[i] >= 0 && (i > 1 || pad->begin[i] + pad->end[i] == 0);
    return pixels;
}

static rnl_status absorb(rnl_planner *planner, const rnl_readers *readers, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    uint32_t value = node->outputs[0], first = readers->starts[value], end = readers->starts[value + 1];
    rnl_op_context context;
    rnl_pad *pad = NULL;
    if (!pads_with_zero(planner, node) || readers->counts[value] != end - first) /* an output counts too */
        return RNL_OK;
    for (uint32_t i = first; i < end; i++)
        if (!takes_zeros(&planner->graph->nodes[readers->nodes[i]], value))
            return RNL_OK;
    TRY(rnl_plan_context(planner, node, &context));
    TRY(rnl_zone_alloc(planner->zone, 1, sizeof *pad, &pad));
    TRY(rnl_pad_resolve(&context, pad));
    if (pads_pixels(pad, context.inputs[0].rank))
        planner->pads[index] = pad;
    return RNL_OK;
}

rnl_status rnl_fuse_pads(rnl_planner *planner, const rnl_readers *readers)
{
    for (uint32_t i = 0; i < planner->graph->node_count; i++)
        if (is(&planner->graph->nodes[i], "Pad") && rnl_fuse_runs(planner, i))
            TRY(absorb(planner, readers, i));
    return RNL_OK;
}

const rnl_pad *rnl_fuse_pad_of(const rnl_planner *planner, uint32_t value, uint32_t *out_source)
{
    uint32_t producer = planner->graph->values[value].producer;
    const rnl_pad *pad = producer == RNL_NO_NODE ? NULL : planner->pads[producer];
    *out_source = pad ? planner->graph->nodes[producer].inputs[0] : value;
    return pad;
}
