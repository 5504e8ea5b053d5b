/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/lookup.h"
#include "ops/step_build.h"

static bool fits(const rnl_view *src, const rnl_view *keys, const rnl_view *values, const rnl_view *dst)
{
    const bool keyed = src->dtype == RNL_I64 || src->dtype == RNL_F32 || src->dtype == RNL_F64;
    return keyed && keys->dtype == src->dtype && values->dtype == dst->dtype && rnl_shapes_equal(src, dst) &&
           keys->rank == 1 && values->rank == 1 && keys->shape[0] < INT32_MAX &&
           values->shape[0] == keys->shape[0] + 1 && rnl_view_is_row_major(keys) && rnl_view_is_row_major(values);
}

rnl_status rnl_op_lookup(rnl_step_list *list, const rnl_view *src, const rnl_view *keys, const rnl_view *values,
                         const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims = {.rank = dst->rank, .views = 2};
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src, keys, values}, 4, &index64), "operands of a table");
    if (!fits(src, keys, values, dst))
        return FAIL(RNL_INVALID_ARGUMENT, "a table whose keys or values do not fit its operands");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    for (size_t i = 0; i < dst->rank; ++i) {
        dims.shape[i] = dst->shape[i];
        dims.stride[0][i] = dst->stride[i];
        dims.stride[1][i] = src->stride[i];
    }
    rnl_dims_coalesce(&dims);
    rnl_step_begin(&step, list, "lookup:portable", index64);
    rnl_step_type(&step, "T_KEY", src->dtype);
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, keys);
    rnl_step_view(&step, values);
    rnl_step_rows(&step, &dims);
    rnl_step_int(&step, (int32_t)keys->shape[0]);
    step.step.bytes = (uint64_t)rnl_view_elements(dst) * (rnl_dtype_bytes(dst->dtype) + rnl_dtype_bytes(src->dtype));
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "lookup.cl", "lookup");
}
