/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce.h"
#include "ops/reduce_plan.h"

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

static const char *const names[RNL_REDUCE_WAYS] = {"reduce:portable", "reduce:group", "reduce:rows", "reduce:columns"};
static const char *const kernels[RNL_REDUCE_WAYS] = {"reduce_items", "reduce_groups", "reduce_rows", "reduce_columns"};

rnl_status rnl_op_reduce(rnl_step_list *list, rnl_reduce_op op, uint32_t axes, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    rnl_reduce_plan plan;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src}, 2, &index64), "operands of a reduction");
    TRY(check_type(op, src->dtype));
    TRY(check_shapes(axes, src, dst));
    const int64_t results = rnl_view_elements(dst);
    if (results == 0)
        return RNL_OK;
    rnl_reduce_plan_make(list->device, axes, (const rnl_view *[]){dst, src}, 2, 1, &plan);

    rnl_step_begin(&step, list, names[plan.way], index64);
    rnl_step_define(&step, "%s", options[op]);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_reduce_plan_add(&step, &plan);
    step.step.flops = (uint64_t)rnl_view_elements(src);
    step.step.bytes = (uint64_t)(rnl_view_elements(src) + results) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, plan.way >= RNL_REDUCE_ROWS ? "reduce_vectors.cl" : "reduce.cl", kernels[plan.way]);
}
