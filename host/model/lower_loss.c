/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: halves are computed and summed in float32. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/nll.h"
#include <string.h>

enum { MEAN, SUM, NONE }; /* rnl_loss_reduction */

static rnl_dtype computed_in(rnl_dtype dtype)
{
    return dtype == RNL_F64 ? RNL_F64 : RNL_F32;
}

/* The logarithms of the likelihoods, which are an output, too. */
static rnl_status log_softmax(rnl_lowering *lowering, rnl_view *scores)
{
    rnl_view source, target;
    TRY(rnl_compose_cast(lowering, scores, computed_in(scores->dtype), &source));
    TRY(rnl_lower_scratch(lowering, source.dtype, source.rank, source.shape, RNL_LAYOUT_ROW_MAJOR, scores));
    TRY(rnl_op_softmax(lowering->list, true, 1, 1, &source, scores));
    if (!rnl_lower_has_output(lowering, 1))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_lower_copy(lowering, scores, &target);
}

/* The scalar as a tensor that a reduction over all axes gives. */
static rnl_view as_reduced(const rnl_view *scalar, size_t rank)
{
    rnl_view view = *scalar;
    view.rank = rank;
    for (size_t i = 0; i < rank; i++) {
        view.shape[i] = 1;
        view.stride[i] = 0;
    }
    return view;
}

static rnl_status reduce_loss(rnl_lowering *lowering, int reduction, const rnl_view *loss, const rnl_view *share,
                              const rnl_view *target)
{
    const uint32_t axes = (1u << loss->rank) - 1;
    const rnl_view reduced = as_reduced(target, loss->rank);
    rnl_view sum, count;
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_SUM, axes, loss, &sum));
    if (reduction == MEAN) {
        TRY(rnl_compose_reduce(lowering, RNL_REDUCE_SUM, axes, share, &count));
        TRY(rnl_compose_binary(lowering, RNL_MAP_DIV, &sum, &count, &sum));
    }
    return rnl_lower_copy(lowering, &sum, &reduced);
}

static rnl_status lower_nll(rnl_lowering *lowering, const rnl_view *scores)
{
    const rnl_node *node = lowering->context.node;
    const rnl_nll_params params = {.has_ignored = rnl_node_attribute(node, "ignore_index") != NULL,
                                   .ignored = rnl_node_int(node, "ignore_index", 0)};
    rnl_view classes, weights, loss, share = {.slot = RNL_NO_SLOT}, target;
    int reduction;
    TRY(rnl_loss_reduction(node, &reduction));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &classes));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &weights));
    if (rnl_view_exists(&weights))
        TRY(rnl_compose_cast(lowering, &weights, scores->dtype, &weights));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (reduction == NONE)
        return rnl_op_nll(lowering->list, &params, scores, &classes, &weights, &target, &share);
    const rnl_dtype dtype = computed_in(scores->dtype);
    TRY(rnl_lower_scratch(lowering, dtype, classes.rank, classes.shape, RNL_LAYOUT_ROW_MAJOR, &loss));
    if (reduction == MEAN)
        TRY(rnl_lower_scratch(lowering, dtype, classes.rank, classes.shape, RNL_LAYOUT_ROW_MAJOR, &share));
    TRY(rnl_op_nll(lowering->list, &params, scores, &classes, &weights, &loss, &share));
    return reduce_loss(lowering, reduction, &loss, &share, &target);
}

rnl_status rnl_lower_loss(rnl_lowering *lowering)
{
    rnl_view scores;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &scores));
    if (strcmp(lowering->context.node->op_type, "SoftmaxCrossEntropyLoss") == 0)
        TRY(log_softmax(lowering, &scores));
    return lower_nll(lowering, &scores);
}
