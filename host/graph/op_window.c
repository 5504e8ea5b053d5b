/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, and what its windows share with convolution's. */
#include "graph/op_window.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_window_ints(const rnl_node *node, const char *name, size_t count, int64_t least, int64_t *out_values)
{
    size_t given;
    const int64_t *values = rnl_node_ints(node, name, &given);
    if (!values)
        return RNL_OK;
    if (given != count)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of %s has %zu elements; %zu are needed", name, node->op_type,
                    given, count);
    for (size_t i = 0; i < count; i++) {
        if (values[i] < least || values[i] > INT32_MAX)
            return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of %s holds %" PRId64, name, node->op_type, values[i]);
        out_values[i] = values[i];
    }
    return RNL_OK;
}

rnl_status rnl_window_begin(const rnl_op_context *context, rnl_window *out_window, rnl_auto_pad *out_auto_pad)
{
    static const char *const choices[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const rnl_node *node = context->node;
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t pads[6] = {0};
    int choice;
    *out_window = (rnl_window){.groups = 1};
    *out_auto_pad = RNL_AUTO_PAD_NOTSET;
    if (input->rank < 3)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs a tensor of rank 3 or more, not shape %s", node->op_type,
                    rnl_shape_format(input->shape, input->rank).text);
    if (input->rank > 5)
        return FAIL(RNL_UNIMPLEMENTED, "%s is implemented for up to 3 spatial dimensions, not for shape %s",
                    node->op_type, rnl_shape_format(input->shape, input->rank).text);
    size_t spatial = out_window->spatial = input->rank - 2;
    for (size_t i = 0; i < spatial; i++)
        out_window->stride[i] = out_window->dilation[i] = 1;
    TRY(rnl_choose(node, "auto_pad", choices, 4, &choice));
    TRY(rnl_window_ints(node, "strides", spatial, 1, out_window->stride));
    TRY(rnl_window_ints(node, "dilations", spatial, 1, out_window->dilation));
    TRY(rnl_window_ints(node, "kernel_shape", spatial, 1, out_window->kernel));
    TRY(rnl_window_ints(node, "pads", 2 * spatial, 0, pads));
    *out_auto_pad = (rnl_auto_pad)choice;
    for (size_t i = 0; i < spatial && choice == RNL_AUTO_PAD_NOTSET; i++) {
        out_window->pad_begin[i] = pads[i];
        out_window->pad_end[i] = pads[spatial + i];
    }
    return RNL_OK;
}

int64_t rnl_window_extent(const rnl_window *window, size_t axis)
{
    return (window->kernel[axis] - 1) * window->dilation[axis] + 1; /* both fit 31 bits */
}

void rnl_window_distribute(rnl_window *window, size_t axis, int64_t total, rnl_auto_pad auto_pad)
{
    int64_t smaller = total / 2, greater = total - smaller;
    window->pad_begin[axis] = auto_pad == RNL_AUTO_PAD_SAME_UPPER ? smaller : greater;
    window->pad_end[axis] = auto_pad == RNL_AUTO_PAD_SAME_UPPER ? greater : smaller;
}

/* ceil(size / stride) outputs; false on overflow. */
static bool same_size(rnl_window *window, size_t axis, int64_t size, rnl_auto_pad auto_pad)
{
    int64_t stride = window->stride[axis], total, outputs = size / stride + (size % stride != 0);
    if (__builtin_add_overflow((outputs - 1) * stride, rnl_window_extent(window, axis), &total))
        return false;
    window->output[axis] = outputs;
    rnl_window_distribute(window, axis, total > size ? total - size : 0, auto_pad);
    return true;
}

rnl_status rnl_window_slide(const rnl_op_context *context, size_t axis, rnl_auto_pad auto_pad, bool ceil_mode,
                            rnl_window *window)
{
    int64_t size = context->inputs[0].shape[2 + axis], stride = window->stride[axis], room;
    bool fits;
    if (auto_pad == RNL_AUTO_PAD_SAME_UPPER || auto_pad == RNL_AUTO_PAD_SAME_LOWER) {
        fits = same_size(window, axis, size, auto_pad);
    } else {
        int64_t margin = window->pad_begin[axis] + window->pad_end[axis] - rnl_window_extent(window, axis);
        fits = !__builtin_add_overflow(size, margin, &room) && (room >= 0 || size == 0);
        int64_t steps = fits && room >= 0 ? room / stride : -1;
        uint64_t next = (uint64_t)(steps + 1) * (uint64_t)stride; /* unsigned: at most twice the greatest size */
        if (ceil_mode && steps >= 0 && room % stride > 0 && next < (uint64_t)size + (uint64_t)window->pad_begin[axis])
            steps++; /* a window must not start in the padding at the end */
        window->output[axis] = steps + 1;
    }
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "a window of %" PRId64 " does not fit %" PRId64 " with %" PRId64 " + %" PRId64
                " of padding (spatial axis %zu of shape %s)",
                rnl_window_extent(window, axis), size, window->pad_begin[axis], window->pad_end[axis], axis,
                rnl_shape_format(context->inputs[0].shape, context->inputs[0].rank).text);
}

rnl_status rnl_window_pool(const rnl_op_context *context, rnl_window *out_window)
{
    const rnl_node *node = context->node;
    rnl_auto_pad auto_pad;
    TRY(rnl_window_begin(context, out_window, &auto_pad));
    if (!rnl_node_attribute(node, "kernel_shape"))
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs the attribute 'kernel_shape'", node->op_type);
    bool ceil_mode = rnl_node_int(node, "ceil_mode", 0) != 0;
    for (size_t i = 0; i < out_window->spatial; i++) {
        int64_t begin = out_window->pad_begin[i], end = out_window->pad_end[i], kernel = out_window->kernel[i];
        if ((begin >= kernel || end >= kernel) && strcmp(node->op_type, "LpPool") != 0)
            return FAIL(RNL_INVALID_ARGUMENT, "%s pads by %" PRId64 ", which must be less than its window of %" PRId64,
                        node->op_type, begin > end ? begin : end, kernel);
        TRY(rnl_window_slide(context, i, auto_pad, ceil_mode, out_window));
    }
    return RNL_OK;
}

rnl_status rnl_window_output(rnl_op_context *context, size_t index, rnl_dtype dtype, int64_t channels,
                             const rnl_window *window)
{
    int64_t shape[5] = {context->inputs[0].shape[0], channels};
    for (size_t i = 0; i < window->spatial; i++)
        shape[2 + i] = window->output[i];
    return rnl_output_set(context, index, dtype, shape, 2 + window->spatial);
}

rnl_status rnl_infer_pool(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_begin(context));
    TRY(rnl_window_pool(context, &window));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_window_output(context, 0, input->dtype, input->shape[1], &window));
    return rnl_window_output(context, 1, RNL_I64, input->shape[1], &window); /* MaxPool's Indices */
}

rnl_status rnl_infer_global_pool(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank < 2)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs a tensor of rank 2 or more, not shape %s", context->node->op_type,
                    rnl_shape_format(input->shape, input->rank).text);
    int64_t shape[RNL_MAX_RANK] = {input->shape[0], input->shape[1], 1, 1, 1, 1, 1, 1};
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}
