/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/ngrams.h"
#include "ops/step_build.h"

static rnl_status check(const rnl_ngrams *ngrams, const rnl_view *src, const rnl_view *dst, bool *out_index64)
{
    const rnl_view *integers[] = {&ngrams->starts, &ngrams->lengths, &ngrams->begins, &ngrams->columns};
    bool fits = src->rank == 2 && dst->rank == 2 && src->shape[0] == dst->shape[0] && src->dtype == RNL_I64 &&
                dst->dtype == RNL_F32 && ngrams->pool.dtype == RNL_I64 && ngrams->weights.dtype == RNL_F32 &&
                ngrams->distance >= 1 && rnl_view_is_row_major(&ngrams->pool) &&
                rnl_view_is_row_major(&ngrams->weights) &&
                rnl_view_elements(&ngrams->begins) == rnl_view_elements(&ngrams->columns) + 1;
    for (size_t i = 0; i < 4; ++i)
        fits = fits && integers[i]->dtype == RNL_I32 && rnl_view_is_row_major(integers[i]);
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "n-grams whose lists do not fit their rows");
    return rnl_views_check((const rnl_view *[]){src, dst, &ngrams->pool, &ngrams->starts, &ngrams->lengths,
                                                &ngrams->begins, &ngrams->columns, &ngrams->weights},
                           8, out_index64);
}

rnl_status rnl_op_ngrams(rnl_step_list *list, const rnl_ngrams *ngrams, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check(ngrams, src, dst, &index64), "operands of n-grams");
    const int64_t rows = dst->shape[0], columns = rnl_view_elements(&ngrams->columns), items = src->shape[1];
    if (rows == 0 || columns == 0)
        return RNL_OK;
    const int64_t distance = ngrams->distance < items ? ngrams->distance : items > 0 ? items : 1;
    rnl_step_begin(&step, list, "ngrams:portable", index64);
    rnl_step_view(&step, dst);
    rnl_step_indices(&step, 2, dst->stride, 2, 0);
    rnl_step_view(&step, src);
    rnl_step_indices(&step, 2, src->stride, 2, 0);
    rnl_step_view(&step, &ngrams->pool);
    rnl_step_view(&step, &ngrams->starts);
    rnl_step_view(&step, &ngrams->lengths);
    rnl_step_view(&step, &ngrams->begins);
    rnl_step_view(&step, &ngrams->columns);
    rnl_step_view(&step, &ngrams->weights);
    rnl_step_indices(&step, 4, (const int64_t[]){rows, columns, items, distance}, 4, 0);
    rnl_step_int(&step, ngrams->once);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)columns, (size_t)rows}, (size_t[3]){16, 4});
    step.step.bytes = (uint64_t)rnl_view_elements(src) * sizeof(int64_t) + (uint64_t)(rows * columns) * sizeof(float);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "ngrams.cl", "ngrams");
}
