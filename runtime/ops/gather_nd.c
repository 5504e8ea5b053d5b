/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/indexing.h"
#include "ops/step_build.h"

static rnl_status check(size_t batch, const rnl_view *data, const rnl_view *indices, const rnl_view *dst)
{
    const size_t outer = indices->rank ? indices->rank - 1 : 0;
    const int64_t tuple = indices->rank ? indices->shape[outer] : 0;
    if (indices->dtype != RNL_I32 && indices->dtype != RNL_I64)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherND's indices are %s", rnl_dtype_name(indices->dtype));
    if (dst->dtype != data->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherND of %s gives the same, not %s", rnl_dtype_name(data->dtype),
                    rnl_dtype_name(dst->dtype));
    if (indices->rank == 0 || batch > outer || tuple < 1 || tuple > (int64_t)(data->rank - batch) ||
        batch > data->rank || dst->rank != outer + data->rank - batch - (size_t)tuple)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherND of rank %zu with indices of rank %zu and %zu batch dimensions",
                    data->rank, indices->rank, batch);
    for (size_t i = 0; i < dst->rank; ++i) {
        const int64_t size = i < outer ? indices->shape[i] : data->shape[i - outer + batch + (size_t)tuple];
        if (dst->shape[i] != size || (i < batch && data->shape[i] != size))
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of GatherND's result has size %lld, not %lld", i,
                        (long long)dst->shape[i], (long long)size);
    }
    return RNL_OK;
}

/* Views: dst, data, indices. */
static void collect_dims(size_t batch, const rnl_view *data, const rnl_view *indices, const rnl_view *dst,
                         rnl_dims *out_dims)
{
    const size_t outer = indices->rank - 1, tuple = (size_t)indices->shape[outer];
    *out_dims = (rnl_dims){.rank = dst->rank, .views = 3};
    for (size_t i = 0; i < dst->rank; ++i) {
        out_dims->shape[i] = dst->shape[i];
        out_dims->stride[0][i] = dst->stride[i];
        if (i < outer)
            out_dims->stride[2][i] = indices->stride[i];
        if (i < batch || i >= outer)
            out_dims->stride[1][i] = data->stride[i < batch ? i : i - outer + batch + tuple];
    }
    rnl_dims_coalesce(out_dims);
}

rnl_status rnl_op_gather_nd(rnl_step_list *list, size_t batch, const rnl_view *data, const rnl_view *indices,
                            const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){data, indices, dst}, 3, &index64), "operands of GatherND");
    TRY(check(batch, data, indices, dst));
    const uint64_t count = (uint64_t)rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    if (rnl_view_elements(data) == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherND from a tensor without elements");
    collect_dims(batch, data, indices, dst, &dims);

    const size_t outer = indices->rank - 1, tuple = (size_t)indices->shape[outer];
    rnl_step_begin(&step, list, "gather_nd:portable", index64);
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_type(&step, "T_INDEX", indices->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, data);
    rnl_step_view(&step, indices);
    rnl_step_int(&step, (int32_t)tuple);
    rnl_step_index(&step, indices->stride[outer]);
    rnl_step_indices(&step, RNL_MAX_RANK, data->shape + batch, tuple, 1);
    rnl_step_indices(&step, RNL_MAX_RANK, data->stride + batch, tuple, 0);
    rnl_step_rows(&step, &dims);
    step.step.bytes = 2 * count * rnl_dtype_bytes(dst->dtype) +
                      (uint64_t)rnl_view_elements(indices) * rnl_dtype_bytes(indices->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "gather_nd.cl", "gather_nd");
}
