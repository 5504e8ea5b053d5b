/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention that is written out: MatMul, maybe Mul or Div by a number, maybe Add of a mask, Softmax, MatMul. Found from
 * its Softmax, on devices where it can be one step.
 */
#include "graph/op_common.h"
#include "model/attention.h"
#include "model/fuse_grow.h"
#include "ops/attention.h"
#include <stdlib.h>
#include <string.h>

/* What is found, from its last node back to its first. */
typedef struct match {
    const rnl_node *nodes[RNL_GROUP_MAX_NODES];
    size_t count;
    rnl_attention_nodes attention;
} match;

static const rnl_tensor_desc *describe(const rnl_finder *f, uint32_t value)
{
    return &f->planner->values[value].desc;
}

static bool same_shape(const rnl_tensor_desc *a, const rnl_tensor_desc *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* The node that multiplies or divides a value by a number before it is only read here: goes into `scale`. */
static bool take_scale(const rnl_finder *f, match *found, uint32_t *value)
{
    const rnl_node *product = rnl_finder_maker(f, *value, "Mul", 1), *quotient = rnl_finder_maker(f, *value, "Div", 1);
    const rnl_node *node = product ? product : quotient;
    double number;
    for (size_t i = 0; node && i < 2; i++) {
        if ((i == 0 && quotient) || !rnl_finder_number(f, node->inputs[i], &number) ||
            !same_shape(describe(f, node->inputs[1 - i]), describe(f, *value)))
            continue;
        found->attention.scale = product ? found->attention.scale * number : found->attention.scale / number;
        found->nodes[found->count++] = node;
        *value = node->inputs[1 - i];
        return true;
    }
    return false;
}

/* A mask that is added to the scores and does not make more of them. */
static void take_bias(const rnl_finder *f, match *found, uint32_t *value)
{
    const rnl_node *sum = rnl_finder_maker(f, *value, "Add", 1);
    for (size_t i = 0; sum && i < 2; i++) {
        const uint32_t scores = sum->inputs[i];
        if (!same_shape(describe(f, scores), describe(f, *value)) ||
            !(rnl_finder_maker(f, scores, "MatMul", 1) || rnl_finder_maker(f, scores, "Mul", 1) ||
              rnl_finder_maker(f, scores, "Div", 1)))
            continue;
        found->nodes[found->count++] = sum;
        found->attention.bias = sum->inputs[1 - i];
        *value = scores;
        return;
    }
}

/* The MatMul that alone reads what Softmax gives, as its first factor. */
static const rnl_node *reader(const rnl_finder *f, const rnl_node *softmax)
{
    const uint32_t value = softmax->outputs[0], first = f->readers->starts[value];
    if (f->readers->counts[value] != 1 || f->readers->starts[value + 1] - first != 1)
        return NULL;
    const uint32_t index = f->readers->nodes[first];
    const rnl_node *node = &f->planner->graph->nodes[index];
    return rnl_node_is(node, "MatMul") && node->inputs[0] == value && !f->planner->groups[index] ? node : NULL;
}

static bool is_over_last(const rnl_finder *f, const rnl_node *softmax)
{
    size_t axis;
    const size_t rank = describe(f, softmax->outputs[0])->rank;
    const int64_t usual = softmax->opset < 13 ? 1 : -1;
    return rank >= 2 && rank <= 4 &&
           rnl_axis_resolve(rnl_node_int(softmax, "axis", usual), rank, "axis", &axis) == RNL_OK && axis == rank - 1;
}

static rnl_view view_of(const rnl_finder *f, uint32_t value)
{
    const rnl_tensor_desc *desc = describe(f, value);
    const rnl_view view = rnl_view_row_major(0, desc->dtype, desc->rank, desc->shape);
    return rnl_attention_rows(&view);
}

/* Nothing broadcasts but the mask, and the device likes to do it at once. */
static bool suits(const rnl_finder *f, const match *found, const rnl_node *last)
{
    const rnl_attention_nodes *a = &found->attention;
    const rnl_tensor_desc *q = describe(f, a->query), *k = describe(f, a->keys), *v = describe(f, a->value);
    if (q->rank != k->rank || q->rank != v->rank || q->rank < 2 || q->rank > 4)
        return false;
    for (size_t i = 0; i + 2 < q->rank; i++)
        if (q->shape[i] != k->shape[i] || q->shape[i] != v->shape[i])
            return false;
    rnl_attention_step step = {.query = view_of(f, a->query),
                               .key = view_of(f, a->keys),
                               .value = view_of(f, a->value),
                               .dst = view_of(f, last->outputs[0]),
                               .bias = {.slot = RNL_NO_SLOT}};
    if (a->bias != RNL_NO_VALUE && describe(f, a->bias)->rank > 4)
        return false;
    if (a->bias != RNL_NO_VALUE)
        step.bias = view_of(f, a->bias);
    step.key = rnl_attention_turned(&step.key);
    step.key.stride[3] = 1;
    return rnl_op_attention_pays(f->planner->model->device, &step);
}

static int by_index(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void keep(const rnl_finder *f, const match *found, rnl_group *group)
{
    for (size_t i = 0; i < found->count; i++)
        group->nodes[i] = rnl_finder_index(f, found->nodes[i]);
    qsort(group->nodes, found->count, sizeof *group->nodes, by_index);
    group->node_count = found->count;
    group->attention = found->attention;
}

rnl_status rnl_fuse_attention(rnl_planner *planner, const rnl_readers *readers, uint32_t index, rnl_group *group)
{
    const rnl_finder f = {planner, readers};
    const rnl_node *softmax = &planner->graph->nodes[index];
    match found = {.attention = {.bias = RNL_NO_VALUE, .scale = 1}};
    group->kind = RNL_GROUP_ATTENTION;
    group->node_count = 0;
    if (!rnl_node_is(softmax, "Softmax") || planner->groups[index] || !rnl_fuse_runs(planner, index) ||
        !is_over_last(&f, softmax))
        return RNL_OK;
    const rnl_node *last = reader(&f, softmax);
    uint32_t value = softmax->inputs[0];
    if (!last)
        return RNL_OK;
    found.nodes[found.count++] = last;
    found.nodes[found.count++] = softmax;
    take_bias(&f, &found, &value);
    take_scale(&f, &found, &value);
    const rnl_node *scores = rnl_finder_maker(&f, value, "MatMul", 1);
    if (!scores)
        return RNL_OK;
    found.nodes[found.count++] = scores;
    found.attention.query = scores->inputs[0];
    found.attention.keys = scores->inputs[1];
    found.attention.value = last->inputs[1];
    take_scale(&f, &found, &found.attention.query);
    take_scale(&f, &found, &found.attention.keys);
    if (suits(&f, &found, last))
        keep(&f, &found, group);
    return RNL_OK;
}
