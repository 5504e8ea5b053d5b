/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im, MaxUnpool, DeformConv, CenterCropPad. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include "graph/op_window.h"

/* ---- Col2Im --------------------------------------------------------------------------------------------------- */

/* Along axis `i`: how many blocks fit; false when none does, or on overflow. */
static bool count_blocks(rnl_col2im *c, size_t i)
{
    int64_t extent, room;
    if (__builtin_mul_overflow(c->block[i] - 1, c->dilation[i], &extent) ||
        __builtin_add_overflow(c->image[i], c->pad_begin[i] + c->pad_end[i] - 1, &room) ||
        __builtin_sub_overflow(room, extent, &room) || room < 0)
        return false;
    c->blocks[i] = room / c->stride[i] + 1;
    return true;
}

static rnl_status read_windows(const rnl_op_context *context, rnl_col2im *c)
{
    int64_t pads[2 * RNL_MAX_RANK] = {0};
    for (size_t i = 0; i < c->spatial; i++)
        c->stride[i] = c->dilation[i] = 1;
    TRY(rnl_window_ints(context->node, "strides", c->spatial, 1, c->stride));
    TRY(rnl_window_ints(context->node, "dilations", c->spatial, 1, c->dilation));
    TRY(rnl_window_ints(context->node, "pads", 2 * c->spatial, 0, pads));
    for (size_t i = 0; i < c->spatial; i++) {
        c->pad_begin[i] = pads[i];
        c->pad_end[i] = pads[c->spatial + i];
    }
    return RNL_OK;
}

rnl_status rnl_col2im_resolve(const rnl_op_context *context, rnl_col2im *out)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    size_t blocks;
    int64_t columns = 1;
    out->taps = 1;
    TRY(rnl_desc_ints(&context->inputs[1], "image_shape (input 1)", out->image, RNL_MAX_RANK - 2, &out->spatial));
    TRY(rnl_desc_ints(&context->inputs[2], "block_shape (input 2)", out->block, RNL_MAX_RANK - 2, &blocks));
    if (input->rank != 3 || out->spatial == 0 || blocks != out->spatial)
        return FAIL(RNL_INVALID_ARGUMENT, "Col2Im of shape %s into images of rank %zu by blocks of rank %zu",
                    rnl_shape_format(input->shape, input->rank).text, out->spatial, blocks);
    TRY(read_windows(context, out));
    for (size_t i = 0; i < out->spatial; i++)
        if (out->image[i] < 1 || out->block[i] < 1 || out->block[i] > INT32_MAX || !count_blocks(out, i) ||
            __builtin_mul_overflow(out->taps, out->block[i], &out->taps) ||
            __builtin_mul_overflow(columns, out->blocks[i], &columns))
            return FAIL(RNL_INVALID_ARGUMENT, "Col2Im's blocks do not fit the image along axis %zu", i);
    if (input->shape[1] % out->taps != 0 || input->shape[2] != columns)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "Col2Im of shape %s, where blocks have %" PRId64 " elements and there are %" PRId64 " of them",
                    rnl_shape_format(input->shape, input->rank).text, out->taps, columns);
    return RNL_OK;
}

rnl_status rnl_infer_col2im(rnl_op_context *context)
{
    rnl_col2im c;
    int64_t shape[RNL_MAX_RANK];
    TRY(rnl_infer_begin(context));
    TRY(rnl_col2im_resolve(context, &c));
    shape[0] = context->inputs[0].shape[0];
    shape[1] = context->inputs[0].shape[1] / c.taps;
    for (size_t i = 0; i < c.spatial; i++)
        shape[2 + i] = c.image[i];
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, 2 + c.spatial);
}

/* ---- MaxUnpool ------------------------------------------------------------------------------------------------ */

rnl_status rnl_max_unpool_shape(const rnl_op_context *context, int64_t out_shape[RNL_MAX_RANK])
{
    rnl_window window;
    rnl_auto_pad auto_pad;
    TRY(rnl_window_begin(context, &window, &auto_pad));
    if (!rnl_node_attribute(context->node, "kernel_shape"))
        return FAIL(RNL_INVALID_ARGUMENT, "MaxUnpool needs the attribute 'kernel_shape'");
    const int64_t *input = context->inputs[0].shape;
    out_shape[0] = input[0];
    out_shape[1] = input[1];
    for (size_t i = 0; i < window.spatial; i++) {
        int64_t size, rim = window.kernel[i] - window.pad_begin[i] - window.pad_end[i];
        if (__builtin_mul_overflow(input[2 + i] - 1, window.stride[i], &size) ||
            __builtin_add_overflow(size, rim, &size) || size < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "MaxUnpool has no result along spatial axis %zu", i);
        out_shape[2 + i] = size;
    }
    return RNL_OK;
}

