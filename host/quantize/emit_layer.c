/* SPDX-License-Identifier: Apache-2.0 */
/* A layer's weights: signed 8-bit integers, symmetric, with a scale for each output channel; the bias in 32 bits. */
#include "quantize/edit.h"

#include "base/memory.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define MOST_WEIGHT 127
#define MOST_BIAS 2147483520.0 /* the greatest float below 2^31 */

typedef struct quantities {
    int8_t *weight, *weight_zero;
    int32_t *bias, *bias_zero;
    float *weight_scale, *bias_scale;
} quantities;

static int64_t at(const rnl_edit_layer *layer, int64_t outer, int64_t channel, int64_t i)
{
    return (outer * layer->channels + channel) * layer->inner + i;
}

static float largest(const rnl_edit_layer *layer, int64_t outer_count, int64_t channel)
{
    float most = 0;
    for (int64_t o = 0; o < outer_count; o++)
        for (int64_t i = 0; i < layer->inner; i++) {
            const float size = fabsf(rnl_edit_float(&layer->weight, at(layer, o, channel, i)));
            most = size > most ? size : most;
        }
    return most;
}

/* So large that the bias fits its integer, too. */
static float scale_for(float most, float x_scale, float bias)
{
    const float scale = most / MOST_WEIGHT, least = (float)((double)fabsf(bias) / ((double)x_scale * MOST_BIAS));
    const float larger = scale > least ? scale : nextafterf(least, INFINITY);
    return larger * x_scale >= FLT_MIN && larger >= FLT_MIN ? larger : fmaxf(FLT_MIN, FLT_MIN / x_scale) * 2;
}

static void quantise_channel(const rnl_edit_layer *layer, int64_t outer_count, int64_t channel, float x_scale,
                             quantities *out)
{
    const float bias = layer->bias ? layer->bias[channel] : 0;
    const float scale = scale_for(largest(layer, outer_count, channel), x_scale, bias);
    out->weight_scale[channel] = scale;
    for (int64_t o = 0; o < outer_count; o++)
        for (int64_t i = 0; i < layer->inner; i++) {
            const int64_t index = at(layer, o, channel, i);
            out->weight[index] = (int8_t)rintf(rnl_edit_float(&layer->weight, index) / scale);
        }
    out->bias_scale[channel] = x_scale * scale;
    const double units = rint((double)bias / (double)out->bias_scale[channel]);
    out->bias[channel] = (int32_t)(units > MOST_BIAS ? MOST_BIAS : units < -MOST_BIAS ? -MOST_BIAS : units);
}

static void free_quantities(quantities *m)
{
    rnl_free(m->weight);
    rnl_free(m->weight_zero);
    rnl_free(m->bias);
    rnl_free(m->bias_zero);
    rnl_free(m->weight_scale);
    rnl_free(m->bias_scale);
}

static rnl_status quantise(const rnl_edit_layer *layer, float x_scale, quantities *out)
{
    const int64_t elements = rnl_edit_elements(&layer->weight);
    const size_t channels = (size_t)layer->channels;
    TRY(rnl_alloc((size_t)elements, 1, &out->weight));
    TRY(rnl_alloc(channels, 1, &out->weight_zero));
    TRY(rnl_alloc(channels, sizeof *out->bias, &out->bias));
    TRY(rnl_alloc(channels, sizeof *out->bias_zero, &out->bias_zero));
    TRY(rnl_alloc(channels, sizeof *out->weight_scale, &out->weight_scale));
    TRY(rnl_alloc(channels, sizeof *out->bias_scale, &out->bias_scale));
    for (int64_t i = 0; i < layer->channels; i++)
        quantise_channel(layer, elements / layer->channels / layer->inner, i, x_scale, out);
    return RNL_OK;
}

/* ---- as parts of the graph ------------------------------------------------------------------------------------- */

static const char *name_of(const rnl_quantizer *q, const rnl_edit_layer *layer, const char *kind, rnl_text *room)
{
    room->length = 0;
    rnl_edit_name(q, q->nodes[layer->node].outputs[0], kind, room);
    return room->data ? room->data : "";
}

