/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nll.h"
#include "ops/step_build.h"

enum { HAS_WEIGHTS = 1, HAS_IGNORED = 2, HAS_SHARE = 4 }; /* bits that nll.cl knows */

static rnl_status check_shapes(const rnl_view *scores, const rnl_view *target, const rnl_view *loss,
                               const rnl_view *share)
{
    bool fits = scores->rank >= 2 && target->rank == scores->rank - 1 && rnl_shapes_equal(target, loss) &&
                (!rnl_view_exists(share) || rnl_shapes_equal(share, loss));
    for (size_t i = 0; fits && i < target->rank; ++i)
        fits = target->shape[i] == scores->shape[i == 0 ? 0 : i + 1];
    return fits ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "the targets of a loss do not fit its scores");
}

static rnl_status check(const rnl_view *scores, const rnl_view *target, const rnl_view *weights, const rnl_view *loss,
                        const rnl_view *share)
{
    TRY(check_shapes(scores, target, loss, share));
    if (target->dtype != RNL_I32 && target->dtype != RNL_I64)
        return FAIL(RNL_INVALID_ARGUMENT, "the targets of a loss are %s", rnl_dtype_name(target->dtype));
    if (!rnl_dtype_is_float(scores->dtype) || !rnl_dtype_is_float(loss->dtype) ||
        (rnl_view_exists(share) && share->dtype != loss->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "a loss of %s from scores of %s", rnl_dtype_name(loss->dtype),
                    rnl_dtype_name(scores->dtype));
    if (rnl_view_exists(weights) &&
        (weights->rank != 1 || weights->shape[0] != scores->shape[1] || weights->dtype != scores->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "the weights of a loss do not fit its scores");
    return RNL_OK;
}

/* Views: loss, share, scores, target; sizes are the target's. */
static void collect_dims(const rnl_view *scores, const rnl_view *target, const rnl_view *loss, const rnl_view *share,
                         rnl_dims *out_dims)
{
    *out_dims = (rnl_dims){.rank = target->rank, .views = 4};
    for (size_t i = 0; i < target->rank; ++i) {
        out_dims->shape[i] = target->shape[i];
        out_dims->stride[0][i] = loss->stride[i];
        out_dims->stride[1][i] = rnl_view_exists(share) ? share->stride[i] : 0;
        out_dims->stride[2][i] = scores->stride[i == 0 ? 0 : i + 1];
        out_dims->stride[3][i] = target->stride[i];
    }
    rnl_dims_coalesce(out_dims);
}

static int32_t flags_of(const rnl_nll_params *params, const rnl_view *target, const rnl_view *weights,
                        const rnl_view *share)
{
    const bool possible = target->dtype == RNL_I64 || (params->ignored >= INT32_MIN && params->ignored <= INT32_MAX);
    return (rnl_view_exists(weights) ? HAS_WEIGHTS : 0) | (params->has_ignored && possible ? HAS_IGNORED : 0) |
           (rnl_view_exists(share) ? HAS_SHARE : 0);
}

rnl_status rnl_op_nll(rnl_step_list *list, const rnl_nll_params *params, const rnl_view *scores, const rnl_view *target,
                      const rnl_view *weights, const rnl_view *loss, const rnl_view *share)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){scores, target, weights, loss, share}, 5, &index64), "operands of a loss");
    TRY(check(scores, target, weights, loss, share));
    const uint64_t count = (uint64_t)rnl_view_elements(loss);
    if (count == 0)
        return RNL_OK;
    if (scores->shape[1] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a loss of scores of 0 classes");
    collect_dims(scores, target, loss, share, &dims);
    rnl_step_begin(&step, list, "nll:portable", index64);
    rnl_step_type(&step, "T", scores->dtype);
    rnl_step_type(&step, "T_DST", loss->dtype);
    rnl_step_type(&step, "T_INDEX", target->dtype);
    rnl_step_view(&step, loss);
    rnl_step_view(&step, share);
    rnl_step_view(&step, scores);
    rnl_step_view(&step, target);
    rnl_step_view(&step, weights);
    rnl_step_index(&step, scores->shape[1]);
    rnl_step_index(&step, scores->stride[1]);
    rnl_step_index(&step, rnl_view_exists(weights) ? weights->stride[0] : 0);
    rnl_step_value(&step, &params->ignored, sizeof params->ignored);
    rnl_step_int(&step, flags_of(params, target, weights, share));
    rnl_step_rows(&step, &dims);
    step.step.bytes =
        count * (rnl_dtype_bytes(scores->dtype) + rnl_dtype_bytes(target->dtype) + 2 * rnl_dtype_bytes(loss->dtype));
    rnl_step_writes(&step, loss->slot);
    if (rnl_view_exists(share))
        rnl_step_writes(&step, share->slot);
    return rnl_step_end(&step, "nll.cl", "nll");
}
