/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fold.h"

#include "base/memory.h"
#include "graph/host_element.h"
#include <math.h>

static bool is(const rnl_node *node, const char *op_type)
{
    return rnl_node_is(node, op_type);
}

/* ---- elementwise nodes ---------------------------------------------------------------------------------------- */

static bool is_fixed(const rnl_planner *planner, uint32_t value)
{
    return value != RNL_NO_VALUE && planner->values[value].is_fixed;
}

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

/* One element, or one for each index of `axis` of `whole`. */
static bool lies_along(const rnl_tensor_desc *constant, const rnl_tensor_desc *whole, size_t axis)
{
    if (!is_float(constant->dtype) || constant->rank > whole->rank)
        return false;
    for (size_t i = 0; i < constant->rank; i++) {
        size_t at = whole->rank - constant->rank + i;
        if (constant->shape[i] != 1 && (at != axis || constant->shape[i] != whole->shape[axis]))
            return false;
    }
    return true;
}

static double element(const rnl_planner *planner, uint32_t value, int64_t channel)
{
    const rnl_tensor_desc *desc = &planner->values[value].desc;
    bool one = true;
    for (size_t i = 0; i < desc->rank; i++)
        one = one && desc->shape[i] == 1;
    return rnl_number_double(rnl_element_load(desc->host, one ? 0 : channel, desc->dtype), desc->dtype);
}

static bool takes_batch_norm(const rnl_planner *planner, const rnl_node *node, uint32_t x, size_t axis)
{
    if (rnl_node_int(node, "training_mode", 0))
        return false;
    bool fixed = axis == 1 && node->inputs[0] == x;
    for (size_t i = 1; i < 5; i++)
        fixed = fixed && is_fixed(planner, node->inputs[i]) && is_float(planner->values[node->inputs[i]].desc.dtype);
    return fixed;
}

bool rnl_fold_takes(const rnl_planner *planner, const rnl_node *node, uint32_t x, size_t axis)
{
    if (is(node, "BatchNormalization"))
        return takes_batch_norm(planner, node, x, axis);
    if (is(node, "Neg") && node->input_count == 1)
        return node->inputs[0] == x;
    bool sum = is(node, "Add") || is(node, "Sub") || is(node, "Sum");
    if ((!sum && !is(node, "Mul") && !is(node, "Div")) || node->input_count != 2)
        return false;
    if (node->inputs[0] != x && (node->inputs[1] != x || is(node, "Div")))
        return false;
    uint32_t other = node->inputs[node->inputs[0] == x ? 1 : 0];
    return other != x && is_fixed(planner, other) &&
           lies_along(&planner->values[other].desc, &planner->values[node->outputs[0]].desc, axis);
}

static rnl_affine batch_norm(const rnl_planner *planner, const rnl_node *node, int64_t channel)
{
    double epsilon = (double)rnl_node_float(node, "epsilon", 1e-5f), number[5] = {0};
    for (size_t i = 1; i < 5; i++)
        number[i] = element(planner, node->inputs[i], channel);
    double scale = number[1] / sqrt(number[4] + epsilon);
    return (rnl_affine){scale, number[2] - number[3] * scale};
}

rnl_affine rnl_fold_node(const rnl_planner *planner, const rnl_node *node, uint32_t x, int64_t channel)
{
    if (is(node, "BatchNormalization"))
        return batch_norm(planner, node, channel);
    if (is(node, "Neg"))
        return (rnl_affine){-1, 0};
    bool first = node->inputs[0] == x;
    double number = element(planner, node->inputs[first ? 1 : 0], channel);
    if (is(node, "Mul"))
        return (rnl_affine){number, 0};
    if (is(node, "Div"))
        return (rnl_affine){1 / number, 0};
    if (is(node, "Sub"))
        return first ? (rnl_affine){1, -number} : (rnl_affine){-1, number};
    return (rnl_affine){1, number};
}

/* ---- anchors -------------------------------------------------------------------------------------------------- */

bool rnl_fold_is_anchor(const rnl_node *node)
{
    return is(node, "Conv") || is(node, "ConvTranspose") || is(node, "MatMul") || is(node, "Gemm");
}

static bool has_input(const rnl_node *node, size_t index)
{
    return index < node->input_count && node->inputs[index] != RNL_NO_VALUE;
}

bool rnl_fold_takes_anchor(const rnl_planner *planner, const rnl_node *node)
{
    const rnl_host_tensor *weight = planner->model->constants.tensors[node->inputs[1]];
    if (!weight || weight->dtype != RNL_F32) /* a narrower type would be rounded once more */
        return false;
    if (!has_input(node, 2))
        return true;
    const rnl_tensor_desc *whole = &planner->values[node->outputs[0]].desc;
    if (!is_fixed(planner, node->inputs[2]))
        return false;
    return !is(node, "Gemm") || lies_along(&planner->values[node->inputs[2]].desc, whole, whole->rank - 1);
}

static rnl_affine anchor(const rnl_planner *planner, const rnl_node *node, int64_t channel)
{
    double scale = 1, weight = 1;
    if (is(node, "Gemm")) {
        scale = (double)rnl_node_float(node, "alpha", 1);
        weight = (double)rnl_node_float(node, "beta", 1);
    }
    bool biased = has_input(node, 2) && weight != 0;
    return (rnl_affine){scale, biased ? weight * element(planner, node->inputs[2], channel) : 0};
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

/* The input that a node of a run gets from the node before: the one that is no constant. */
static uint32_t input_of_run(const rnl_planner *planner, const rnl_node *node)
{
    bool second = !is(node, "BatchNormalization") && node->input_count == 2 && is_fixed(planner, node->inputs[0]);
    return node->inputs[second ? 1 : 0];
}

static rnl_affine compose(const rnl_planner *planner, rnl_fold fold, int64_t channel)
{
    const rnl_graph *graph = planner->graph;
    rnl_affine whole = {1, 0};
    for (uint32_t at = fold.last;; at = graph->values[input_of_run(planner, &graph->nodes[at])].producer) {
        const rnl_node *node = &graph->nodes[at];
        rnl_affine part = rnl_fold_is_anchor(node) ? anchor(planner, node, channel)
                                                   : rnl_fold_node(planner, node, input_of_run(planner, node), channel);
        whole.shift += part.shift != 0 ? whole.scale * part.shift : 0; /* not 0 times infinity */
        whole.scale *= part.scale;
        if (at == fold.first)
            return whole;
    }
}

rnl_status rnl_fold_run(rnl_planner *planner, rnl_fold fold, size_t count, rnl_affine **out_affine)
{
    rnl_affine *affine = NULL;
    TRY(rnl_zone_alloc(planner->zone, count ? count : 1, sizeof *affine, &affine));
    for (size_t i = 0; i < count; i++)
        affine[i] = compose(planner, fold, (int64_t)i);
    *out_affine = affine;
    return RNL_OK;
}

bool rnl_fold_scales(const rnl_planner *planner, rnl_fold fold)
{
    const rnl_graph *graph = planner->graph;
    for (uint32_t at = fold.last;; at = graph->values[input_of_run(planner, &graph->nodes[at])].producer) {
        const rnl_node *node = &graph->nodes[at];
        bool adds = is(node, "Add") || is(node, "Sum") || (is(node, "Sub") && !is_fixed(planner, node->inputs[0]));
        bool plain = rnl_fold_is_anchor(node) && (!is(node, "Gemm") || rnl_node_float(node, "alpha", 1) == 1);
        if (!adds && !plain)
            return true;
        if (at == fold.first)
            return false;
    }
}
