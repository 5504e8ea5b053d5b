/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are convolutions and products that integers can do. */
#include "quantize/edit.h"

#include "base/memory.h"
#include "graph/op.h"
#include <math.h>
#include <string.h>

uint32_t rnl_edit_end(const rnl_quantizer *q, uint32_t value)
{
    const rnl_edit_node *node = rnl_edit_only_reader(q, value);
    if (!node || !(rnl_edit_is(node, "Relu") || rnl_edit_is(node, "Clip")) || node->inputs[0] != value ||
        node->output_count != 1)
        return value;
    return node->outputs[0];
}

static bool all_finite(const rnl_host_tensor *tensor)
{
    const int64_t elements = rnl_edit_elements(tensor);
    for (int64_t i = 0; i < elements; i++)
        if (!isfinite(rnl_edit_float(tensor, i)))
            return false;
    return elements > 0;
}

/* The bias of a convolution or product: absent, or one number a channel. */
static rnl_status take_bias(rnl_quantizer *q, const rnl_edit_node *node, rnl_edit_layer *layer, bool *out_taken)
{
    float *bias;
    *out_taken = node->input_count < 3 || node->inputs[2] == RNL_NO_VALUE;
    if (*out_taken)
        return RNL_OK;
    const rnl_host_tensor *tensor = rnl_edit_floats(q, node, 2);
    if (!tensor || tensor->rank > 2 || (tensor->rank == 2 && tensor->shape[0] != 1) || !all_finite(tensor) ||
        (rnl_edit_elements(tensor) != layer->channels && rnl_edit_elements(tensor) != 1))
        return RNL_OK;
    TRY(rnl_zone_alloc(&q->zone, (size_t)layer->channels, sizeof *bias, &bias));
    for (int64_t i = 0; i < layer->channels; i++)
        bias[i] = rnl_edit_float(tensor, rnl_edit_elements(tensor) == 1 ? 0 : i);
    layer->bias = bias;
    *out_taken = true;
    return RNL_OK;
}

/* The dimension of the output channels, or -1 where the node is none of these. */
static int64_t channel_axis(const rnl_edit_node *node, size_t rank)
{
    if (!node->typed)
        return -1;
    if (rnl_edit_is(node, "Conv"))
        return rank >= 3 ? 0 : -1;
    if (rnl_edit_is(node, "MatMul"))
        return rank == 2 ? 1 : -1;
    if (!rnl_edit_is(node, "Gemm") || rank != 2 || rnl_node_int(node->typed, "transA", 0) ||
        rnl_node_float(node->typed, "alpha", 1) != 1 || rnl_node_float(node->typed, "beta", 1) != 1)
        return -1;
    return rnl_node_int(node->typed, "transB", 0) ? 0 : 1;
}

static rnl_status take_layer(rnl_quantizer *q, uint32_t index, rnl_edit_layer *out, bool *out_taken)
{
    const rnl_edit_node *node = &q->nodes[index];
    *out_taken = false;
    if (node->is_gone || node->input_count < 2 || node->output_count != 1 || node->outputs[0] == RNL_NO_VALUE ||
        node->inputs[0] == RNL_NO_VALUE)
        return RNL_OK;
    const rnl_edit_value *x = &q->values[node->inputs[0]];
    const rnl_host_tensor *weight = rnl_edit_floats(q, node, 1);
    const int64_t axis = weight ? channel_axis(node, weight->rank) : -1;
    if (axis < 0 || x->constant || !x->is_known || !q->values[node->outputs[0]].is_known || !all_finite(weight))
        return RNL_OK;
    *out =
        (rnl_edit_layer){.node = index, .axis = axis, .weight = *weight, .channels = weight->shape[axis], .inner = 1};
    for (size_t i = (size_t)axis + 1; i < weight->rank; i++)
        out->inner *= weight->shape[i];
    return take_bias(q, node, out, out_taken);
}

static rnl_status describe(rnl_quantizer *q)
{
    TRY(rnl_zone_alloc(&q->zone, q->layer_count, sizeof *q->infos, &q->infos));
    for (size_t i = 0; i < q->layer_count; i++) {
        rnl_edit_layer *layer = &q->layers[i];
        rnl_edit_node *node = &q->nodes[layer->node];
        node->layer = (uint32_t)i;
        layer->end = rnl_edit_end(q, node->outputs[0]);
        q->infos[i] = (rnl_quantizer_layer){.name = node->name[0] ? node->name : q->values[node->outputs[0]].name,
                                            .op_type = node->op_type};
    }
    return RNL_OK;
}

rnl_status rnl_edit_find_layers(rnl_quantizer *q)
{
    bool taken;
    TRY(rnl_zone_alloc(&q->zone, q->node_count, sizeof *q->layers, &q->layers));
    for (uint32_t i = 0; i < q->node_count; i++) {
        rnl_edit_layer *layer = &q->layers[q->layer_count];
        TRY(take_layer(q, i, layer, &taken));
        if (!taken)
            continue;
        q->layer_count++;
        if (rnl_edit_is(&q->nodes[i], "Conv"))
            TRY(rnl_edit_fold(q, layer));
    }
    if (q->layer_count == 0)
        return FAIL(RNL_FAILED_PRECONDITION,
                    "%s has no layer that can be quantised: no Conv, Gemm or MatMul with constant float32 weights",
                    q->path);
    return describe(q);
}
