/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/trees.h"
#include "ops/step_build.h"

static rnl_status check(const rnl_trees *trees, const rnl_view *src, const rnl_view *dst, bool *out_index64)
{
    const rnl_view *integers[] = {&trees->nodes, &trees->roots, &trees->begins, &trees->targets};
    const rnl_view *numbers[] = {&trees->splits, &trees->members, &trees->weights};
    bool fits = src->rank == 2 && dst->rank == 2 && src->shape[0] == dst->shape[0] && src->dtype == dst->dtype &&
                (dst->dtype == RNL_F32 || dst->dtype == RNL_F64);
    for (size_t i = 0; i < 4; ++i)
        fits = fits && integers[i]->dtype == RNL_I32 && rnl_view_is_row_major(integers[i]);
    for (size_t i = 0; i < 3; ++i)
        fits = fits && numbers[i]->dtype == dst->dtype && rnl_view_is_row_major(numbers[i]);
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "an ensemble of trees whose parts do not fit its features");
    return rnl_views_check((const rnl_view *[]){src, dst, &trees->nodes, &trees->splits, &trees->members, &trees->roots,
                                                &trees->begins, &trees->targets, &trees->weights},
                           9, out_index64);
}

rnl_status rnl_op_trees(rnl_step_list *list, const rnl_trees *trees, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check(trees, src, dst, &index64), "operands of an ensemble of trees");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const int64_t sizes[] = {dst->shape[0], rnl_view_elements(&trees->roots), rnl_view_elements(&trees->splits),
                             dst->shape[1]};
    rnl_step_begin(&step, list, "trees:portable", index64);
    rnl_step_type(&step, "T", dst->dtype);
    rnl_step_view(&step, dst);
    rnl_step_indices(&step, 2, dst->stride, 2, 0);
    rnl_step_view(&step, src);
    rnl_step_indices(&step, 2, src->stride, 2, 0);
    rnl_step_view(&step, &trees->nodes);
    rnl_step_view(&step, &trees->splits);
    rnl_step_view(&step, &trees->members);
    rnl_step_view(&step, &trees->roots);
    rnl_step_view(&step, &trees->begins);
    rnl_step_view(&step, &trees->targets);
    rnl_step_view(&step, &trees->weights);
    rnl_step_indices(&step, 4, sizes, 4, 0);
    rnl_step_int(&step, (int32_t)trees->aggregate);
    rnl_step_float(&step, trees->nothing);
    rnl_step_range(&step, 1, (size_t[3]){(size_t)sizes[0]}, (size_t[3]){16});
    step.step.bytes = (uint64_t)(rnl_view_elements(src) + rnl_view_elements(dst)) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "trees.cl", "trees");
}
