/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/indexing.h"
#include "ops/lines.h"

/* Lines are written by a work-item each, along the dimensions of `along` in order. */
typedef struct scatter_job {
    rnl_scatter_op op;
    const rnl_view *indices, *updates, *dst;
    rnl_dims lines; /* views: dst, indices, updates */
    rnl_dims along; /* views: indices, updates; not reordered */
    size_t tuple, first_axis;
    int64_t tuple_stride;
} scatter_job;

static rnl_status check_types(const rnl_view *indices, const rnl_view *updates, const rnl_view *dst)
{
    if (indices->dtype != RNL_I32 && indices->dtype != RNL_I64)
        return FAIL(RNL_INVALID_ARGUMENT, "the indices of a scatter are %s", rnl_dtype_name(indices->dtype));
    if (updates->dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "updates of %s for data of %s", rnl_dtype_name(updates->dtype),
                    rnl_dtype_name(dst->dtype));
    return RNL_OK;
}

/* Merged with the dimension before it where both are one run. */
static void add_along(rnl_dims *along, int64_t size, int64_t indices_stride, int64_t updates_stride)
{
    size_t at = along->rank;
    if (at > 0 && along->stride[0][at - 1] == indices_stride * size &&
        along->stride[1][at - 1] == updates_stride * size) {
        size *= along->shape[--at];
    }
    along->shape[at] = size;
    along->stride[0][at] = indices_stride;
    along->stride[1][at] = updates_stride;
    along->rank = at + 1;
}

static void add_line(rnl_dims *lines, int64_t size, int64_t dst_stride, int64_t indices_stride, int64_t updates_stride)
{
    lines->shape[lines->rank] = size;
    lines->stride[0][lines->rank] = dst_stride;
    lines->stride[1][lines->rank] = indices_stride;
    lines->stride[2][lines->rank++] = updates_stride;
}

static rnl_status append(rnl_step_list *list, scatter_job *job, bool index64)
{
    static const char *const reductions[] = {NULL, "REDUCE=OP_ADD", "REDUCE=OP_MUL", "REDUCE=OP_MAX", "REDUCE=OP_MIN"};
    const rnl_dtype type = job->op == RNL_SCATTER_NONE ? rnl_dtype_bits(job->dst->dtype) : job->dst->dtype;
    rnl_step_builder step;
    rnl_dims_coalesce(&job->lines);
    rnl_step_begin(&step, list, "scatter:portable", index64);
    rnl_step_type(&step, "T0", type);
    rnl_step_type(&step, "T_DST", type);
    rnl_step_type(&step, "T_INDEX", job->indices->dtype);
    if (reductions[job->op])
        rnl_step_define(&step, "%s", reductions[job->op]);
    rnl_step_view(&step, job->dst);
    rnl_step_view(&step, job->indices);
    rnl_step_view(&step, job->updates);
    rnl_step_int(&step, (int32_t)job->tuple);
    rnl_step_index(&step, job->tuple_stride);
    rnl_step_indices(&step, RNL_MAX_RANK, job->dst->shape + job->first_axis, job->tuple, 1);
    rnl_step_indices(&step, RNL_MAX_RANK, job->dst->stride + job->first_axis, job->tuple, 0);
    rnl_lines_add(&step, &job->lines);
    rnl_lines_add(&step, &job->along);
    rnl_lines_range(&step, rnl_dims_elements(&job->lines));
    step.step.bytes = (uint64_t)rnl_view_elements(job->updates) * rnl_dtype_bytes(job->dst->dtype) * 2 +
                      (uint64_t)rnl_view_elements(job->indices) * rnl_dtype_bytes(job->indices->dtype);
    rnl_step_writes(&step, job->dst->slot);
    return rnl_step_end(&step, "scatter.cl", "scatter_lines");
}

rnl_status rnl_op_scatter_elements(rnl_step_list *list, rnl_scatter_op op, size_t axis, const rnl_view *indices,
                                   const rnl_view *updates, const rnl_view *dst)
{
    bool index64 = false;
    scatter_job job = {op, indices, updates, dst, {.views = 3}, {.views = 2}, 1, axis, 0};
    TRY(rnl_views_check((const rnl_view *[]){indices, updates, dst}, 3, &index64), "operands of ScatterElements");
    TRY(check_types(indices, updates, dst));
    if (axis >= dst->rank || dst->rank != indices->rank || !rnl_shapes_equal(indices, updates))
        return FAIL(RNL_INVALID_ARGUMENT, "ScatterElements along axis %zu of rank %zu with indices of rank %zu", axis,
                    dst->rank, indices->rank);
    if (rnl_view_elements(indices) == 0 || rnl_view_elements(dst) == 0)
        return RNL_OK;
    for (size_t i = 0; i < dst->rank; ++i) {
        if (i != axis && indices->shape[i] > dst->shape[i])
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of ScatterElements' data has only %lld elements", i,
                        (long long)dst->shape[i]);
        if (i == axis)
            add_along(&job.along, indices->shape[i], indices->stride[i], updates->stride[i]);
        else
            add_line(&job.lines, indices->shape[i], dst->stride[i], indices->stride[i], updates->stride[i]);
    }
    return append(list, &job, index64);
}

static rnl_status check_nd(const rnl_view *indices, const rnl_view *updates, const rnl_view *dst)
{
    const size_t outer = indices->rank ? indices->rank - 1 : 0;
    const int64_t tuple = indices->rank ? indices->shape[outer] : 0;
    if (indices->rank == 0 || tuple < 1 || tuple > (int64_t)dst->rank ||
        updates->rank != outer + dst->rank - (size_t)tuple)
        return FAIL(RNL_INVALID_ARGUMENT, "ScatterND of rank %zu with indices of rank %zu and updates of rank %zu",
                    dst->rank, indices->rank, updates->rank);
    for (size_t i = 0; i < updates->rank; ++i) {
        const int64_t size = i < outer ? indices->shape[i] : dst->shape[i - outer + (size_t)tuple];
        if (updates->shape[i] != size)
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of ScatterND's updates has size %lld, not %lld", i,
                        (long long)updates->shape[i], (long long)size);
    }
    return RNL_OK;
}

rnl_status rnl_op_scatter_nd(rnl_step_list *list, rnl_scatter_op op, const rnl_view *indices, const rnl_view *updates,
                             const rnl_view *dst)
{
    bool index64 = false;
    scatter_job job = {op, indices, updates, dst, {.views = 3}, {.views = 2}, 0, 0, 0};
    TRY(rnl_views_check((const rnl_view *[]){indices, updates, dst}, 3, &index64), "operands of ScatterND");
    TRY(check_types(indices, updates, dst));
    TRY(check_nd(indices, updates, dst));
    if (rnl_view_elements(updates) == 0)
        return RNL_OK;
    const size_t outer = indices->rank - 1;
    job.tuple = (size_t)indices->shape[outer];
    job.tuple_stride = indices->stride[outer];
    for (size_t i = 0; i < outer; ++i)
        add_along(&job.along, indices->shape[i], indices->stride[i], updates->stride[i]);
    for (size_t i = outer; i < updates->rank; ++i)
        add_line(&job.lines, updates->shape[i], dst->stride[i - outer + job.tuple], 0, updates->stride[i]);
    return append(list, &job, index64);
}
