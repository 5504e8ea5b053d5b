/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce.h"
#include "ops/reduce_plan.h"

static rnl_status check(size_t first_axis, size_t last_axis, const rnl_view *src, const rnl_view *dst)
{
    if (!rnl_shapes_equal(src, dst) || src->dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "Softmax's result has its operand's shape and type");
    if (!rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "Softmax of %s", rnl_dtype_name(src->dtype));
    if (first_axis > last_axis || last_axis >= src->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "Softmax over axes %zu to %zu of a tensor of rank %zu", first_axis, last_axis,
                    src->rank);
    return RNL_OK;
}

static const char *const names[RNL_REDUCE_WAYS] = {"softmax:portable", "softmax:group", "softmax:rows",
                                                   "softmax:columns"};
static const char *const kernels[RNL_REDUCE_WAYS] = {"softmax_items", "softmax_groups", "softmax_rows",
                                                     "softmax_columns"};

rnl_status rnl_op_softmax(rnl_step_list *list, bool logarithm, size_t first_axis, size_t last_axis, const rnl_view *src,
                          const rnl_view *dst)
{
    bool index64 = false;
    rnl_reduce_plan plan;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src}, 2, &index64), "operands of Softmax");
    TRY(check(first_axis, last_axis, src, dst));
    const uint64_t elements = (uint64_t)rnl_view_elements(src);
    if (elements == 0)
        return RNL_OK;
    const uint32_t axes = ((2u << last_axis) - 1) & ~((1u << first_axis) - 1);
    rnl_reduce_plan_make(list->device, axes, (const rnl_view *[]){dst, src}, 2, 0, &plan);

    rnl_step_begin(&step, list, names[plan.way], index64);
    rnl_step_define(&step, "LOGARITHM=%d", logarithm);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_reduce_plan_add(&step, &plan);
    step.step.flops = 5 * elements;
    step.step.bytes = 2 * elements * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, plan.way >= RNL_REDUCE_ROWS ? "softmax_vectors.cl" : "softmax.cl", kernels[plan.way]);
}
