/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values become integers: what the layers read, what convolutions compute, and what follows from those alone and
 * is read as integers again (a residual sum, a pool, a join). A product's result stays float32 unless it is read so.
 * What makes a value in integers says how all others see it; beside what is computed in float32, others read that.
 */
#include "quantize/edit.h"

#include <string.h>

#define MOST_JOINED 64 /* inputs of a Concat */

typedef enum follower { NONE, MOVES, SCALES } follower;

static bool is_one_of(const rnl_edit_node *node, const char *const *names)
{
    for (; *names; names++)
        if (rnl_edit_is(node, *names))
            return true;
    return false;
}

/* Moves values and makes none; or computes others, which have a scale of their own. */
static follower follower_of(const rnl_edit_node *node)
{
    static const char *const moves[] = {"MaxPool",   "Reshape", "Transpose",    "Flatten",      "Squeeze",
                                        "Unsqueeze", "Slice",   "DepthToSpace", "SpaceToDepth", NULL};
    static const char *const one[] = {"GlobalAveragePool", "AveragePool", "Sigmoid", "LeakyRelu", NULL};
    static const char *const two[] = {"Add", "Sum", "Mul", NULL};
    if (node->is_gone || !node->typed || node->output_count != 1 || node->outputs[0] == RNL_NO_VALUE ||
        node->input_count == 0)
        return NONE;
    if (is_one_of(node, moves))
        return MOVES;
    if (is_one_of(node, one) || (is_one_of(node, two) && node->input_count == 2))
        return SCALES;
    return rnl_edit_is(node, "Concat") && node->input_count <= MOST_JOINED ? SCALES : NONE;
}

/* Inputs that are data, not shapes. */
static uint32_t data_inputs(const rnl_edit_node *node)
{
    return follower_of(node) == MOVES ? 1 : node->input_count;
}

static uint32_t end_of(const rnl_quantizer *q, const rnl_edit_node *node)
{
    return follower_of(node) == MOVES ? node->outputs[0] : rnl_edit_end(q, node->outputs[0]);
}

static bool reads_integers(const rnl_quantizer *q, const rnl_edit_node *node, const uint8_t *there)
{
    for (uint32_t i = 0; i < data_inputs(node); i++)
        if (node->inputs[i] == RNL_NO_VALUE || !there[node->inputs[i]])
            return false;
    return q->values[node->outputs[0]].is_known;
}

/* ---- the layers ------------------------------------------------------------------------------------------------ */

/* `there`: values that layers read or convolutions make, in integers. */
static void mark_layers(rnl_quantizer *q, size_t only, uint8_t *there)
{
    for (size_t i = 0; i < q->layer_count; i++) {
        rnl_edit_layer *layer = &q->layers[i];
        const rnl_edit_node *node = &q->nodes[layer->node];
        layer->is_active = only == RNL_QUANTIZER_ALL ? !q->infos[i].is_kept : only == i;
        if (!layer->is_active)
            continue;
        there[node->inputs[0]] = 1;
        if (rnl_edit_is(node, "Conv")) {
            there[layer->end] = 1;
            q->values[layer->end].is_integer = true;
        }
    }
}

/* ---- what follows ---------------------------------------------------------------------------------------------- */

/* Nodes that could compute on integers, for all that they read. */
static void add_followers(rnl_quantizer *q, uint8_t *there)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < q->node_count; i++) {
            rnl_edit_node *node = &q->nodes[i];
            if (node->is_follower || follower_of(node) == NONE || !reads_integers(q, node, there))
                continue;
            node->is_follower = changed = true;
            there[end_of(q, node)] = 1;
        }
    }
}

/* Marks what a layer or a follower reads as integers. */
static void mark_read(const rnl_quantizer *q, uint8_t *is_read)
{
    memset(is_read, 0, q->value_count);
    for (size_t i = 0; i < q->node_count; i++) {
        const rnl_edit_node *node = &q->nodes[i];
        const bool layer = node->layer != RNL_NO_LAYER && q->layers[node->layer].is_active;
        const uint32_t count = layer ? 1 : node->is_follower ? data_inputs(node) : 0;
        for (uint32_t j = 0; j < count; j++)
            is_read[node->inputs[j]] = 1;
    }
}

/* Leaves those out again whose results nobody wants in integers, and those that would read such. */
static void drop_followers(rnl_quantizer *q, const uint8_t *of_layers, uint8_t *there, uint8_t *is_read)
{
    for (bool changed = true; changed;) {
        changed = false;
        memcpy(there, of_layers, q->value_count);
        for (size_t i = 0; i < q->node_count; i++)
            if (q->nodes[i].is_follower)
                there[end_of(q, &q->nodes[i])] = 1;
        mark_read(q, is_read);
        for (size_t i = 0; i < q->node_count; i++) {
            rnl_edit_node *node = &q->nodes[i];
            if (node->is_follower && !(is_read[end_of(q, node)] && reads_integers(q, node, there))) {
                node->is_follower = false;
                changed = true;
            }
        }
    }
}

static void settle(rnl_quantizer *q, const uint8_t *there)
{
    for (size_t i = 0; i < q->value_count; i++)
        q->values[i].is_quantised = there[i];
    for (size_t i = 0; i < q->node_count; i++) {
        const rnl_edit_node *node = &q->nodes[i];
        if (!node->is_follower)
            continue;
        q->values[end_of(q, node)].is_integer = true;
        if (follower_of(node) == MOVES)
            q->values[node->outputs[0]].same_as = node->inputs[0];
    }
}

void rnl_edit_plan(rnl_quantizer *q, size_t only)
{
    uint8_t *of_layers = q->marks, *there = of_layers + q->value_count, *is_read = there + q->value_count;
    memset(q->marks, 0, 3 * q->value_count);
    for (size_t i = 0; i < q->value_count; i++) {
        q->values[i].is_quantised = q->values[i].is_integer = false;
        q->values[i].same_as = RNL_NO_VALUE;
    }
    for (size_t i = 0; i < q->node_count; i++)
        q->nodes[i].is_follower = false;
    mark_layers(q, only, of_layers);
    memcpy(there, of_layers, q->value_count);
    add_followers(q, there);
    drop_followers(q, of_layers, there, is_read);
    settle(q, there);
}

bool rnl_edit_reads_quantised(const rnl_quantizer *q, const rnl_edit_node *reader, uint32_t input)
{
    const rnl_edit_value *value = &q->values[reader->inputs[input]];
    if (!value->is_quantised || value->is_integer)
        return value->is_quantised;
    if (reader->layer != RNL_NO_LAYER)
        return input == 0 && q->layers[reader->layer].is_active;
    return reader->is_follower && input < data_inputs(reader);
}
