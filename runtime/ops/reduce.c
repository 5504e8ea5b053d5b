/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce.h"
#include "ops/reduce_plan.h"

#define GROUP 64 /* as in group.clh */

static const char *const options[RNL_REDUCE_COUNT] = {
#define X(name) "OP=REDUCE_" #name,
    RNL_REDUCE_LIST(X)
#undef X
};

static rnl_status check_shapes(uint32_t axes, const rnl_view *src, const rnl_view *dst)
{
    if (src->rank != dst->rank || src->dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "a reduction's result has its operand's rank and type");
    if (axes >> src->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "a reduction over an axis that the operand of rank %zu lacks", src->rank);
    for (size_t i = 0; i < src->rank; ++i)
        if (dst->shape[i] != (axes >> i & 1 ? 1 : src->shape[i]))
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of a reduction's result has size %lld", i,
                        (long long)dst->shape[i]);
    return RNL_OK;
}

static rnl_status check_type(rnl_reduce_op op, rnl_dtype dtype)
{
    if ((unsigned)op >= RNL_REDUCE_COUNT)
        return FAIL(RNL_INVALID_ARGUMENT, "unknown reduction %d", (int)op);
    const bool ordering = op == RNL_REDUCE_MAX || op == RNL_REDUCE_MIN;
    const bool logarithm = op == RNL_REDUCE_LOG_SUM || op == RNL_REDUCE_LOG_SUM_EXP;
    if ((dtype == RNL_BOOL && !ordering) || (logarithm && !rnl_dtype_is_float(dtype)))
        return FAIL(RNL_UNIMPLEMENTED, "reduction '%s' of %s", options[op], rnl_dtype_name(dtype));
    return RNL_OK;
}

/* A group reads neighbours at once, and gets few results done faster. */
bool rnl_reduce_by_group(const rnl_dims *taken, size_t src_index, int64_t results)
{
    if (taken->rank == 0)
        return false;
    const int64_t stride = taken->stride[src_index][taken->rank - 1];
    return taken->shape[taken->rank - 1] >= GROUP && (stride == 1 || results < 256);
}

void rnl_reduce_range(rnl_step_builder *step, bool by_group, int64_t results)
{
    rnl_step_range(step, 1, (size_t[3]){(size_t)results * (by_group ? GROUP : 1)}, (size_t[3]){GROUP});
}

void rnl_reduce_dims(rnl_step_builder *step, const rnl_dims *kept, const rnl_dims *taken)
{
    const int64_t elements = rnl_dims_elements(taken);
    const int64_t columns = taken->rank && elements ? taken->shape[taken->rank - 1] : 1;
    rnl_step_index(step, rnl_dims_elements(kept));
    rnl_step_int(step, kept->rank > 3);
    rnl_step_dims(step, kept->shape, kept->rank, 1);
    for (size_t v = 0; v < kept->views; ++v)
        rnl_step_dims(step, kept->stride[v], kept->rank, 0);
    rnl_step_index(step, elements / columns);
    rnl_step_int(step, taken->rank > 3);
    rnl_step_dims(step, taken->shape, elements ? taken->rank : 0, 1);
    for (size_t v = 0; v < taken->views; ++v)
        rnl_step_dims(step, taken->stride[v], taken->rank, 0);
}

rnl_status rnl_op_reduce(rnl_step_list *list, rnl_reduce_op op, uint32_t axes, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    const rnl_view *views[2] = {dst, src};
    rnl_dims kept, taken;
    rnl_step_builder step;
    TRY(rnl_views_check(views, 2, &index64), "operands of a reduction");
    TRY(check_type(op, src->dtype));
    TRY(check_shapes(axes, src, dst));
    const int64_t results = rnl_view_elements(dst);
    if (results == 0)
        return RNL_OK;
    rnl_dims_select(&kept, views, 2, ~axes);
    rnl_dims_select(&taken, views + 1, 1, axes);
    const bool by_group = rnl_reduce_by_group(&taken, 0, results);

    rnl_step_begin(&step, list, by_group ? "reduce:group" : "reduce:portable", index64);
    rnl_step_define(&step, "%s", options[op]);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_reduce_dims(&step, &kept, &taken);
    rnl_reduce_range(&step, by_group, results);
    step.step.flops = (uint64_t)rnl_view_elements(src);
    step.step.bytes = (uint64_t)(rnl_view_elements(src) + results) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "reduce.cl", by_group ? "reduce_groups" : "reduce_items");
}
