/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml, as far as it is made of other operators. Integers are computed in float32. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/resize.h"
#include "ops/select.h"
#include <string.h>

rnl_status rnl_lower_feature_extractor(rnl_lowering *lowering)
{
    rnl_view data, indices, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &indices));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    const int64_t count = rnl_view_elements(&indices);
    TRY(rnl_compose_reshape(lowering, &indices, 1, &count, &indices));
    if (data.rank == 1)
        data = rnl_view_expand(&data, 2, (const int64_t[]){1, data.shape[0]});
    return rnl_op_gather(lowering->list, data.rank - 1, &data, &indices, &target);
}

/* 1 where a feature is above the threshold, else 0. */
rnl_status rnl_lower_binarizer(rnl_lowering *lowering)
{
    const double threshold = (double)rnl_node_float(lowering->context.node, "threshold", 0);
    rnl_view source, target, above;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (source.dtype == RNL_I32 || source.dtype == RNL_I64)
        TRY(rnl_compose_cast(lowering, &source, RNL_F32, &source));
    TRY(rnl_compose_with(lowering, RNL_MAP_GREATER, &source, threshold, &above));
    return rnl_lower_copy(lowering, &above, &target);
}

/* An attribute's floats as a tensor; RNL_NO_SLOT when there are none. */
static rnl_status attribute_view(rnl_lowering *lowering, const char *name, size_t rank, const int64_t *shape,
                                 rnl_view *out_view)
{
    size_t count;
    const float *floats = rnl_node_floats(lowering->context.node, name, &count);
    rnl_tensor_desc desc = {.dtype = RNL_F32, .rank = rank, .host = floats};
    *out_view = (rnl_view){.slot = RNL_NO_SLOT};
    if (count == 0)
        return RNL_OK;
    memcpy(desc.shape, shape, rank * sizeof *shape);
    return rnl_lower_constant(lowering, &desc, out_view);
}

static rnl_status attribute_vector(rnl_lowering *lowering, const char *name, rnl_view *out_view)
{
    size_t count;
    (void)rnl_node_floats(lowering->context.node, name, &count);
    return attribute_view(lowering, name, 1, (const int64_t[]){(int64_t)count}, out_view);
}

static rnl_status float_input(rnl_lowering *lowering, rnl_view *out_view)
{
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, out_view));
    return rnl_compose_cast(lowering, out_view, RNL_F32, out_view);
}

rnl_status rnl_lower_scaler(rnl_lowering *lowering)
{
    rnl_view source, offset, scale, target;
    TRY(float_input(lowering, &source));
    TRY(attribute_vector(lowering, "offset", &offset));
    TRY(attribute_vector(lowering, "scale", &scale));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (rnl_view_elements(&target) == 0)
        return RNL_OK;
    rnl_view difference;
    TRY(rnl_lower_scratch(lowering, RNL_F32, target.rank, target.shape, RNL_LAYOUT_ROW_MAJOR, &difference));
    if (target.rank == 0) /* lists of one number */
        offset.rank = scale.rank = 0;
    TRY(rnl_op_map(lowering->list, RNL_MAP_SUB, 0, 0, (rnl_view[]){source, offset}, 2, &difference));
    return rnl_op_map(lowering->list, RNL_MAP_MUL, 0, 0, (rnl_view[]){difference, scale}, 2, &target);
}

