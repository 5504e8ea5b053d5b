/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer normalisation that is written out: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), then maybe * scale
 * and
 * + bias. Found from its division.
 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/evaluate.h"
#include "model/fuse_grow.h"
#include <string.h>

static bool is(const rnl_node *node, const char *op_type)
{
    return rnl_node_is(node, op_type);
}

const rnl_node *rnl_finder_maker(const rnl_finder *f, uint32_t value, const char *op_type, uint32_t count)
{
    uint32_t producer = value == RNL_NO_VALUE ? RNL_NO_NODE : f->planner->graph->values[value].producer;
    if (producer == RNL_NO_NODE || f->planner->groups[producer] || !rnl_fuse_runs(f->planner, producer))
        return NULL;
    const rnl_node *node = &f->planner->graph->nodes[producer];
    return is(node, op_type) && f->readers->counts[value] == count ? node : NULL;
}

bool rnl_finder_number(const rnl_finder *f, uint32_t value, double *out_number)
{
    const rnl_tensor_desc *desc = &f->planner->values[value].desc;
    if (!desc->host || rnl_desc_elements(desc) != 1)
        return false;
    *out_number = rnl_number_double(rnl_element_load(desc->host, 0, desc->dtype), desc->dtype);
    return true;
}

/* The axes of a mean that keeps them; 0 for another one. */
static rnl_status mean_axes(const rnl_finder *f, const rnl_node *node, uint32_t *out_axes)
{
    rnl_op_context context;
    bool noop;
    *out_axes = 0;
    if (!rnl_node_int(node, "keepdims", 1))
        return RNL_OK;
    TRY(rnl_plan_context(f->planner, node, &context));
    TRY(rnl_reduce_axes(&context, out_axes, &noop));
    *out_axes = noop ? 0 : *out_axes;
    return RNL_OK;
}

uint32_t rnl_finder_index(const rnl_finder *f, const rnl_node *node)
{
    return (uint32_t)(node - f->planner->graph->nodes);
}

/* What the mean of squares is taken of: the square of `difference`, which is read `*out_reads` times for it. */
static const rnl_node *square_of(const rnl_finder *f, uint32_t value, uint32_t difference, uint32_t *out_reads)
{
    double exponent;
    const rnl_node *power = rnl_finder_maker(f, value, "Pow", 1), *product = rnl_finder_maker(f, value, "Mul", 1);
    *out_reads = power ? 1 : 2;
    if (power && power->inputs[0] == difference && rnl_finder_number(f, power->inputs[1], &exponent) && exponent == 2)
        return power;
    return product && product->inputs[0] == difference && product->inputs[1] == difference ? product : NULL;
}

/* sum = variance + epsilon, either way round. */
static bool find_epsilon(const rnl_finder *f, const rnl_node *sum, uint32_t *out_variance, rnl_norm *norm)
{
    double epsilon;
    for (size_t i = 0; i < 2; i++)
        if (rnl_finder_number(f, sum->inputs[i], &epsilon)) {
            norm->epsilon = (float)epsilon;
            *out_variance = sum->inputs[1 - i];
            return true;
        }
    return false;
}

/* Fills in the group's nodes up to the division and what they compute; false when it is something else. */
static rnl_status find_core(const rnl_finder *f, const rnl_node *quotient, rnl_group *group, bool *out_found)
{
    uint32_t variance_value, reads, axes, variance_axes;
    const rnl_node *root = rnl_finder_maker(f, quotient->inputs[1], "Sqrt", 1);
    const rnl_node *sum = root ? rnl_finder_maker(f, root->inputs[0], "Add", 1) : NULL;
    *out_found = false;
    if (!sum || !find_epsilon(f, sum, &variance_value, &group->norm))
        return RNL_OK;
    const rnl_node *variance = rnl_finder_maker(f, variance_value, "ReduceMean", 1);
    const rnl_node *square = variance ? square_of(f, variance->inputs[0], quotient->inputs[0], &reads) : NULL;
    const rnl_node *difference = square ? rnl_finder_maker(f, quotient->inputs[0], "Sub", reads + 1) : NULL;
    const rnl_node *mean = difference ? rnl_finder_maker(f, difference->inputs[1], "ReduceMean", 1) : NULL;
    if (!mean || mean->inputs[0] != difference->inputs[0])
        return RNL_OK;
    TRY(mean_axes(f, mean, &axes));
    TRY(mean_axes(f, variance, &variance_axes));
    const rnl_node *nodes[] = {mean, difference, square, variance, sum, root, quotient};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        group->nodes[i] = rnl_finder_index(f, nodes[i]);
    group->node_count = sizeof nodes / sizeof *nodes;
    group->norm.source = mean->inputs[0];
    group->norm.axes = axes;
    *out_found = axes != 0 && axes == variance_axes;
    return RNL_OK;
}

/* The only reader of the group's result, when it is of this type and its other input is a constant that broadcasts. */
static bool append_constant(const rnl_finder *f, const char *op_type, rnl_group *group, uint32_t *out_constant)
{
    const rnl_planner *planner = f->planner;
    uint32_t value = planner->graph->nodes[rnl_group_last(group)].outputs[0];
    uint32_t first = f->readers->starts[value];
    if (f->readers->counts[value] != 1 || f->readers->starts[value + 1] - first != 1)
        return false;
    uint32_t index = f->readers->nodes[first];
    const rnl_node *node = &planner->graph->nodes[index];
    if (!is(node, op_type) || planner->groups[index])
        return false;
    uint32_t other = node->inputs[node->inputs[0] == value ? 1 : 0];
    const rnl_tensor_desc *before = &planner->values[value].desc, *after = &planner->values[node->outputs[0]].desc;
    if (!planner->values[other].is_fixed || before->rank != after->rank ||
        memcmp(before->shape, after->shape, before->rank * sizeof *before->shape) != 0)
        return false;
    *out_constant = other;
    group->nodes[group->node_count++] = index;
    return true;
}

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

rnl_status rnl_fuse_norm(rnl_planner *planner, const rnl_readers *readers, uint32_t index, rnl_group *group)
{
    const rnl_finder f = {planner, readers};
    const rnl_node *node = &planner->graph->nodes[index];
    bool found;
    group->kind = RNL_GROUP_NORM;
    group->node_count = 0;
    if (!is(node, "Div") || planner->groups[index] || !rnl_fuse_runs(planner, index) ||
        !is_float(planner->values[node->outputs[0]].desc.dtype))
        return RNL_OK;
    group->norm = (rnl_norm){.scale = RNL_NO_VALUE, .bias = RNL_NO_VALUE};
    TRY(find_core(&f, node, group, &found));
    if (!found)
        group->node_count = 0;
    else if (append_constant(&f, "Mul", group, &group->norm.scale))
        (void)append_constant(&f, "Add", group, &group->norm.bias);
    return RNL_OK;
}
