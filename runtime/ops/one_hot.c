/* SPDX-License-Identifier: Apache-2.0 */
/* Ones at an index, triangles, and sequences of different lengths. */
#include "ops/lines.h"
#include "ops/select.h"

static rnl_status check_same(const char *name, const rnl_view *src, const rnl_view *dst)
{
    if (src->dtype == dst->dtype && rnl_shapes_equal(src, dst))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the result of %s has its operand's shape and type", name);
}

/* A view as one of dst's rank that repeats, with size 1 along the axis. */
static rnl_status broadcast(const rnl_view *view, const rnl_view *dst, size_t axis, rnl_view *out_view)
{
    *out_view = *dst;
    out_view->shape[axis] = 1;
    TRY(rnl_view_broadcast(view, dst->rank, out_view->shape, out_view->stride));
    out_view->slot = view->slot;
    out_view->offset = view->offset;
    out_view->dtype = view->dtype;
    return RNL_OK;
}

rnl_status rnl_op_one_hot(rnl_step_list *list, size_t axis, const rnl_view *indices, const rnl_view *values,
                          const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    rnl_view which;
    TRY(rnl_views_check((const rnl_view *[]){dst, indices, values}, 3, &index64), "operands of OneHot");
    if (axis >= dst->rank || values->rank != 1 || values->shape[0] != 2 || values->dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "OneHot takes two values of its result's type, and one of its axes");
    TRY(broadcast(indices, dst, axis, &which), "indices of OneHot");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_lines_select(&dims, (const rnl_view *[]){dst, &which}, 2, axis);

    rnl_step_begin(&step, list, "one_hot:portable", index64);
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_type(&step, "T_INDEX", indices->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, &which);
    rnl_step_view(&step, values);
    rnl_lines_add(&step, &dims);
    rnl_step_index(&step, dst->shape[axis]);
    rnl_step_index(&step, dst->stride[axis]);
    rnl_step_index(&step, values->stride[0]);
    rnl_lines_columns(&step, dst->shape[axis], rnl_dims_elements(&dims));
    step.step.bytes = (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "one_hot.cl", "one_hot");
}

rnl_status rnl_op_triangle(rnl_step_list *list, bool upper, const rnl_view *src, const rnl_view *diagonal,
                           const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims = {.rank = dst->rank, .views = 2};
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, src, diagonal}, 3, &index64), "operands of Trilu");
    TRY(check_same("Trilu", src, dst));
    if (dst->rank < 2 || diagonal->dtype != RNL_I64 || rnl_view_elements(diagonal) != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "Trilu takes matrices, and one int64 as the diagonal");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    for (size_t i = 0; i < dst->rank; ++i) { /* not merged: rows and columns are counted */
        dims.shape[i] = dst->shape[i];
        dims.stride[0][i] = dst->stride[i];
        dims.stride[1][i] = src->stride[i];
    }
    rnl_step_begin(&step, list, "triangle:portable", index64);
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_define(&step, "UPPER=%d", upper);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, diagonal);
    rnl_step_rows(&step, &dims);
    step.step.bytes = 2 * (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "triangle.cl", "triangle");
}

static rnl_status begin_sequence(rnl_step_builder *step, rnl_step_list *list, size_t axis, const rnl_view *src,
                                 const rnl_view *numbers, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_view which;
    const rnl_view *views[] = {dst, src, &which}; /* sizes are those of src's lines, which dst's may exceed */
    TRY(rnl_views_check((const rnl_view *[]){dst, src, numbers}, 3, &index64), "operands of a sequence");
    if (axis >= dst->rank || (numbers->dtype != RNL_I32 && numbers->dtype != RNL_I64))
        return FAIL(RNL_INVALID_ARGUMENT, "sequences along axis %zu by numbers of %s", axis,
                    rnl_dtype_name(numbers->dtype));
    TRY(broadcast(numbers, src, axis, &which), "numbers of a sequence");
    rnl_lines_select(&dims, views, 3, axis);
    rnl_step_begin(step, list, "sequence:portable", index64);
    rnl_step_type(step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_type(step, "T_INDEX", numbers->dtype);
    rnl_step_view(step, dst);
    rnl_step_view(step, src);
    rnl_step_view(step, &which);
    rnl_lines_add(step, &dims);
    rnl_step_index(step, src->shape[axis]);
    rnl_step_index(step, dst->stride[axis]);
    rnl_step_index(step, src->stride[axis]);
    rnl_lines_columns(step, src->shape[axis], rnl_dims_elements(&dims));
    step->step.bytes = 2 * (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(step, dst->slot);
    return RNL_OK;
}

rnl_status rnl_op_reverse_sequence(rnl_step_list *list, size_t axis, const rnl_view *src, const rnl_view *lengths,
                                   const rnl_view *dst)
{
    rnl_step_builder step;
    TRY(check_same("ReverseSequence", src, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    TRY(begin_sequence(&step, list, axis, src, lengths, dst));
    return rnl_step_end(&step, "sequence.cl", "reverse_sequence");
}

rnl_status rnl_op_write_sequence(rnl_step_list *list, bool circular, size_t axis, const rnl_view *src,
                                 const rnl_view *starts, const rnl_view *dst)
{
    rnl_step_builder step;
    bool fits = axis < dst->rank && src->rank == dst->rank && src->dtype == dst->dtype;
    for (size_t i = 0; i < dst->rank && fits; ++i)
        fits = i == axis ? src->shape[i] <= dst->shape[i] : src->shape[i] == dst->shape[i];
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "what is written along axis %zu does not fit", axis);
    if (rnl_view_elements(src) == 0)
        return RNL_OK;
    TRY(begin_sequence(&step, list, axis, src, starts, dst));
    rnl_step_index(&step, dst->shape[axis]);
    rnl_step_int(&step, circular);
    return rnl_step_end(&step, "sequence.cl", "write_sequence");
}
