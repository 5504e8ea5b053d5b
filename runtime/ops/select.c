/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, TopK and sums so far. */
#include "ops/select.h"
#include "ops/lines.h"

/* `dst` has src's shape but for `size` along the axis. */
static rnl_status check_shape(const char *name, size_t axis, const rnl_view *src, const rnl_view *dst, int64_t size)
{
    bool fits = axis < src->rank && dst->rank == src->rank;
    for (size_t i = 0; i < src->rank && fits; ++i)
        fits = dst->shape[i] == (i == axis ? size : src->shape[i]);
    return fits ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "the result of %s has the wrong shape", name);
}

static rnl_status check_type(const char *name, const rnl_view *view, rnl_dtype dtype)
{
    if (view->dtype == dtype)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the result of %s is %s, not %s", name, rnl_dtype_name(dtype),
                rnl_dtype_name(view->dtype));
}

rnl_status rnl_op_arg(rnl_step_list *list, bool largest, bool last, size_t axis, const rnl_view *src,
                      const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src}, 2, &index64), "operands of ArgMax");
    TRY(check_shape("ArgMax", axis, src, dst, 1));
    TRY(check_type("ArgMax", dst, RNL_I64));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (src->shape[axis] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "ArgMax over axis %zu, which has size 0", axis);
    rnl_lines_select(&dims, (const rnl_view *[]){dst, src}, 2, axis);
    const int64_t lines = rnl_dims_elements(&dims);
    const bool groups = rnl_lines_take_groups(list->device, lines, src->shape[axis]);

    rnl_step_begin(&step, list, groups ? "arg:group" : "arg:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_define(&step, "LARGEST=%d", largest);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_lines_add(&step, &dims);
    rnl_step_index(&step, src->shape[axis]);
    rnl_step_index(&step, src->stride[axis]);
    rnl_step_int(&step, last);
    if (groups)
        rnl_lines_groups(&step, lines);
    else
        rnl_lines_range(&step, lines);
    step.step.bytes = (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "arg.cl", groups ? "arg_groups" : "arg_items");
}

rnl_status rnl_op_topk(rnl_step_list *list, bool largest, size_t axis, const rnl_view *src, const rnl_view *values,
                       const rnl_view *places)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){values, places, src}, 3, &index64), "operands of TopK");
    const int64_t count = axis < values->rank ? values->shape[axis] : 0;
    TRY(check_shape("TopK", axis, src, values, count));
    TRY(check_shape("TopK", axis, src, places, count));
    TRY(check_type("TopK", values, src->dtype));
    TRY(check_type("TopK", places, RNL_I64));
    if (count > src->shape[axis])
        return FAIL(RNL_INVALID_ARGUMENT, "TopK takes %lld of %lld elements", (long long)count,
                    (long long)src->shape[axis]);
    if (rnl_view_elements(values) == 0)
        return RNL_OK;
    rnl_lines_select(&dims, (const rnl_view *[]){values, places, src}, 3, axis);
    const int64_t lines = rnl_dims_elements(&dims);
    const bool groups = rnl_lines_take_groups(list->device, lines, src->shape[axis]);

    rnl_step_begin(&step, list, groups ? "topk:group" : "topk:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_define(&step, "LARGEST=%d", largest);
    rnl_step_view(&step, values);
    rnl_step_view(&step, places);
    rnl_step_view(&step, src);
    rnl_lines_add(&step, &dims);
    rnl_step_index(&step, src->shape[axis]);
    rnl_step_index(&step, count);
    rnl_step_index(&step, values->stride[axis]);
    rnl_step_index(&step, places->stride[axis]);
    rnl_step_index(&step, src->stride[axis]);
    if (groups)
        rnl_lines_groups(&step, lines);
    else
        rnl_lines_range(&step, lines);
    step.step.bytes = (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(src->dtype) +
                      (uint64_t)rnl_view_elements(values) * (rnl_dtype_bytes(src->dtype) + sizeof(int64_t));
    rnl_step_writes(&step, values->slot);
    rnl_step_writes(&step, places->slot);
    return rnl_step_end(&step, "topk.cl", groups ? "topk_groups" : "topk_items");
}

static rnl_view backwards(const rnl_view *view, size_t axis)
{
    rnl_view result = *view;
    result.offset += (view->shape[axis] - 1) * view->stride[axis];
    result.stride[axis] = -view->stride[axis];
    return result;
}

rnl_status rnl_op_scan(rnl_step_list *list, const rnl_scan_params *params, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    const size_t axis = params->axis;
    TRY(rnl_views_check((const rnl_view *[]){dst, src}, 2, &index64), "operands of a cumulative sum");
    TRY(check_shape("a cumulative sum", axis, src, dst, axis < src->rank ? src->shape[axis] : 0));
    TRY(check_type("a cumulative sum", dst, src->dtype));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const rnl_view from = params->reverse ? backwards(src, axis) : *src;
    const rnl_view to = params->reverse ? backwards(dst, axis) : *dst;
    rnl_lines_select(&dims, (const rnl_view *[]){&to, &from}, 2, axis);
    const int64_t lines = rnl_dims_elements(&dims);
    const bool groups = rnl_lines_take_groups(list->device, lines, src->shape[axis]);

    rnl_step_begin(&step, list, groups ? "scan:group" : "scan:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_define(&step, "PRODUCT=%d", params->product);
    rnl_step_view(&step, &to);
    rnl_step_view(&step, &from);
    rnl_lines_add(&step, &dims);
    rnl_step_index(&step, src->shape[axis]);
    rnl_step_index(&step, to.stride[axis]);
    rnl_step_index(&step, from.stride[axis]);
    rnl_step_int(&step, params->exclusive);
    if (groups)
        rnl_lines_groups(&step, lines);
    else
        rnl_lines_range(&step, lines);
    step.step.flops = (uint64_t)rnl_view_elements(src);
    step.step.bytes = 2 * step.step.flops * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "scan.cl", groups ? "scan_groups" : "scan_items");
}
