/* SPDX-License-Identifier: Apache-2.0 */
/* Slice and Gather. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"

typedef struct slice_lists {
    size_t count;
    int64_t starts[RNL_MAX_RANK], ends[RNL_MAX_RANK], axes[RNL_MAX_RANK], steps[RNL_MAX_RANK];
} slice_lists;

static rnl_status copy_attribute(const rnl_node *node, const char *name, int64_t *out, size_t *out_count)
{
    const int64_t *values = rnl_node_ints(node, name, out_count);
    if (*out_count > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of Slice has %zu elements", name, *out_count);
    for (size_t i = 0; i < *out_count; i++)
        out[i] = values[i];
    return RNL_OK;
}

static rnl_status same_length(size_t count, size_t wanted, const char *what)
{
    if (count == wanted)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s of Slice has %zu elements, starts has %zu", what, count, wanted);
}

/* Opset 1: attributes, no steps. */
static rnl_status read_attributes(const rnl_op_context *context, slice_lists *lists)
{
    const rnl_node *node = context->node;
    size_t count;
    TRY(copy_attribute(node, "starts", lists->starts, &lists->count));
    TRY(copy_attribute(node, "ends", lists->ends, &count));
    TRY(same_length(count, lists->count, "ends"));
    TRY(copy_attribute(node, "axes", lists->axes, &count));
    return rnl_node_attribute(node, "axes") ? same_length(count, lists->count, "axes") : RNL_OK;
}

/* From opset 10 on: inputs. */
static rnl_status read_inputs(const rnl_op_context *context, slice_lists *lists)
{
    static const char *const names[] = {"data", "starts (input 1)", "ends (input 2)", "axes (input 3)",
                                        "steps (input 4)"};
    int64_t *values[] = {NULL, lists->starts, lists->ends, lists->axes, lists->steps};
    for (size_t i = 1; i < 5; i++) {
        size_t count;
        if (!rnl_input_exists(context, i))
            continue;
        TRY(rnl_desc_ints(&context->inputs[i], names[i], values[i], RNL_MAX_RANK, &count));
        if (i == 1)
            lists->count = count;
        TRY(same_length(count, lists->count, names[i]));
    }
    return RNL_OK;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value < low)
        return low;
    return value > high ? high : value;
}

/* One axis of `dim` elements. As numpy's, but that a backward slice starting before the axis starts at its head. */
static void slice_axis(int64_t dim, int64_t start, int64_t end, int64_t step, rnl_slice *slice, size_t axis)
{
    int64_t size = 0;
    start = start < 0 ? start + dim : start;
    end = end < 0 && end >= -dim ? end + dim : end;
    if (step > 0) {
        start = clamp(start, 0, dim);
        end = clamp(end, 0, dim);
        size = end > start ? (end - start - 1) / step + 1 : 0;
    } else {
        step = step < -INT64_MAX ? -INT64_MAX : step;
        start = clamp(start, 0, dim - 1);
        end = clamp(end, -1, dim - 1);
        size = start > end && dim > 0 ? (start - end - 1) / -step + 1 : 0;
    }
    slice->size[axis] = size;
    slice->start[axis] = size ? start : 0;
    slice->step[axis] = size > 1 ? step : 1; /* keeps step times stride inside the tensor */
}

rnl_status rnl_slice_resolve(const rnl_op_context *context, rnl_slice *out_slice)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    slice_lists lists = {.count = 0};
    uint32_t bits;
    for (size_t i = 0; i < RNL_MAX_RANK; i++) {
        lists.axes[i] = (int64_t)i;
        lists.steps[i] = 1;
    }
    *out_slice = (rnl_slice){.start = {0}};
    TRY(context->node->opset < 10 ? read_attributes(context, &lists) : read_inputs(context, &lists));
    TRY(rnl_axes_bits(lists.axes, lists.count, input->rank, &bits));
    for (size_t i = 0; i < input->rank; i++) {
        out_slice->step[i] = 1;
        out_slice->size[i] = input->shape[i];
    }
    for (size_t i = 0; i < lists.count; i++) {
        if (lists.steps[i] == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "a step of Slice is 0");
        size_t axis = (size_t)(lists.axes[i] < 0 ? lists.axes[i] + (int64_t)input->rank : lists.axes[i]);
        slice_axis(input->shape[axis], lists.starts[i], lists.ends[i], lists.steps[i], out_slice, axis);
    }
    return RNL_OK;
}

rnl_status rnl_infer_slice(rnl_op_context *context)
{
    rnl_slice slice;
    TRY(rnl_infer_begin(context));
    TRY(rnl_slice_resolve(context, &slice));
    return rnl_output_set(context, 0, context->inputs[0].dtype, slice.size, context->inputs[0].rank);
}

/* Only those that are known while planning. */
static rnl_status check_indices(const rnl_tensor_desc *indices, int64_t dim)
{
    int64_t count = rnl_desc_elements(indices);
    for (int64_t i = 0; indices->host && i < count; i++) {
        int64_t index = rnl_element_load(indices->host, i, indices->dtype).i;
        if (index < -dim || index >= dim)
            return FAIL(RNL_INVALID_ARGUMENT, "Gather takes element %" PRId64 " of an axis of %" PRId64, index, dim);
    }
    return RNL_OK;
}

rnl_status rnl_infer_gather(rnl_op_context *context)
{
    int64_t shape[2 * RNL_MAX_RANK];
    size_t axis, rank = 0;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *data = &context->inputs[0], *indices = &context->inputs[1];
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), data->rank, "axis", &axis));
    TRY(check_indices(indices, data->shape[axis]));
    for (size_t i = 0; i < axis; i++)
        shape[rank++] = data->shape[i];
    for (size_t i = 0; i < indices->rank; i++)
        shape[rank++] = indices->shape[i];
    for (size_t i = axis + 1; i < data->rank; i++)
        shape[rank++] = data->shape[i];
    return rnl_output_set(context, 0, data->dtype, shape, rank);
}
