/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose places come from a tensor of indices; Gather is in op_slice.c. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"

#define INDEX_TYPES (RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64))

/* Those that are known while planning. */
static rnl_status check_range(const rnl_op_context *context, size_t index, int64_t size)
{
    const rnl_tensor_desc *indices = &context->inputs[index];
    for (int64_t i = 0, count = rnl_desc_elements(indices); indices->host && i < count; i++) {
        int64_t at = rnl_element_load(indices->host, i, indices->dtype).i;
        if (at < -size || at >= size)
            return FAIL(RNL_INVALID_ARGUMENT, "%s takes element %" PRId64 " of an axis of %" PRId64,
                        context->node->op_type, at, size);
    }
    return RNL_OK;
}

/* Of the ranks of data and indices, which are alike, and sizes of which indices have no more but along `axis`. */
static rnl_status check_elements(const rnl_op_context *context, size_t *out_axis)
{
    const rnl_tensor_desc *data = &context->inputs[0], *indices = &context->inputs[1];
    const char *name = context->node->op_type;
    *out_axis = 0;
    TRY(rnl_check_dtype(context, 1, INDEX_TYPES));
    if (data->rank != indices->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has data of rank %zu and indices of rank %zu; they must be alike", name,
                    data->rank, indices->rank);
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), data->rank, "axis", out_axis));
    for (size_t i = 0; i < data->rank; i++)
        if (i != *out_axis && indices->shape[i] > data->shape[i])
            return FAIL(RNL_INVALID_ARGUMENT, "%s has indices of shape %s for data of shape %s", name,
                        rnl_shape_format(indices->shape, indices->rank).text,
                        rnl_shape_format(data->shape, data->rank).text);
    return check_range(context, 1, data->shape[*out_axis]);
}

rnl_status rnl_infer_gather_elements(rnl_op_context *context)
{
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(check_elements(context, &axis));
    return rnl_output_set(context, 0, context->inputs[0].dtype, context->inputs[1].shape, context->inputs[1].rank);
}

static rnl_status check_reduction(const rnl_node *node)
{
    static const char *const choices[] = {"none", "add", "mul", "max", "min"};
    int choice;
    return rnl_choose(node, "reduction", choices, node->opset < 18 ? 3 : 5, &choice);
}

static bool same_shape(const rnl_tensor_desc *desc, const int64_t *shape, size_t rank)
{
    bool same = desc->rank == rank;
    for (size_t i = 0; i < rank && same; i++)
        same = desc->shape[i] == shape[i];
    return same;
}

/* Also Scatter, which is what it was called. */
rnl_status rnl_infer_scatter_elements(rnl_op_context *context)
{
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(check_elements(context, &axis));
    TRY(check_reduction(context->node));
    const rnl_tensor_desc *data = &context->inputs[0], *indices = &context->inputs[1], *updates = &context->inputs[2];
    if (updates->dtype != data->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the updates of %s are %s, its data %s", context->node->op_type,
                    rnl_dtype_name(updates->dtype), rnl_dtype_name(data->dtype));
    if (!same_shape(updates, indices->shape, indices->rank))
        return FAIL(RNL_INVALID_ARGUMENT, "%s has updates of shape %s for indices of shape %s", context->node->op_type,
                    rnl_shape_format(updates->shape, updates->rank).text,
                    rnl_shape_format(indices->shape, indices->rank).text);
    return rnl_output_like(context, 0, data->dtype);
}

/* The indices' shape without its last dimension, a tuple, and what of data's shape lies behind the tuple's axes. */
static rnl_status slices_shape(const rnl_op_context *context, size_t batch, int64_t *out_shape, size_t *out_rank)
{
    const rnl_tensor_desc *data = &context->inputs[0], *indices = &context->inputs[1];
    const char *name = context->node->op_type;
    *out_rank = 0;
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    if (data->rank == 0 || indices->rank == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%s takes data and indices of rank 1 or more", name);
    int64_t tuple = indices->shape[indices->rank - 1];
    if (batch >= data->rank || batch >= indices->rank || tuple < 1 || tuple > (int64_t)(data->rank - batch))
        return FAIL(RNL_INVALID_ARGUMENT, "%s with tuples of %" PRId64 " indices and %zu batch dimensions for rank %zu",
                    name, tuple, batch, data->rank);
    for (size_t i = 0; i < batch; i++)
        if (indices->shape[i] != data->shape[i])
            return FAIL(RNL_INVALID_ARGUMENT,
                        "batch dimension %zu of %s is %" PRId64 " in data, %" PRId64 " in indices", i, name,
                        data->shape[i], indices->shape[i]);
    for (size_t i = 0; i + 1 < indices->rank; i++)
        out_shape[(*out_rank)++] = indices->shape[i];
    for (size_t i = batch + (size_t)tuple; i < data->rank; i++)
        out_shape[(*out_rank)++] = data->shape[i];
    return RNL_OK;
}

rnl_status rnl_infer_gather_nd(rnl_op_context *context)
{
    int64_t shape[2 * RNL_MAX_RANK], batch = rnl_node_int(context->node, "batch_dims", 0);
    size_t rank;
    TRY(rnl_infer_begin(context));
    if (batch < 0 || batch > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'batch_dims' of GatherND is %" PRId64, batch);
    TRY(slices_shape(context, (size_t)batch, shape, &rank));
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, rank);
}

rnl_status rnl_infer_scatter_nd(rnl_op_context *context)
{
    int64_t shape[2 * RNL_MAX_RANK];
    size_t rank;
    TRY(rnl_infer_begin(context));
    TRY(check_reduction(context->node));
    TRY(slices_shape(context, 0, shape, &rank));
    const rnl_tensor_desc *data = &context->inputs[0], *updates = &context->inputs[2];
    if (updates->dtype != data->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the updates of ScatterND are %s, its data %s",
                    rnl_dtype_name(updates->dtype), rnl_dtype_name(data->dtype));
    if (rank > RNL_MAX_RANK || !same_shape(updates, shape, rank))
        return FAIL(RNL_INVALID_ARGUMENT, "ScatterND has updates of shape %s, not %s",
                    rnl_shape_format(updates->shape, updates->rank).text,
                    rnl_shape_format(shape, rank > RNL_MAX_RANK ? RNL_MAX_RANK : rank).text);
    return rnl_output_like(context, 0, data->dtype);
}
