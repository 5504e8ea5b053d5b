/* SPDX-License-Identifier: Apache-2.0 */
/* DFT and STFT. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

/* A scalar, or a vector of one element, whose contents are known. */
static rnl_status read_int(const rnl_op_context *context, size_t index, const char *what, int64_t *out_value)
{
    size_t count;
    int64_t value;
    TRY(rnl_desc_ints(&context->inputs[index], what, &value, 1, &count));
    if (count != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s of %s must be one integer", what, context->node->op_type);
    *out_value = value;
    return RNL_OK;
}

static rnl_status check_components(const rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank >= 2 && (input->shape[input->rank - 1] == 1 || input->shape[input->rank - 1] == 2))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "%s needs a tensor whose last dimension is 1 (real) or 2 (complex), not one of shape %s",
                context->node->op_type, rnl_shape_format(input->shape, input->rank).text);
}

rnl_status rnl_dft_resolve(const rnl_op_context *context, rnl_dft_params *out_dft)
{
    const rnl_node *node = context->node;
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t axis = rnl_node_int(node, "axis", node->opset < 20 ? 1 : -2);
    bool onesided = rnl_node_int(node, "onesided", 0) != 0;
    TRY(check_components(context));
    if (rnl_input_exists(context, 2))
        TRY(read_int(context, 2, "axis (input 2)", &axis));
    TRY(rnl_axis_resolve(axis, input->rank, "axis", &out_dft->axis));
    if (out_dft->axis + 1 == input->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "DFT cannot run along the last axis, which holds real and imaginary parts");
    out_dft->inverse = rnl_node_int(node, "inverse", 0) != 0;
    out_dft->mirrored = out_dft->inverse && onesided;
    int64_t samples = input->shape[out_dft->axis];
    out_dft->points = out_dft->mirrored ? 2 * (samples - 1) : samples;
    if (rnl_input_exists(context, 1))
        TRY(read_int(context, 1, "dft_length (input 1)", &out_dft->points));
    if (out_dft->points < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "DFT of %" PRId64 " points", out_dft->points);
    out_dft->outputs = onesided && !out_dft->inverse ? out_dft->points / 2 + 1 : out_dft->points;
    return RNL_OK;
}

rnl_status rnl_infer_dft(rnl_op_context *context)
{
    rnl_dft_params dft;
    int64_t shape[RNL_MAX_RANK];
    TRY(rnl_infer_begin(context));
    TRY(rnl_dft_resolve(context, &dft));
    const rnl_tensor_desc *input = &context->inputs[0];
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = input->shape[i];
    shape[dft.axis] = dft.outputs;
    shape[input->rank - 1] = dft.mirrored ? 1 : 2;
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}

rnl_status rnl_stft_resolve(const rnl_op_context *context, rnl_stft_params *out_stft)
{
    const rnl_tensor_desc *signal = &context->inputs[0], *window = &context->inputs[2];
    bool has_window = rnl_input_exists(context, 2);
    TRY(check_components(context));
    if (signal->rank != 3)
        return FAIL(RNL_INVALID_ARGUMENT, "STFT needs a signal of batches, samples and components, not shape %s",
                    rnl_shape_format(signal->shape, signal->rank).text);
    if (has_window && window->rank != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "STFT's window has shape %s",
                    rnl_shape_format(window->shape, window->rank).text);
    out_stft->points = has_window ? window->shape[0] : signal->shape[1];
    TRY(read_int(context, 1, "frame_step (input 1)", &out_stft->step));
    if (rnl_input_exists(context, 3))
        TRY(read_int(context, 3, "frame_length (input 3)", &out_stft->points));
    if (out_stft->points < 1 || out_stft->step < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "STFT of frames of %" PRId64 " samples, every %" PRId64, out_stft->points,
                    out_stft->step);
    int64_t left = signal->shape[1] - out_stft->points;
    out_stft->frames = left < 0 ? 0 : 1 + left / out_stft->step;
    out_stft->samples = has_window && window->shape[0] < out_stft->points ? window->shape[0] : out_stft->points;
    out_stft->outputs = rnl_node_int(context->node, "onesided", 1) != 0 ? out_stft->points / 2 + 1 : out_stft->points;
    return RNL_OK;
}

rnl_status rnl_infer_stft(rnl_op_context *context)
{
    rnl_stft_params stft;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *signal = &context->inputs[0];
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(signal->dtype)));
    TRY(rnl_stft_resolve(context, &stft));
    return rnl_output_set(context, 0, signal->dtype, (const int64_t[]){signal->shape[0], stft.frames, stft.outputs, 2},
                          4);
}
