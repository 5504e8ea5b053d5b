/* SPDX-License-Identifier: Apache-2.0 */
/* Slice, Gather, Split, Concat, Pad. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_evaluate_slice(rnl_op_context *context)
{
    int64_t stride[RNL_MAX_RANK];
    rnl_slice slice;
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    TRY(rnl_slice_resolve(context, &slice));
    const rnl_tensor_desc *input = &context->inputs[0];
    size_t bytes = rnl_dtype_bytes(input->dtype);
    char *to = context->results[0];
    rnl_walk_init(&walk, context->outputs[0].shape, input->rank);
    if (walk.left == 0)
        return RNL_OK;
    rnl_dense_strides(input->shape, input->rank, stride);
    walk.operands = 1;
    for (size_t i = 0; i < input->rank; i++) {
        walk.stride[0][i] = stride[i] * slice.step[i];
        walk.at[0] += stride[i] * slice.start[i];
    }
    for (; walk.left > 0; rnl_walk_next(&walk), to += bytes)
        memcpy(to, (const char *)input->host + (size_t)walk.at[0] * bytes, bytes);
    return RNL_OK;
}

/* Elements before and behind an axis. */
static void outer_and_inner(const rnl_tensor_desc *desc, size_t axis, size_t *out_outer, size_t *out_inner)
{
    *out_outer = *out_inner = 1;
    for (size_t i = 0; i < desc->rank; i++)
        if (i != axis)
            *(i < axis ? out_outer : out_inner) *= (size_t)desc->shape[i];
}

rnl_status rnl_evaluate_gather(rnl_op_context *context)
{
    size_t axis, outer, inner;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *data = &context->inputs[0], *indices = &context->inputs[1];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), data->rank, "axis", &axis));
    if (rnl_desc_elements(&context->outputs[0]) == 0)
        return RNL_OK;
    outer_and_inner(data, axis, &outer, &inner);
    int64_t dim = data->shape[axis], count = rnl_desc_elements(indices);
    size_t bytes = inner * rnl_dtype_bytes(data->dtype);
    char *to = context->results[0];
    for (size_t k = 0; k < outer; k++) {
        for (int64_t i = 0; i < count; i++, to += bytes) {
            int64_t index = rnl_element_load(indices->host, i, indices->dtype).i;
            if (index < -dim || index >= dim)
                return FAIL(RNL_INVALID_ARGUMENT, "Gather takes element %" PRId64 " of an axis of %" PRId64, index,
                            dim);
            size_t at = k * (size_t)dim + (size_t)(index < 0 ? index + dim : index);
            memcpy(to, (const char *)data->host + at * bytes, bytes);
        }
    }
    return RNL_OK;
}

/* Copies `rows` pieces of `bytes` each between memories with different distances from row to row. */
static void copy_rows(char *to, size_t to_step, const char *from, size_t from_step, size_t bytes, size_t rows)
{
    for (size_t i = 0; i < rows && bytes > 0; i++)
        memcpy(to + i * to_step, from + i * from_step, bytes);
}

rnl_status rnl_evaluate_split(rnl_op_context *context)
{
    rnl_status status = RNL_OK;
    int64_t *sizes = NULL;
    size_t axis, outer, inner;
    GOTO(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    GOTO(rnl_alloc(context->output_count, sizeof *sizes, &sizes));
    GOTO(rnl_split_resolve(context, &axis, sizes));
    if (rnl_desc_elements(input) == 0)
        goto done;
    outer_and_inner(input, axis, &outer, &inner);
    inner *= rnl_dtype_bytes(input->dtype);
    const char *from = input->host;
    for (size_t i = 0; i < context->output_count; i++) {
        size_t bytes = (size_t)sizes[i] * inner;
        if (context->results[i])
            copy_rows(context->results[i], bytes, from, (size_t)input->shape[axis] * inner, bytes, outer);
        from += bytes;
    }
done:
    rnl_free(sizes);
    return status;
}

rnl_status rnl_evaluate_concat(rnl_op_context *context)
{
    size_t axis, outer, inner;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *output = &context->outputs[0];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), output->rank, "axis", &axis));
    if (rnl_desc_elements(output) == 0)
        return RNL_OK;
    outer_and_inner(output, axis, &outer, &inner);
    inner *= rnl_dtype_bytes(output->dtype);
    char *to = context->results[0];
    for (size_t k = 0; k < context->input_count; k++) {
        size_t bytes = (size_t)context->inputs[k].shape[axis] * inner;
        copy_rows(to, (size_t)output->shape[axis] * inner, context->inputs[k].host, bytes, bytes, outer);
        to += bytes;
    }
    return RNL_OK;
}

/* Where an output position along an axis comes from, counted from what cropping leaves of it; -1: the constant. */
static int64_t pad_source(int mode, int64_t position, int64_t dim)
{
    bool inside = position >= 0 && position < dim;
    if (inside || mode == 0)
        return inside ? position : -1;
    if (mode == 2 || dim == 1)
        return position < 0 ? 0 : dim - 1;
    int64_t period = mode == 1 ? 2 * (dim - 1) : dim;
    position %= period;
    position += position < 0 ? period : 0;
    return position < dim ? position : period - position;
}

static rnl_number pad_constant(const rnl_op_context *context)
{
    rnl_dtype dtype = context->inputs[0].dtype;
    if (rnl_input_exists(context, 2))
        return rnl_element_load(context->inputs[2].host, 0, dtype);
    if (context->node->opset < 11)
        return (rnl_number){.f = (double)rnl_node_float(context->node, "value", 0)};
    return (rnl_number){.u = 0};
}

rnl_status rnl_evaluate_pad(rnl_op_context *context)
{
    int64_t stride[RNL_MAX_RANK];
    rnl_pad pad;
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    TRY(rnl_pad_resolve(context, &pad));
    const rnl_tensor_desc *input = &context->inputs[0];
    rnl_number constant = pad_constant(context);
    rnl_dense_strides(input->shape, input->rank, stride);
    rnl_walk_init(&walk, context->outputs[0].shape, input->rank);
    for (int64_t i = 0; walk.left > 0; i++, rnl_walk_next(&walk)) {
        int64_t at = 0;
        for (size_t k = 0; k < input->rank && at >= 0; k++) {
            int64_t crop = pad.begin[k] < 0 ? -pad.begin[k] : 0, crop_end = pad.end[k] < 0 ? -pad.end[k] : 0;
            int64_t from = walk.index[k] - pad.begin[k] - crop, left = input->shape[k] - crop - crop_end;
            int64_t source = pad_source(pad.mode, from, left);
            at = source < 0 ? -1 : at + (source + crop) * stride[k];
        }
        rnl_number x = at < 0 ? constant : rnl_element_load(input->host, at, input->dtype);
        rnl_element_store(context->results[0], i, input->dtype, x);
    }
    return RNL_OK;
}