/* "_weight", its scale and zero point, and what dequantises it. */
static void add_quantity(const rnl_quantizer *q, const rnl_edit_layer *layer, const char *kind,
                         const rnl_host_tensor *values, const float *scale, const void *zero, int64_t axis,
                         rnl_text *nodes, rnl_text *tensors, rnl_text *inputs)
{
    rnl_text base = {0}, names[3] = {{0}, {0}, {0}};
    static const char *const kinds[3] = {"_scale", "_zero", "_float"};
    const char *name = name_of(q, layer, kind, &base);
    for (int i = 0; i < 3; i++) {
        rnl_text_add(&names[i], "%s%s", name, kinds[i]);
        inputs->status = inputs->status == RNL_OK ? names[i].status : inputs->status;
    }
    inputs->status = inputs->status == RNL_OK ? base.status : inputs->status;
    if (inputs->status == RNL_OK) {
        const size_t channels = (size_t)layer->channels;
        rnl_edit_tensor(tensors, name, values->dtype, values->shape, values->rank, values->data, values->size_bytes);
        rnl_edit_tensor(tensors, names[0].data, RNL_F32, &layer->channels, 1, scale, channels * sizeof *scale);
        rnl_edit_tensor(tensors, names[1].data, values->dtype, &layer->channels, 1, zero,
                        channels * rnl_dtype_bytes(values->dtype));
        rnl_edit_linear(nodes, "DequantizeLinear", name, names[0].data, names[1].data, names[2].data, axis);
        rnl_wire_text(inputs, RNL_PB_NODE_INPUT, names[2].data);
    }
    rnl_text_free(&base);
    for (int i = 0; i < 3; i++)
        rnl_text_free(&names[i]);
}

static rnl_status add_integers(const rnl_quantizer *q, const rnl_edit_layer *layer, rnl_text *nodes, rnl_text *tensors,
                               rnl_text *inputs)
{
    rnl_edit_scale x;
    quantities m = {0};
    rnl_status status = RNL_OK;
    const size_t elements = (size_t)rnl_edit_elements(&layer->weight), channels = (size_t)layer->channels;
    GOTO(rnl_edit_scale_of(q, q->nodes[layer->node].inputs[0], &x));
    GOTO(quantise(layer, x.scale, &m));
    rnl_host_tensor weight = layer->weight;
    weight.dtype = RNL_I8;
    weight.data = m.weight;
    weight.size_bytes = elements;
    add_quantity(q, layer, "_weight", &weight, m.weight_scale, m.weight_zero, layer->axis, nodes, tensors, inputs);
    if (layer->bias) {
        const rnl_host_tensor bias = {.dtype = RNL_I32,
                                      .rank = 1,
                                      .shape = {layer->channels},
                                      .data = m.bias,
                                      .size_bytes = channels * sizeof *m.bias};
        add_quantity(q, layer, "_bias", &bias, m.bias_scale, m.bias_zero, 0, nodes, tensors, inputs);
    }
done:
    free_quantities(&m);
    return status;
}

static rnl_status add_floats(const rnl_quantizer *q, const rnl_edit_layer *layer, rnl_text *tensors, rnl_text *inputs)
{
    rnl_text name = {0};
    const size_t elements = (size_t)rnl_edit_elements(&layer->weight), channels = (size_t)layer->channels;
    rnl_edit_tensor(tensors, name_of(q, layer, "_weight", &name), RNL_F32, layer->weight.shape, layer->weight.rank,
                    layer->weight.data, elements * sizeof(float));
    rnl_wire_text(inputs, RNL_PB_NODE_INPUT, name.data ? name.data : "");
    if (layer->bias) {
        rnl_edit_tensor(tensors, name_of(q, layer, "_bias", &name), RNL_F32, &layer->channels, 1, layer->bias,
                        channels * sizeof(float));
        rnl_wire_text(inputs, RNL_PB_NODE_INPUT, name.data ? name.data : "");
    }
    const rnl_status status = name.status;
    rnl_text_free(&name);
    return status;
}

rnl_status rnl_edit_layer_weights(const rnl_quantizer *q, const rnl_edit_layer *layer, rnl_text *nodes,
                                  rnl_text *tensors, rnl_text *inputs)
{
    return layer->is_active ? add_integers(q, layer, nodes, tensors, inputs) : add_floats(q, layer, tensors, inputs);
}
