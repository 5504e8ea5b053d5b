/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, and what is drawn by them. */
#include "model/lower_list.h"

#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/random.h"
#include "ops/select.h"
#include <string.h>

/* With the node's seed, when it has one. */
static rnl_status draw(rnl_lowering *lowering, rnl_random_params *params, const rnl_view *target)
{
    const rnl_node *node = lowering->context.node;
    const float seed = rnl_node_float(node, "seed", 0);
    rnl_view state;
    if (rnl_view_elements(target) == 0)
        return RNL_OK;
    params->seeded = rnl_node_attribute(node, "seed") != NULL;
    memcpy(&params->seed, &seed, sizeof params->seed);
    TRY(rnl_lower_draw(lowering, &state, &params->ordinal));
    return rnl_op_random(lowering->list, params, &state, target);
}

/* In [0, 1), in the type that the source is compared in. */
static rnl_status draw_uniforms(rnl_lowering *lowering, rnl_dtype dtype, size_t rank, const int64_t *shape,
                                rnl_view *out_view)
{
    rnl_random_params params = {.a = 0, .b = 1};
    dtype = dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    TRY(rnl_lower_scratch(lowering, dtype, rank, shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return draw(lowering, &params, out_view);
}

rnl_status rnl_lower_random(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_random_params params = {.normal = strncmp(node->op_type, "RandomNormal", 12) == 0};
    rnl_view target;
    params.a = rnl_node_float(node, params.normal ? "mean" : "low", 0);
    params.b = rnl_node_float(node, params.normal ? "scale" : "high", 1);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return draw(lowering, &params, &target);
}

rnl_status rnl_lower_bernoulli(rnl_lowering *lowering)
{
    rnl_view source, uniforms, wide, ones, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    TRY(draw_uniforms(lowering, source.dtype, source.rank, source.shape, &uniforms));
    TRY(rnl_compose_cast(lowering, &source, uniforms.dtype, &wide));
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS, &uniforms, &wide, &ones));
    return rnl_lower_copy(lowering, &ones, &target);
}

/* The classes' weights are the softmax of their logarithms; a sample is a random part of their sum. */
rnl_status rnl_lower_multinomial(rnl_lowering *lowering)
{
    const rnl_scan_params scan = {.axis = 1};
    rnl_view source, uniforms, wide, weights, sums, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(draw_uniforms(lowering, source.dtype, target.rank, target.shape, &uniforms));
    TRY(rnl_compose_cast(lowering, &source, uniforms.dtype, &wide));
    TRY(rnl_lower_scratch(lowering, wide.dtype, 2, wide.shape, RNL_LAYOUT_ROW_MAJOR, &weights));
    TRY(rnl_lower_scratch(lowering, wide.dtype, 2, wide.shape, RNL_LAYOUT_ROW_MAJOR, &sums));
    TRY(rnl_op_softmax(lowering->list, false, 1, 1, &wide, &weights));
    TRY(rnl_op_scan(lowering->list, &scan, &weights, &sums));
    return rnl_op_multinomial(lowering->list, &sums, &uniforms, &target);
}

/* ---- Dropout ------------------------------------------------------------------------------------------------- */

static rnl_status keep_all(rnl_lowering *lowering)
{
    rnl_view source, one;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    rnl_lower_alias(lowering, 0, &source);
    if (!rnl_lower_has_output(lowering, 1))
        return RNL_OK;
    const rnl_tensor_desc *mask = &lowering->context.outputs[1];
    TRY(rnl_lower_scalar(lowering, mask->dtype, 1, &one));
    one = rnl_view_expand(&one, mask->rank, mask->shape);
    rnl_lower_alias(lowering, 1, &one);
    return RNL_OK;
}

/* One element in this type, with no dimensions. */
static rnl_status ratio_of(rnl_lowering *lowering, rnl_dtype dtype, rnl_view *out_ratio)
{
    if (!rnl_lower_has_input(lowering, 1))
        return rnl_lower_scalar(lowering, dtype, 0.5, out_ratio);
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, out_ratio));
    TRY(rnl_compose_reshape(lowering, out_ratio, 0, NULL, out_ratio));
    return rnl_compose_cast(lowering, out_ratio, dtype, out_ratio);
}

/* What is kept grows by what is dropped, so that sums stay what they are on average. */
rnl_status rnl_lower_dropout(rnl_lowering *lowering)
{
    rnl_view source, target, wide, uniforms, ratio, kept, part, zero, grown, one;
    if (!rnl_lower_has_input(lowering, 2) || !rnl_dropout_draws(&lowering->context.inputs[2]))
        return keep_all(lowering);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(draw_uniforms(lowering, source.dtype, source.rank, source.shape, &uniforms));
    TRY(ratio_of(lowering, uniforms.dtype, &ratio));
    TRY(rnl_compose_binary(lowering, RNL_MAP_GREATER_EQUAL, &uniforms, &ratio, &kept));
    if (rnl_lower_has_output(lowering, 1)) {
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ANY, &target));
        TRY(rnl_lower_copy(lowering, &kept, &target));
    }
    if (!rnl_lower_has_output(lowering, 0))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    TRY(rnl_lower_scalar(lowering, uniforms.dtype, 1, &one));
    TRY(rnl_lower_scalar(lowering, uniforms.dtype, 0, &zero));
    TRY(rnl_compose_cast(lowering, &source, uniforms.dtype, &wide));
    TRY(rnl_compose_binary(lowering, RNL_MAP_SUB, &one, &ratio, &part));
    TRY(rnl_compose_binary(lowering, RNL_MAP_DIV, &wide, &part, &grown));
    TRY(rnl_compose_map(lowering, RNL_MAP_SELECT, (rnl_view[]){kept, grown, zero}, 3, &grown));
    return rnl_lower_copy(lowering, &grown, &target);
}
