/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/normalize.h"
#include "ops/instruction.h"
#include "ops/reduce_plan.h"

static rnl_status check(uint32_t axes, const rnl_view *src, const rnl_view *scale, const rnl_view *bias,
                        const rnl_view *dst)
{
    const bool narrows = src->dtype == RNL_F32 && dst->dtype == RNL_BF16;
    if (!rnl_shapes_equal(src, dst) || (src->dtype != dst->dtype && !narrows) || scale->dtype != src->dtype ||
        bias->dtype != src->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "a normalisation's operands have one type, and its result their shape");
    if (!rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "normalisation of %s", rnl_dtype_name(src->dtype));
    if (axes >> src->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "a normalisation over an axis that the operand of rank %zu lacks", src->rank);
    return RNL_OK;
}

static rnl_status spread(const rnl_view *view, const rnl_view *like, rnl_view *out_view)
{
    *out_view = *like;
    out_view->slot = view->slot;
    out_view->offset = view->offset;
    return rnl_view_broadcast(view, like->rank, like->shape, out_view->stride);
}

static const char *const names[RNL_REDUCE_WAYS] = {"normalize:portable", "normalize:group", "normalize:rows",
                                                   "normalize:columns"};
static const char *const kernels[RNL_REDUCE_WAYS] = {"normalize_items", "normalize_groups", "normalize_rows",
                                                     "normalize_columns"};

static rnl_status append(rnl_step_list *list, bool rms, uint32_t axes, float epsilon, const rnl_view *src,
                         const rnl_view *scale, const rnl_view *bias, const rnl_view *dst)
{
    bool index64 = false;
    rnl_view factors, shifts;
    const rnl_view *views[4] = {dst, src, &factors, &shifts};
    rnl_reduce_plan plan;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src, scale, bias}, 4, &index64), "operands of a normalisation");
    TRY(check(axes, src, scale, bias, dst));
    TRY(spread(scale, src, &factors), "a normalisation's scale");
    TRY(spread(bias, src, &shifts), "a normalisation's bias");
    const uint64_t elements = (uint64_t)rnl_view_elements(src);
    if (elements == 0)
        return RNL_OK;
    rnl_reduce_plan_make(list->device, axes, views, 4, 0, &plan);

    rnl_step_begin(&step, list, names[plan.way], index64);
    rnl_step_type(&step, "T", src->dtype);
    if (dst->dtype != src->dtype)
        rnl_step_type(&step, "TO", dst->dtype);
    if (dst->dtype != src->dtype && plan.way >= RNL_REDUCE_ROWS && plan.vector >= 8 &&
        rnl_device_runs(list->device, RNL_INSTRUCTION_BF16))
        rnl_step_define(&step, "HARDWARE_BF16");
    if (rms)
        rnl_step_define(&step, "RMS");
    for (size_t i = 0; i < 4; ++i)
        rnl_step_view(&step, views[i]);
    rnl_step_float(&step, epsilon);
    rnl_reduce_plan_add(&step, &plan);
    step.step.flops = 8 * elements;
    step.step.bytes = elements * (rnl_dtype_bytes(src->dtype) + rnl_dtype_bytes(dst->dtype));
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, plan.way >= RNL_REDUCE_ROWS ? "normalize_vectors.cl" : "normalize.cl",
                        kernels[plan.way]);
}

rnl_status rnl_op_normalize(rnl_step_list *list, uint32_t axes, float epsilon, const rnl_view *src,
                            const rnl_view *scale, const rnl_view *bias, const rnl_view *dst)
{
    return append(list, false, axes, epsilon, src, scale, bias, dst);
}

rnl_status rnl_op_normalize_rms(rnl_step_list *list, uint32_t axes, float epsilon, const rnl_view *src,
                                const rnl_view *scale, const rnl_view *dst)
{
    return append(list, true, axes, epsilon, src, scale, scale, dst);
}
