/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_rows.h"
#include "graph/op_window.h"

#define BYTES (RNL_TYPE_BIT(RNL_U8) | RNL_TYPE_BIT(RNL_I8))

/* The weight's rank and kernel, and `group`; kernel_shape must agree where it is given. */
static rnl_status read_weight(const rnl_op_context *context, size_t weight_index, rnl_window *window)
{
    const rnl_tensor_desc *input = &context->inputs[0], *weight = &context->inputs[weight_index];
    bool fits = weight->rank == input->rank, named = rnl_node_attribute(context->node, "kernel_shape") != NULL;
    for (size_t i = 0; fits && i < window->spatial; i++) {
        int64_t kernel = weight->shape[2 + i];
        fits = kernel >= 1 && kernel <= INT32_MAX && (!named || kernel == window->kernel[i]);
        window->kernel[i] = kernel;
    }
    window->groups = rnl_node_int(context->node, "group", 1);
    if (fits && window->groups >= 1)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "%s of an input of shape %s with a weight of shape %s and group %" PRId64 " does not fit",
                context->node->op_type, rnl_shape_format(input->shape, input->rank).text,
                rnl_shape_format(weight->shape, weight->rank).text, window->groups);
}

static rnl_status bad_channels(const rnl_op_context *context, size_t weight_index, int64_t groups)
{
    const rnl_tensor_desc *input = &context->inputs[0], *weight = &context->inputs[weight_index];
    return FAIL(RNL_INVALID_ARGUMENT,
                "the channels of an input of shape %s do not fit a weight of shape %s with group "
                "%" PRId64,
                rnl_shape_format(input->shape, input->rank).text, rnl_shape_format(weight->shape, weight->rank).text,
                groups);
}

rnl_status rnl_window_conv(const rnl_op_context *context, size_t weight_index, rnl_window *out_window)
{
    rnl_auto_pad auto_pad;
    TRY(rnl_window_begin(context, out_window, &auto_pad));
    TRY(read_weight(context, weight_index, out_window));
    const int64_t *weight = context->inputs[weight_index].shape;
    int64_t channels, groups = out_window->groups;
    if (__builtin_mul_overflow(weight[1], groups, &channels) || channels != context->inputs[0].shape[1] ||
        weight[0] % groups != 0)
        return bad_channels(context, weight_index, groups);
    for (size_t i = 0; i < out_window->spatial; i++)
        TRY(rnl_window_slide(context, i, auto_pad, false, out_window));
    return RNL_OK;
}

rnl_status rnl_infer_conv(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    TRY(rnl_window_conv(context, 1, &window));
    int64_t channels = context->inputs[1].shape[0];
    if (rnl_input_exists(context, 2))
        TRY(rnl_check_vector(context, 2, channels));
    return rnl_window_output(context, 0, context->inputs[0].dtype, channels, &window);
}

typedef struct transpose_lists {
    rnl_auto_pad auto_pad;
    bool shape_given;
    int64_t output_padding[3], output_shape[3];
} transpose_lists;

static rnl_status read_transpose_lists(const rnl_node *node, size_t spatial, transpose_lists *lists)
{
    int64_t shape[5] = {0};
    size_t count;
    const int64_t *given = rnl_node_ints(node, "output_shape", &count);
    lists->shape_given = given && count > 0;
    TRY(rnl_window_ints(node, "output_padding", spatial, 0, lists->output_padding));
    if (!lists->shape_given)
        return RNL_OK;
    TRY(rnl_window_ints(node, "output_shape", count == spatial + 2 ? count : spatial, 0, shape));
    for (size_t i = 0; i < spatial; i++) /* some exporters name N and C, too */
        lists->output_shape[i] = shape[count - spatial + i];
    return RNL_OK;
}