rnl_status rnl_infer_max_unpool(rnl_op_context *context)
{
    int64_t inner[RNL_MAX_RANK] = {0}, given[RNL_MAX_RANK];
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    const rnl_tensor_desc *input = &context->inputs[0], *indices = &context->inputs[1];
    size_t rank = input->rank;
    TRY(rnl_max_unpool_shape(context, inner));
    bool fits = indices->rank == rank;
    for (size_t i = 0; i < rank && fits; i++)
        fits = indices->shape[i] == input->shape[i];
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "MaxUnpool's indices have another shape than what they place");
    if (!rnl_input_exists(context, 2))
        return rnl_output_set(context, 0, input->dtype, inner, rank);
    TRY(rnl_desc_ints(&context->inputs[2], "output_shape (input 2)", given, RNL_MAX_RANK, &rank));
    fits = rank == input->rank;
    for (size_t i = 0; i < rank && fits; i++)
        fits = given[i] >= inner[i];
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "MaxUnpool's output_shape is less than %s, which is what it makes",
                    rnl_shape_format(inner, input->rank).text);
    return rnl_output_set(context, 0, input->dtype, given, rank);
}

/* ---- DeformConv ----------------------------------------------------------------------------------------------- */

static rnl_status check_groups(const rnl_op_context *context, const rnl_window *window, int64_t offset_groups)
{
    const rnl_tensor_desc *input = &context->inputs[0], *weight = &context->inputs[1];
    int64_t groups = window->groups, channels = input->shape[1];
    if (groups < 1 || weight->shape[0] % groups != 0 || channels % groups != 0 ||
        channels / groups != weight->shape[1] || offset_groups < 1 || channels % offset_groups != 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "DeformConv of shape %s by weights of shape %s in %" PRId64 " groups, with offsets in %" PRId64,
                    rnl_shape_format(input->shape, input->rank).text,
                    rnl_shape_format(weight->shape, weight->rank).text, groups, offset_groups);
    return RNL_OK;
}

/* Offsets and mask: so many numbers for each tap, offset group and result. */
static rnl_status check_moves(const rnl_op_context *context, size_t index, int64_t channels, const rnl_window *window)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    if (input->rank == 4 && input->shape[0] == context->inputs[0].shape[0] && input->shape[1] == channels &&
        input->shape[2] == window->output[0] && input->shape[3] == window->output[1])
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "input %zu of DeformConv has shape %s; %" PRId64 " channels of %" PRId64 "x%" PRId64 " are needed",
                index, rnl_shape_format(input->shape, input->rank).text, channels, window->output[0],
                window->output[1]);
}

rnl_status rnl_window_deform(const rnl_op_context *context, rnl_window *out_window)
{
    const rnl_tensor_desc *weight = &context->inputs[1];
    int64_t offset_groups = rnl_node_int(context->node, "offset_group", 1);
    rnl_auto_pad auto_pad;
    if (context->inputs[0].rank != 4 || weight->rank != 4)
        return FAIL(RNL_UNIMPLEMENTED, "DeformConv is implemented for images with two spatial dimensions");
    TRY(rnl_window_begin(context, out_window, &auto_pad));
    out_window->groups = rnl_node_int(context->node, "group", 1);
    TRY(check_groups(context, out_window, offset_groups));
    int64_t taps = 1;
    for (size_t i = 0; i < 2; i++) {
        if (weight->shape[2 + i] < 1 || weight->shape[2 + i] > INT16_MAX ||
            (rnl_node_attribute(context->node, "kernel_shape") && out_window->kernel[i] != weight->shape[2 + i]))
            return FAIL(RNL_INVALID_ARGUMENT, "attribute 'kernel_shape' of DeformConv differs from the weights' shape");
        out_window->kernel[i] = weight->shape[2 + i];
        taps *= out_window->kernel[i];
        TRY(rnl_window_slide(context, i, auto_pad, false, out_window));
    }
    TRY(check_moves(context, 2, 2 * taps * offset_groups, out_window));
    return check_moves(context, 4, taps * offset_groups, out_window);
}

rnl_status rnl_infer_deform_conv(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 4));
    TRY(rnl_window_deform(context, &window));
    TRY(rnl_check_vector(context, 3, context->inputs[1].shape[0]));
    return rnl_window_output(context, 0, context->inputs[0].dtype, context->inputs[1].shape[0], &window);
}

/* ---- CenterCropPad -------------------------------------------------------------------------------------------- */

rnl_status rnl_infer_center_crop_pad(rnl_op_context *context)
{
    int64_t sizes[RNL_MAX_RANK], shape[RNL_MAX_RANK];
    size_t count, given;
    uint32_t bits;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t *axes = rnl_node_ints(context->node, "axes", &given);
    TRY(rnl_desc_ints(&context->inputs[1], "shape (input 1)", sizes, RNL_MAX_RANK, &count));
    if (count != (axes ? given : input->rank))
        return FAIL(RNL_INVALID_ARGUMENT, "CenterCropPad has %zu sizes for %zu axes", count,
                    axes ? given : input->rank);
    if (axes)
        TRY(rnl_axes_bits(axes, given, input->rank, &bits));
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = input->shape[i];
    for (size_t i = 0; i < count; i++) {
        size_t axis = i;
        if (axes)
            TRY(rnl_axis_resolve(axes[i], input->rank, "axes", &axis));
        if (sizes[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "CenterCropPad to a size of %" PRId64, sizes[i]);
        shape[axis] = sizes[i];
    }
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}
