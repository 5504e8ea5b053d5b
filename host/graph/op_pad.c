/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"

enum { CONSTANT };

/* All begins, then all ends, of `*out_count` axes; `axes` comes in as 0, 1, …. */
static rnl_status read_pads(const rnl_op_context *context, int64_t *pads, int64_t *axes, size_t *out_count)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    size_t pad_count;
    *out_count = input->rank;
    if (context->node->opset < 11) {
        const int64_t *values = rnl_node_ints(context->node, "pads", &pad_count);
        for (size_t i = 0; i < pad_count && i < 2 * RNL_MAX_RANK; i++)
            pads[i] = values[i];
    } else {
        TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
        const rnl_tensor_desc *values = &context->inputs[1];
        rnl_tensor_desc flat = *values;
        if (values->rank == 2 && values->shape[0] == 1) { /* opset 11 allows [1, 2 * rank] */
            flat.rank = 1;
            flat.shape[0] = values->shape[1];
        }
        TRY(rnl_desc_ints(&flat, "pads (input 1)", pads, 2 * RNL_MAX_RANK, &pad_count));
        if (rnl_input_exists(context, 3))
            TRY(rnl_desc_ints(&context->inputs[3], "axes (input 3)", axes, RNL_MAX_RANK, out_count));
    }
    if (pad_count == 2 * *out_count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "Pad has %zu amounts for %zu axes of shape %s", pad_count, *out_count,
                rnl_shape_format(input->shape, input->rank).text);
}

/* What is left of an axis of `dim` elements, cropped first, is there to be repeated. */
static rnl_status check_mode(int mode, int64_t dim, int64_t begin, int64_t end)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    int64_t most = begin > end ? begin : end, least = begin > end ? end : begin, left;
    if (mode == CONSTANT || most <= 0)
        return RNL_OK;
    bool fits = !__builtin_add_overflow(dim, least < 0 ? least : 0, &left) && left > 0;
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "Pad of %" PRId64 " and %" PRId64 " does not fit an axis of %" PRId64 " in mode '%s'", begin, end, dim,
                names[mode]);
}

rnl_status rnl_pad_resolve(const rnl_op_context *context, rnl_pad *out_pad)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t pads[2 * RNL_MAX_RANK], axes[RNL_MAX_RANK];
    size_t count;
    uint32_t bits;
    *out_pad = (rnl_pad){.mode = 0};
    for (size_t i = 0; i < RNL_MAX_RANK; i++)
        axes[i] = (int64_t)i;
    TRY(rnl_choose(context->node, "mode", modes, context->node->opset < 19 ? 3 : 4, &out_pad->mode));
    TRY(read_pads(context, pads, axes, &count));
    TRY(rnl_axes_bits(axes, count, input->rank, &bits));
    for (size_t i = 0; i < count; i++) {
        size_t axis = (size_t)(axes[i] < 0 ? axes[i] + (int64_t)input->rank : axes[i]);
        out_pad->begin[axis] = pads[i];
        out_pad->end[axis] = pads[count + i];
        TRY(check_mode(out_pad->mode, input->shape[axis], pads[i], pads[count + i]));
    }
    return RNL_OK;
}

rnl_status rnl_infer_pad(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    rnl_pad pad;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    if (rnl_input_exists(context, 2)) {
        TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(input->dtype)));
        if (rnl_desc_elements(&context->inputs[2]) != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "constant_value (input 2) of Pad must be one element");
    }
    TRY(rnl_pad_resolve(context, &pad));
    for (size_t i = 0; i < input->rank; i++)
        if (__builtin_add_overflow(input->shape[i], pad.begin[i], &shape[i]) ||
            __builtin_add_overflow(shape[i], pad.end[i], &shape[i]) || shape[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "Pad of %" PRId64 " and %" PRId64 " does not fit axis %zu of shape %s",
                        pad.begin[i], pad.end[i], i, rnl_shape_format(input->shape, input->rank).text);
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}