rnl_status rnl_lower_normalizer(rnl_lowering *lowering)
{
    const char *norm = rnl_node_string(lowering->context.node, "norm", "MAX");
    const bool is_max = strcmp(norm, "MAX") == 0;
    rnl_view source, magnitude, divisor, target;
    TRY(float_input(lowering, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (rnl_view_elements(&target) == 0)
        return RNL_OK;
    TRY(rnl_compose_unary(lowering, RNL_MAP_ABS, &source, &magnitude));
    const rnl_reduce_op op = is_max ? RNL_REDUCE_MAX : strcmp(norm, "L1") == 0 ? RNL_REDUCE_SUM : RNL_REDUCE_L2;
    TRY(rnl_compose_reduce(lowering, op, 2, &magnitude, &divisor));
    TRY(rnl_compose_with(lowering, RNL_MAP_MAX, &divisor, 1e-30, &divisor));
    return rnl_op_map(lowering->list, RNL_MAP_DIV, 0, 0, (rnl_view[]){source, divisor}, 2, &target);
}

rnl_status rnl_lower_post_transform(rnl_lowering *lowering, int transform, const rnl_view *scores,
                                    const rnl_view *target)
{
    if (transform == 1)
        return rnl_op_softmax(lowering->list, false, 1, 1, scores, target);
    return rnl_op_map(lowering->list, transform == 2 ? RNL_MAP_SIGMOID : RNL_MAP_COPY, 0, 0, scores, 1, target);
}

static int transform_of(const rnl_node *node)
{
    const char *transform = rnl_node_string(node, "post_transform", "NONE");
    return strcmp(transform, "SOFTMAX") == 0 ? 1 : strcmp(transform, "LOGISTIC") == 0 ? 2 : 0;
}

/* Features times coefficients, and intercepts. */
static rnl_status linear_scores(rnl_lowering *lowering, int64_t targets, rnl_view *out_scores)
{
    rnl_view source, coefficients, intercepts;
    TRY(float_input(lowering, &source));
    const int64_t features = source.shape[1];
    TRY(attribute_view(lowering, "coefficients", 2, (const int64_t[]){targets, features}, &coefficients));
    TRY(attribute_view(lowering, "intercepts", 1, &targets, &intercepts));
    if (!rnl_view_exists(&coefficients)) /* of no features */
        TRY(rnl_lower_scratch(lowering, RNL_F32, 2, (const int64_t[]){targets, features}, RNL_LAYOUT_ROW_MAJOR,
                              &coefficients));
    coefficients = rnl_view_permute(&coefficients, (const size_t[]){1, 0});
    TRY(rnl_lower_scratch(lowering, RNL_F32, 2, (const int64_t[]){source.shape[0], targets}, RNL_LAYOUT_ROW_MAJOR,
                          out_scores));
    return rnl_compose_product(lowering, &(rnl_gemm_params){.alpha = 1, .beta = 1}, &source, &coefficients, &intercepts,
                               out_scores);
}

rnl_status rnl_lower_linear_regressor(rnl_lowering *lowering)
{
    rnl_view scores, target;
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(linear_scores(lowering, target.shape[1], &scores));
    return rnl_lower_post_transform(lowering, transform_of(lowering->context.node), &scores, &target);
}

/* The label of each row's place in the list of labels. */
static rnl_status name_places(rnl_lowering *lowering, const rnl_view *places, const rnl_view *target)
{
    size_t count;
    const int64_t *labels = rnl_node_ints(lowering->context.node, "classlabels_ints", &count);
    const rnl_tensor_desc desc = {.dtype = RNL_I64, .rank = 1, .shape = {(int64_t)count}, .host = labels};
    rnl_view list;
    TRY(rnl_lower_constant(lowering, &desc, &list));
    return rnl_op_gather(lowering->list, 0, &list, places, target);
}

/* The single column is the second label's; the first one has the rest. */
static rnl_status two_scores(rnl_lowering *lowering, const rnl_view *scores, const rnl_view *target)
{
    rnl_view first = *target, second = *target, other, one;
    rnl_view_slice(&first, 1, 0, 1, 1);
    rnl_view_slice(&second, 1, 1, 1, 1);
    if (transform_of(lowering->context.node) == 2) {
        TRY(rnl_compose_unary(lowering, RNL_MAP_NEG, scores, &other));
        TRY(rnl_lower_post_transform(lowering, 2, &other, &first));
        return rnl_lower_post_transform(lowering, 2, scores, &second);
    }
    TRY(rnl_lower_scalar(lowering, RNL_F32, 1, &one));
    TRY(rnl_op_map(lowering->list, RNL_MAP_SUB, 0, 0, (rnl_view[]){one, *scores}, 2, &first));
    return rnl_lower_copy(lowering, scores, &second);
}

/* As onnxruntime has it: of one column, softmax is none. */
rnl_status rnl_lower_linear_classifier(rnl_lowering *lowering)
{
    size_t classes;
    rnl_view scores, places, labels, target;
    (void)rnl_node_floats(lowering->context.node, "intercepts", &classes);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &labels));
    TRY(linear_scores(lowering, (int64_t)classes, &scores));
    if (classes == 1) {
        rnl_view above;
        TRY(rnl_compose_with(lowering, RNL_MAP_GREATER, &scores, 0, &above));
        TRY(rnl_compose_cast(lowering, &above, RNL_I64, &places));
    } else {
        TRY(rnl_lower_scratch(lowering, RNL_I64, 2, (const int64_t[]){scores.shape[0], 1}, RNL_LAYOUT_ROW_MAJOR,
                              &places));
        TRY(rnl_op_arg(lowering->list, true, false, 1, &scores, &places));
    }
    TRY(rnl_compose_reshape(lowering, &places, 1, scores.shape, &places));
    TRY(name_places(lowering, &places, &labels));
    if (!rnl_lower_has_output(lowering, 1))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
    if (classes == 1)
        return two_scores(lowering, &scores, &target);
    return rnl_lower_post_transform(lowering, transform_of(lowering->context.node), &scores, &target);
}
