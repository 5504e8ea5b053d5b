/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised convolutions whose result is added to another tensor, as in residual networks. */
#include "graph/op_common.h"
#include "model/fuse_grow.h"
#include <string.h>

/* The inputs of QLinearConv and QLinearAdd: values, then scale and zero point. */
enum { CONV_WEIGHT = 3, CONV_SCALE = 6, CONV_ZERO = 7, FIRST = 0, SECOND = 3 };

static bool same_desc(const rnl_planner *planner, uint32_t a, uint32_t b)
{
    const rnl_tensor_desc *x = &planner->values[a].desc, *y = &planner->values[b].desc;
    return x->dtype == y->dtype && x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}

static bool is_single(const rnl_planner *planner, uint32_t value)
{
    return value != RNL_NO_VALUE && rnl_desc_elements(&planner->values[value].desc) == 1;
}

/* The convolution that makes input `at` for this node alone, quantised as the node reads it. */
static uint32_t convolution_at(const rnl_planner *planner, const rnl_readers *readers, const rnl_node *add, uint32_t at)
{
    const uint32_t value = add->inputs[at], result = add->outputs[0];
    const uint32_t producer = value == RNL_NO_VALUE ? RNL_NO_NODE : planner->graph->values[value].producer;
    if (producer == RNL_NO_NODE || readers->counts[value] != 1 || planner->groups[producer] ||
        !rnl_fuse_runs(planner, producer) || !same_desc(planner, value, result))
        return RNL_NO_NODE;
    const rnl_node *conv = &planner->graph->nodes[producer];
    const bool fits = rnl_node_is(conv, "QLinearConv") && conv->inputs[CONV_SCALE] == add->inputs[at + 1] &&
                      conv->inputs[CONV_ZERO] == add->inputs[at + 2] &&
                      planner->model->constants.tensors[conv->inputs[CONV_WEIGHT]];
    return fits ? producer : RNL_NO_NODE;
}

/* Scales of one element each, and a second tensor of the result's shape. */
static bool adds_plainly(const rnl_planner *planner, const rnl_node *add)
{
    if (strcmp(add->domain, "com.microsoft") != 0 || strcmp(add->op_type, "QLinearAdd") != 0 || add->input_count < 8 ||
        !same_desc(planner, add->inputs[FIRST], add->outputs[0]) ||
        !same_desc(planner, add->inputs[SECOND], add->outputs[0]))
        return false;
    for (uint32_t i = 0; i < 8; i++)
        if (i != FIRST && i != SECOND && i < add->input_count && add->inputs[i] != RNL_NO_VALUE &&
            !is_single(planner, add->inputs[i]))
            return false;
    return true;
}

void rnl_fuse_sum(rnl_planner *planner, const rnl_readers *readers, uint32_t index, rnl_group *group)
{
    const rnl_node *add = &planner->graph->nodes[index];
    group->node_count = 0;
    if (planner->groups[index] || !rnl_fuse_runs(planner, index) || !adds_plainly(planner, add))
        return;
    const uint32_t first = convolution_at(planner, readers, add, FIRST);
    const uint32_t second = convolution_at(planner, readers, add, SECOND);
    /* Of two that meet, the later one adds. */
    const bool takes_second = second != RNL_NO_NODE && (first == RNL_NO_NODE || second > first);
    if (!takes_second && first == RNL_NO_NODE)
        return;
    *group = (rnl_group){.kind = RNL_GROUP_ANCHOR, .node_count = 2, .fold = {RNL_NO_NODE, RNL_NO_NODE}};
    group->nodes[0] = takes_second ? second : first;
    group->nodes[1] = index;
}
