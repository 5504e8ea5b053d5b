/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml: what is made of the features in a tensor's last dimension. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_infer_feature_extractor(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK] = {1};
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    const rnl_tensor_desc *data = &context->inputs[0];
    const int64_t count = rnl_desc_elements(&context->inputs[1]);
    if (data->rank == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "ArrayFeatureExtractor of a scalar");
    if (count > 0 && data->shape[data->rank - 1] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "ArrayFeatureExtractor of no features");
    const size_t rank = data->rank == 1 ? 2 : data->rank; /* a vector is a single row */
    for (size_t i = 0; data->rank > 1 && i + 1 < rank; i++)
        shape[i] = data->shape[i];
    shape[rank - 1] = count;
    return rnl_output_set(context, 0, data->dtype, shape, rank);
}

/* A list with a number for each feature, or one for all. */
static rnl_status check_list(const rnl_op_context *context, const char *name)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t features = input->rank ? input->shape[input->rank - 1] : 1;
    size_t count;
    (void)rnl_node_floats(context->node, name, &count);
    if (count == 1 || (int64_t)count == features)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of %s has %zu numbers for %" PRId64 " features", name,
                context->node->op_type, count, features);
}

rnl_status rnl_infer_scaler(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(check_list(context, "offset"));
    TRY(check_list(context, "scale"));
    return rnl_output_like(context, 0, RNL_F32);
}

static rnl_status check_matrix(const rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank == 2)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s needs rows of features, not shape %s", context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text);
}

rnl_status rnl_infer_normalizer(rnl_op_context *context)
{
    static const char *const norms[] = {"MAX", "L1", "L2"};
    int norm;
    TRY(rnl_infer_begin(context));
    TRY(rnl_choose(context->node, "norm", norms, 3, &norm));
    TRY(check_matrix(context));
    return rnl_output_like(context, 0, RNL_F32);
}

static rnl_status check_post_transform(const rnl_node *node)
{
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC"};
    int transform;
    if (rnl_choose(node, "post_transform", transforms, 3, &transform) == RNL_OK)
        return RNL_OK;
    return FAIL(RNL_UNIMPLEMENTED, "the post_transform '%.32s' of %s is not supported; NONE, SOFTMAX and LOGISTIC are",
                rnl_node_string(node, "post_transform", ""), node->op_type);
}

rnl_status rnl_infer_linear_regressor(rnl_op_context *context)
{
    size_t coefficients, intercepts;
    TRY(rnl_infer_begin(context));
    TRY(check_matrix(context));
    TRY(check_post_transform(context->node));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t targets = rnl_node_int(context->node, "targets", 1);
    int64_t wanted;
    (void)rnl_node_floats(context->node, "coefficients", &coefficients);
    (void)rnl_node_floats(context->node, "intercepts", &intercepts);
    if (targets < 1 || !rnl_shape_elements((const int64_t[]){targets, input->shape[1]}, 2, &wanted) ||
        wanted != (int64_t)coefficients || (intercepts != 0 && (int64_t)intercepts != targets))
        return FAIL(RNL_INVALID_ARGUMENT,
                    "LinearRegressor has %zu coefficients and %zu intercepts for %" PRId64 " targets of %" PRId64
                    " features",
                    coefficients, intercepts, targets, input->shape[1]);
    return rnl_output_set(context, 0, RNL_F32, (const int64_t[]){input->shape[0], targets}, 2);
}

/* Integer labels; a single row of coefficients tells the second of two from the first. */
rnl_status rnl_infer_linear_classifier(rnl_op_context *context)
{
    size_t coefficients, intercepts, labels;
    int64_t wanted;
    TRY(rnl_infer_begin(context));
    TRY(check_matrix(context));
    TRY(check_post_transform(context->node));
    const rnl_tensor_desc *input = &context->inputs[0];
    (void)rnl_node_floats(context->node, "coefficients", &coefficients);
    (void)rnl_node_floats(context->node, "intercepts", &intercepts);
    (void)rnl_node_ints(context->node, "classlabels_ints", &labels);
    if (rnl_node_attribute(context->node, "classlabels_strings"))
        return FAIL(RNL_UNIMPLEMENTED, "LinearClassifier with labels that are strings is not supported");
    if (intercepts == 0 || labels != (intercepts == 1 ? 2 : intercepts) ||
        !rnl_shape_elements((const int64_t[]){(int64_t)intercepts, input->shape[1]}, 2, &wanted) ||
        wanted != (int64_t)coefficients)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "LinearClassifier has %zu coefficients, %zu intercepts and %zu labels for %" PRId64 " features",
                    coefficients, intercepts, labels, input->shape[1]);
    TRY(rnl_output_set(context, 0, RNL_I64, input->shape, 1));
    return rnl_output_set(context, 1, RNL_F32, (const int64_t[]){input->shape[0], (int64_t)labels}, 2);
}

rnl_status rnl_infer_trees(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(check_matrix(context));
    const int64_t targets = rnl_node_int(context->node, "n_targets", 1);
    const int64_t aggregate = rnl_node_int(context->node, "aggregate_function", 1);
    const int64_t transform = rnl_node_int(context->node, "post_transform", 0);
    if (targets < 1 || aggregate < 0 || aggregate > 3)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsemble has %" PRId64 " targets and aggregate function %" PRId64,
                    targets, aggregate);
    if (transform < 0 || transform > 2)
        return FAIL(RNL_UNIMPLEMENTED, "the post_transform %" PRId64 " of TreeEnsemble is not supported; 0 to 2 are",
                    transform);
    return rnl_output_set(context, 0, context->inputs[0].dtype, (const int64_t[]){context->inputs[0].shape[0], targets},
                          2);
}

/* onnxruntime leaves a single target as it is, whatever the transform: so what is meant cannot be known. */
rnl_status rnl_infer_tree_regressor(rnl_op_context *context)
{
    static const char *const aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    const char *transform = rnl_node_string(context->node, "post_transform", "NONE");
    int aggregate;
    TRY(rnl_infer_begin(context));
    TRY(check_matrix(context));
    TRY(rnl_choose(context->node, "aggregate_function", aggregates, 4, &aggregate));
    const int64_t targets = rnl_node_int(context->node, "n_targets", 1);
    if (targets < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has %" PRId64 " targets", targets);
    if (strcmp(transform, "NONE") != 0)
        return FAIL(RNL_UNIMPLEMENTED, "the post_transform '%.32s' of TreeEnsembleRegressor is not supported; NONE is",
                    transform);
    return rnl_output_set(context, 0, RNL_F32, (const int64_t[]){context->inputs[0].shape[0], targets}, 2);
}
