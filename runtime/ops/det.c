/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/det.h"
#include "ops/step_build.h"
#include <string.h>

rnl_dtype rnl_det_work_type(rnl_dtype dtype)
{
    return dtype == RNL_F64 ? RNL_F64 : RNL_F32;
}

static rnl_status check(const rnl_view *src, const rnl_view *work, const rnl_view *dst, bool *out_index64)
{
    const bool square = src->rank >= 2 && src->shape[src->rank - 1] == src->shape[src->rank - 2];
    const bool fits = square && dst->rank == src->rank - 2 && dst->dtype == src->dtype &&
                      memcmp(dst->shape, src->shape, dst->rank * sizeof *dst->shape) == 0;
    if (!fits || !rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "determinants of %s and rank %zu into %s and rank %zu",
                    rnl_dtype_name(src->dtype), src->rank, rnl_dtype_name(dst->dtype), dst->rank);
    if (work->dtype != rnl_det_work_type(src->dtype) || !rnl_view_is_row_major(work) ||
        rnl_view_elements(work) < rnl_view_elements(src))
        return FAIL(RNL_INVALID_ARGUMENT, "determinants of %lld elements with room for %lld",
                    (long long)rnl_view_elements(src), (long long)rnl_view_elements(work));
    return rnl_views_check((const rnl_view *[]){src, work, dst}, 3, out_index64);
}

rnl_status rnl_op_det(rnl_step_list *list, const rnl_view *src, const rnl_view *work, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check(src, work, dst, &index64), "operands of a determinant");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const int64_t n = src->shape[src->rank - 1];
    rnl_dims dims = {.rank = dst->rank, .views = 2};
    memcpy(dims.shape, dst->shape, dst->rank * sizeof *dims.shape);
    memcpy(dims.stride[0], src->stride, dst->rank * sizeof *dims.shape);
    memcpy(dims.stride[1], dst->stride, dst->rank * sizeof *dims.shape);
    rnl_step_begin(&step, list, "det:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_type(&step, "T_WORK", work->dtype);
    rnl_step_view(&step, src);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, work);
    rnl_step_index(&step, n);
    rnl_step_indices(&step, 2, src->stride + src->rank - 2, 2, 0);
    rnl_step_rows(&step, &dims);
    step.step.flops = (uint64_t)rnl_view_elements(src) * (uint64_t)n * 2 / 3;
    step.step.bytes = (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    rnl_step_writes(&step, work->slot);
    return rnl_step_end(&step, "det.cl", "det");
}
