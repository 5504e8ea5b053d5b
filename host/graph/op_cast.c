/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike, BitCast. */
#include "graph/op_cast.h"
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

static const char *const round_modes[] = {"up", "down", "nearest"}; /* in the order of rnl_round_mode */

rnl_status rnl_cast_narrowing(const rnl_node *node, rnl_narrowing *out_narrowing)
{
    int mode;
    *out_narrowing = RNL_NARROWING_DEFAULT;
    TRY(rnl_choose(node, "round_mode", round_modes, sizeof round_modes / sizeof *round_modes, &mode));
    out_narrowing->saturate = rnl_node_int(node, "saturate", 1) != 0;
    out_narrowing->mode = (rnl_round_mode)mode;
    return RNL_OK;
}

static rnl_status target_type(const rnl_op_context *context, rnl_dtype *out_dtype)
{
    int64_t to;
    *out_dtype = RNL_DTYPE_NONE;
    TRY(rnl_require_int(context->node, "to", &to));
    if (to < 0 || to > 31 || !(RNL_TYPES_EVERY & RNL_TYPE_BIT(to)))
        return FAIL(RNL_UNIMPLEMENTED, "%s to ONNX type %" PRId64 " is not implemented", context->node->op_type, to);
    *out_dtype = (rnl_dtype)to;
    return RNL_OK;
}

rnl_status rnl_infer_cast(rnl_op_context *context)
{
    rnl_dtype to;
    rnl_narrowing narrowing;
    TRY(rnl_infer_begin(context));
    TRY(target_type(context, &to));
    TRY(rnl_cast_narrowing(context->node, &narrowing));
    return rnl_output_like(context, 0, to);
}

rnl_status rnl_infer_cast_like(rnl_op_context *context)
{
    rnl_narrowing narrowing;
    TRY(rnl_infer_begin(context));
    TRY(rnl_cast_narrowing(context->node, &narrowing));
    return rnl_output_like(context, 0, context->inputs[1].dtype);
}

rnl_status rnl_infer_bit_cast(rnl_op_context *context)
{
    rnl_dtype to;
    TRY(rnl_infer_begin(context));
    TRY(target_type(context, &to));
    rnl_dtype from = context->inputs[0].dtype;
    if (rnl_dtype_width(from) != rnl_dtype_width(to))
        return FAIL(RNL_INVALID_ARGUMENT, "BitCast cannot make %s of %s: %zu bits of %zu", rnl_dtype_name(to),
                    rnl_dtype_name(from), rnl_dtype_width(to), rnl_dtype_width(from));
    return rnl_output_like(context, 0, to);
}

/* CastLike's second input gives its type alone. */
rnl_status rnl_evaluate_cast(rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    rnl_dtype from = input->dtype, to = context->outputs[0].dtype;
    bool narrows = rnl_dtype_is_small_float(to);
    rnl_narrowing narrowing;
    TRY(rnl_cast_narrowing(context->node, &narrowing));
    if (!rnl_desc_known(input))
        return FAIL(RNL_FAILED_PRECONDITION, "the contents of input 0 of %s are not known while planning",
                    context->node->op_type);
    int64_t count = rnl_desc_elements(input);
    if (from == to && count > 0)
        memcpy(context->results[0], input->host, (size_t)count * rnl_dtype_bytes(to));
    for (int64_t i = 0; i < count && from != to; i++) {
        rnl_number x = rnl_number_convert(rnl_element_load(input->host, i, from), from, to);
        if (narrows)
            ((uint8_t *)context->results[0])[i] = rnl_small_float_encode(to, x.f, narrowing);
        else
            rnl_element_store(context->results[0], i, to, x);
    }
    return RNL_OK;
}
