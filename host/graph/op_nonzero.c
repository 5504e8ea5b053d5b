/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero and Compress: how much they give depends on what they read, so contents are needed to infer a shape. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

static bool is_nonzero(const void *data, int64_t index, rnl_dtype dtype)
{
    rnl_number number = rnl_element_load(data, index, dtype);
    return rnl_dtype_kind(dtype) == RNL_NUMBER_FLOAT ? number.f != 0 : number.u != 0; /* NaN is not 0 */
}

static int64_t count_nonzeros(const rnl_tensor_desc *desc, int64_t first_elements)
{
    int64_t count = 0;
    for (int64_t i = 0; i < first_elements; i++)
        count += is_nonzero(desc->host, i, desc->dtype);
    return count;
}

rnl_status rnl_infer_nonzero(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t shape[2] = {(int64_t)input->rank, count_nonzeros(input, rnl_desc_elements(input))};
    return rnl_output_set(context, 0, RNL_I64, shape, 2);
}

rnl_status rnl_evaluate_nonzero(rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t count = context->outputs[0].shape[1];
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    rnl_walk_init(&walk, input->shape, input->rank);
    for (int64_t element = 0, found = 0; walk.left > 0; rnl_walk_next(&walk), element++) {
        if (!is_nonzero(input->host, element, input->dtype))
            continue;
        for (size_t i = 0; i < input->rank; i++)
            rnl_element_store(context->results[0], (int64_t)i * count + found, RNL_I64,
                              (rnl_number){.i = walk.index[i]});
        found++;
    }
    return RNL_OK;
}

/* ---- Compress ------------------------------------------------------------------------------------------------- */

typedef struct compress {
    bool has_axis;
    size_t axis;
    int64_t outer, length, inner; /* the axis and what lies around it; without one, all elements are its length */
} compress;

static rnl_status resolve_compress(const rnl_op_context *context, compress *out)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    *out = (compress){.has_axis = rnl_node_attribute(context->node, "axis") != NULL, .outer = 1, .inner = 1};
    out->length = rnl_desc_elements(input);
    if (!out->has_axis)
        return RNL_OK;
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), input->rank, "axis", &out->axis));
    out->length = input->shape[out->axis];
    (void)rnl_shape_elements(input->shape, out->axis, &out->outer);
    (void)rnl_shape_elements(input->shape + out->axis + 1, input->rank - out->axis - 1, &out->inner);
    return RNL_OK;
}

rnl_status rnl_infer_compress(rnl_op_context *context)
{
    compress c;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_BOOL)));
    const rnl_tensor_desc *input = &context->inputs[0], *condition = &context->inputs[1];
    TRY(resolve_compress(context, &c));
    if (condition->rank != 1 || condition->shape[0] > c.length)
        return FAIL(RNL_INVALID_ARGUMENT, "Compress has a condition of shape %s for %" PRId64 " elements",
                    rnl_shape_format(condition->shape, condition->rank).text, c.length);
    TRY(rnl_evaluate_begin(context));
    int64_t shape[RNL_MAX_RANK] = {0}, count = count_nonzeros(condition, condition->shape[0]);
    if (!c.has_axis)
        return rnl_output_set(context, 0, input->dtype, &count, 1);
    memcpy(shape, input->shape, sizeof shape);
    shape[c.axis] = count;
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}

rnl_status rnl_evaluate_compress(rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0], *condition = &context->inputs[1];
    compress c;
    TRY(rnl_evaluate_begin(context));
    TRY(resolve_compress(context, &c));
    const size_t bytes = (size_t)c.inner * rnl_dtype_bytes(input->dtype);
    unsigned char *to = context->results[0];
    for (int64_t i = 0; i < c.outer && bytes > 0; i++)
        for (int64_t k = 0; k < condition->shape[0]; k++) {
            if (!is_nonzero(condition->host, k, RNL_BOOL))
                continue;
            memcpy(to, (const unsigned char *)input->host + (size_t)(i * c.length + k) * bytes, bytes);
            to += bytes;
        }
    return RNL_OK;
}
