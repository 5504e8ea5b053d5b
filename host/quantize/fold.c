/* SPDX-License-Identifier: Apache-2.0 */
/* What is affine for each channel behind a convolution goes into its weights, so that nothing but them is rounded. */
#include "quantize/edit.h"

#include "graph/op.h"
#include <math.h>
#include <string.h>

/* y = x * factor + shift, for each channel. */
typedef struct affine {
    double *factor, *shift;
} affine;

static bool has_channels(const rnl_host_tensor *tensor, int64_t channels)
{
    return tensor && tensor->rank == 1 && tensor->shape[0] == channels;
}

static bool read_normalization(const rnl_quantizer *q, const rnl_edit_node *node, int64_t channels, affine *out)
{
    const rnl_host_tensor *parts[5] = {NULL};
    if (!rnl_edit_is(node, "BatchNormalization") || !node->typed || rnl_node_int(node->typed, "training_mode", 0) ||
        node->output_count != 1)
        return false;
    for (uint32_t i = 1; i < 5; i++)
        if (!has_channels(parts[i] = rnl_edit_floats(q, node, i), channels))
            return false;
    const double epsilon = (double)rnl_node_float(node->typed, "epsilon", 1e-5f);
    for (int64_t i = 0; i < channels; i++) {
        const double factor = (double)rnl_edit_float(parts[1], i) / sqrt((double)rnl_edit_float(parts[4], i) + epsilon);
        out->factor[i] = factor;
        out->shift[i] = (double)rnl_edit_float(parts[2], i) - (double)rnl_edit_float(parts[3], i) * factor;
    }
    return true;
}

/* One number, or one for each channel of a tensor of `rank` dimensions, by the rules of broadcasting. */
static bool is_per_channel(const rnl_host_tensor *tensor, size_t rank, int64_t channels)
{
    if (!tensor || tensor->rank > rank)
        return false;
    const int64_t elements = rnl_edit_elements(tensor);
    return elements == 1 ||
           (elements == channels && tensor->rank >= rank - 1 && tensor->shape[tensor->rank - (rank - 1)] == channels);
}

/* Mul, Add, and Sub and Div by a constant. */
static bool read_arithmetic(const rnl_quantizer *q, const rnl_edit_node *node, uint32_t from,
                            const rnl_edit_layer *layer, affine *out)
{
    const bool product = rnl_edit_is(node, "Mul"), quotient = rnl_edit_is(node, "Div");
    const bool sum = rnl_edit_is(node, "Add"), difference = rnl_edit_is(node, "Sub");
    if (node->input_count != 2 || !(product || quotient || sum || difference))
        return false;
    const uint32_t other = node->inputs[0] == from ? 1 : 0;
    const rnl_host_tensor *tensor = rnl_edit_floats(q, node, other);
    if (!is_per_channel(tensor, layer->weight.rank, layer->channels) || ((quotient || difference) && other == 0))
        return false;
    const bool single = rnl_edit_elements(tensor) == 1;
    for (int64_t i = 0; i < layer->channels; i++) {
        const double number = (double)rnl_edit_float(tensor, single ? 0 : i);
        out->factor[i] = product ? number : quotient ? 1 / number : 1;
        out->shift[i] = sum ? number : difference ? -number : 0;
    }
    return true;
}

/* False, and nothing changed, where a number would not be finite any more. */
static rnl_status apply(rnl_quantizer *q, rnl_edit_layer *layer, const affine *a, bool *out_done)
{
    const int64_t elements = rnl_edit_elements(&layer->weight), rows = elements / layer->channels;
    float *weight, *bias;
    *out_done = true;
    TRY(rnl_zone_alloc(&q->zone, (size_t)elements, sizeof *weight, &weight));
    TRY(rnl_zone_alloc(&q->zone, (size_t)layer->channels, sizeof *bias, &bias));
    for (int64_t i = 0; i < layer->channels; i++) {
        bias[i] = (float)((layer->bias ? (double)layer->bias[i] : 0) * a->factor[i] + a->shift[i]);
        *out_done = *out_done && isfinite(bias[i]);
        for (int64_t j = 0; j < rows; j++) {
            const float number = (float)((double)rnl_edit_float(&layer->weight, i * rows + j) * a->factor[i]);
            weight[i * rows + j] = number;
            *out_done = *out_done && isfinite(number);
        }
    }
    if (!*out_done)
        return RNL_OK;
    layer->weight.data = weight;
    layer->bias = bias;
    layer->is_folded = true;
    return RNL_OK;
}

rnl_status rnl_edit_fold(rnl_quantizer *q, rnl_edit_layer *layer)
{
    rnl_edit_node *conv = &q->nodes[layer->node];
    affine a;
    bool done = true;
    TRY(rnl_zone_alloc(&q->zone, (size_t)layer->channels, sizeof *a.factor, &a.factor));
    TRY(rnl_zone_alloc(&q->zone, (size_t)layer->channels, sizeof *a.shift, &a.shift));
    while (done) {
        rnl_edit_node *next = rnl_edit_only_reader(q, conv->outputs[0]);
        if (!next || next->output_count == 0 || next->outputs[0] == RNL_NO_VALUE ||
            !(read_normalization(q, next, layer->channels, &a) ||
              read_arithmetic(q, next, conv->outputs[0], layer, &a)))
            return RNL_OK;
        TRY(apply(q, layer, &a, &done));
        if (!done)
            return RNL_OK;
        for (uint32_t i = 0; i < next->input_count; i++)
            if (next->inputs[i] != RNL_NO_VALUE)
                q->values[next->inputs[i]].readers--;
        q->values[conv->outputs[0]].producer = RNL_NO_NODE;
        conv->outputs[0] = next->outputs[0];
        q->values[conv->outputs[0]].producer = layer->node;
        next->is_gone = true;
    }
    return RNL_OK;
}
