/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_loss_reduction(const rnl_node *node, int *out_reduction)
{
    static const char *const reductions[] = {"mean", "sum", "none"};
    return rnl_choose(node, "reduction", reductions, 3, out_reduction);
}

/* The scores' shape without the classes, into `shape`. */
static rnl_status check_target(const rnl_op_context *context, int64_t shape[RNL_MAX_RANK])
{
    const rnl_tensor_desc *scores = &context->inputs[0], *target = &context->inputs[1];
    if (scores->rank < 2)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs scores of rank 2 or more, not shape %s", context->node->op_type,
                    rnl_shape_format(scores->shape, scores->rank).text);
    bool fits = target->rank == scores->rank - 1;
    for (size_t i = 0; i + 1 < scores->rank; i++) {
        shape[i] = scores->shape[i == 0 ? 0 : i + 1];
        fits = fits && target->shape[i] == shape[i];
    }
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the targets of %s have shape %s where its scores have %s",
                context->node->op_type, rnl_shape_format(target->shape, target->rank).text,
                rnl_shape_format(scores->shape, scores->rank).text);
}

rnl_status rnl_infer_loss(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    int reduction;
    TRY(rnl_infer_begin(context));
    TRY(rnl_loss_reduction(context->node, &reduction));
    TRY(check_target(context, shape));
    const rnl_tensor_desc *scores = &context->inputs[0];
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(scores->dtype)));
    if (rnl_input_exists(context, 2))
        TRY(rnl_check_vector(context, 2, scores->shape[1]));
    TRY(rnl_output_set(context, 0, scores->dtype, shape, reduction == 2 ? scores->rank - 1 : 0));
    return context->output_count > 1 ? rnl_output_like(context, 1, scores->dtype) : RNL_OK;
}
