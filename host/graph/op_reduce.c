/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

/* Over an empty set of axes these return their input; the others still square it, take its magnitude or logarithm. */
static bool plain(const char *op_type)
{
    static const char *const names[] = {"ReduceMax",  "ReduceMean", "ReduceMin",
                                        "ReduceProd", "ReduceSum",  "ReduceLogSumExp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op_type, names[i]) == 0)
            return true;
    return false;
}

/* ReduceSum took the axes as an input from opset 13 on, the others from 18. */
static bool axes_are_input(const rnl_node *node)
{
    return node->opset >= (strcmp(node->op_type, "ReduceSum") == 0 ? 13 : 18);
}

rnl_status rnl_reduce_axes(const rnl_op_context *context, uint32_t *out_axes, bool *out_noop)
{
    const rnl_node *node = context->node;
    size_t rank = context->inputs[0].rank, count = 0;
    int64_t values[RNL_MAX_RANK];
    const int64_t *axes = values;
    *out_axes = 0;
    *out_noop = false;
    if (!axes_are_input(node)) {
        axes = rnl_node_ints(node, "axes", &count);
    } else if (rnl_input_exists(context, 1)) {
        TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
        TRY(rnl_desc_ints(&context->inputs[1], "axes (input 1)", values, RNL_MAX_RANK, &count));
    }
    if (count > 0)
        return rnl_axes_bits(axes, count, rank, out_axes);
    if (axes_are_input(node) && rnl_node_int(node, "noop_with_empty_axes", 0) != 0)
        *out_noop = plain(node->op_type);
    else
        *out_axes = (1u << rank) - 1;
    return RNL_OK;
}

rnl_status rnl_infer_reduce(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank = 0;
    uint32_t axes;
    bool noop;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_reduce_axes(context, &axes, &noop));
    bool keep = rnl_node_int(context->node, "keepdims", 1) != 0;
    for (size_t i = 0; i < input->rank; i++) {
        bool reduced = axes & (1u << i);
        if (!reduced || keep)
            shape[rank++] = reduced ? 1 : input->shape[i];
    }
    return rnl_output_set(context, 0, input->dtype, shape, rank);
}