/* One axis; `full` is the size without any padding. */
static bool transpose_axis(const transpose_lists *lists, size_t axis, int64_t size, rnl_window *window)
{
    int64_t stride = window->stride[axis], full, wanted;
    int64_t rest = rnl_window_extent(window, axis) + lists->output_padding[axis] - stride;
    if (__builtin_mul_overflow(stride, size, &wanted) || __builtin_add_overflow(wanted, rest, &full))
        return false;
    bool same = lists->auto_pad == RNL_AUTO_PAD_SAME_UPPER || lists->auto_pad == RNL_AUTO_PAD_SAME_LOWER;
    if (lists->shape_given || same) {
        wanted = lists->shape_given ? lists->output_shape[axis] : wanted;
        int64_t total = full > wanted ? full - wanted : 0;
        rnl_window_distribute(window, axis, total, lists->auto_pad);
        window->output[axis] = lists->shape_given ? wanted : full - total;
        return window->output[axis] >= 0 && wanted - full < stride;
    }
    window->output[axis] = full - window->pad_begin[axis] - window->pad_end[axis];
    return window->output[axis] >= 0;
}

rnl_status rnl_window_conv_transpose(const rnl_op_context *context, rnl_window *out_window)
{
    transpose_lists lists = {.shape_given = false};
    TRY(rnl_window_begin(context, out_window, &lists.auto_pad));
    TRY(read_weight(context, 1, out_window));
    TRY(read_transpose_lists(context->node, out_window->spatial, &lists));
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->shape[1] != context->inputs[1].shape[0] || input->shape[1] % out_window->groups != 0)
        return bad_channels(context, 1, out_window->groups);
    for (size_t i = 0; i < out_window->spatial; i++)
        if (!transpose_axis(&lists, i, input->shape[2 + i], out_window))
            return FAIL(RNL_INVALID_ARGUMENT,
                        "spatial axis %zu of ConvTranspose of shape %s has no output of size %" PRId64, i,
                        rnl_shape_format(input->shape, input->rank).text, out_window->output[i]);
    return RNL_OK;
}

rnl_status rnl_infer_conv_transpose(rnl_op_context *context)
{
    rnl_window window;
    int64_t channels;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    TRY(rnl_window_conv_transpose(context, &window));
    if (__builtin_mul_overflow(context->inputs[1].shape[1], window.groups, &channels))
        return bad_channels(context, 1, window.groups);
    if (rnl_input_exists(context, 2))
        TRY(rnl_check_vector(context, 2, channels));
    return rnl_window_output(context, 0, context->inputs[0].dtype, channels, &window);
}

/* One element, or one for each channel. */
static rnl_status check_channels(const rnl_op_context *context, size_t index, int64_t channels)
{
    if (rnl_input_exists(context, index) && context->inputs[index].rank == 1 &&
        context->inputs[index].shape[0] == channels)
        return RNL_OK;
    return rnl_check_single(context, index);
}

rnl_status rnl_infer_conv_integer(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, BYTES));
    TRY(rnl_check_zero_point(context, 0, 2));
    TRY(rnl_check_zero_point(context, 1, 3));
    TRY(rnl_window_conv(context, 1, &window));
    TRY(rnl_check_single(context, 2));
    TRY(check_channels(context, 3, context->inputs[1].shape[0]));
    return rnl_window_output(context, 0, RNL_I32, context->inputs[1].shape[0], &window);
}

rnl_status rnl_infer_qlinear_conv(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_qlinear(context, 0, 3, 6));
    TRY(rnl_check_dtype(context, 8, RNL_TYPE_BIT(RNL_I32)));
    TRY(rnl_window_conv(context, 3, &window));
    int64_t channels = context->inputs[3].shape[0];
    static const size_t singles[] = {1, 2, 6, 7};
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++)
        TRY(rnl_check_single(context, singles[i]));
    TRY(check_channels(context, 4, channels));
    TRY(check_channels(context, 5, channels));
    if (rnl_input_exists(context, 8))
        TRY(rnl_check_vector(context, 8, channels));
    return rnl_window_output(context, 0, context->inputs[7].dtype, channels, &window);
}
