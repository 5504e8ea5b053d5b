/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

#define ITEM_RESULTS 1024 /* that a work-item makes on a CPU */

/* One call, its spatial dimensions spread to (d, h, w). */
typedef struct pool_problem {
    rnl_pool_op op;
    const rnl_pool_params *params;
    const rnl_view *src, *dst, *indices;
    bool index64;
    int64_t src_size[3], dst_size[3], window[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
} pool_problem;

static rnl_status check_types(rnl_pool_op op, const rnl_view *src, const rnl_view *dst, const rnl_view *indices)
{
    static const char *const names[] = {"max", "average", "Lp"};
    const bool supported =
        rnl_dtype_is_float(src->dtype) || (op == RNL_POOL_MAX && (src->dtype == RNL_I8 || src->dtype == RNL_U8));
    if (!supported)
        return FAIL(RNL_UNIMPLEMENTED, "%s pooling of %s", names[op], rnl_dtype_name(src->dtype));
    if (dst->dtype != src->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "pooling of %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(dst->dtype));
    if (rnl_view_exists(indices) && (op != RNL_POOL_MAX || indices->dtype != RNL_I64))
        return FAIL(RNL_INVALID_ARGUMENT, "pooling's indices are of max pooling only, and int64");
    return RNL_OK;
}

static rnl_status check_shapes(rnl_pool_op op, const rnl_pool_params *params, const rnl_view *src, const rnl_view *dst,
                               const rnl_view *indices)
{
    if (params->spatial < 1 || params->spatial > 3)
        return FAIL(RNL_UNIMPLEMENTED, "pooling over %zu spatial dimensions; 1 to 3 are supported", params->spatial);
    if (src->rank != params->spatial + 2 || dst->rank != src->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "pooling of rank %zu into rank %zu; expected %zu", src->rank, dst->rank,
                    params->spatial + 2);
    if (src->shape[0] != dst->shape[0] || src->shape[1] != dst->shape[1])
        return FAIL(RNL_INVALID_ARGUMENT, "pooling changes the number of images or channels");
    if (rnl_view_exists(indices) && !rnl_shapes_equal(indices, dst))
        return FAIL(RNL_INVALID_ARGUMENT, "pooling's indices have another shape than its result");
    if (op == RNL_POOL_LP && (params->p < 1 || params->p > INT32_MAX))
        return FAIL(RNL_INVALID_ARGUMENT, "pooling with p = %lld", (long long)params->p);
    for (size_t i = 0; i < params->spatial; ++i)
        if (params->kernel[i] < 1 || params->stride[i] < 1 || params->dilation[i] < 1 || params->pad_begin[i] < 0 ||
            params->pad_end[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "pooling with window %lld, stride %lld, dilation %lld, padding %lld, %lld",
                        (long long)params->kernel[i], (long long)params->stride[i], (long long)params->dilation[i],
                        (long long)params->pad_begin[i], (long long)params->pad_end[i]);
    return RNL_OK;
}

/* All coordinates that the kernel computes, in and around the images, fit in its int. */
static rnl_status check_reach(const pool_problem *problem)
{
    int64_t rows = problem->src->shape[0];
    for (size_t i = 0; i < 3; ++i) {
        int64_t out = 0, in = 0, sum = 0;
        const bool fits = !__builtin_mul_overflow(problem->dst_size[i], problem->stride[i], &out) &&
                          !__builtin_mul_overflow(problem->window[i] + 1, problem->dilation[i], &in) &&
                          !__builtin_add_overflow(out, in, &sum) &&
                          !__builtin_add_overflow(sum, problem->src_size[i], &sum) &&
                          !__builtin_add_overflow(sum, problem->pad_begin[i], &sum) &&
                          !__builtin_add_overflow(sum, problem->pad_end[i], &sum) &&
                          !(i < 2 && __builtin_mul_overflow(rows, problem->dst_size[i], &rows));
        if (!fits || sum > INT32_MAX || rows > INT32_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "pooling over images or windows larger than 2^31 pixels");
    }
    if (problem->src->shape[1] > INT32_MAX - 64)
        return FAIL(RNL_UNIMPLEMENTED, "pooling of more than 2^31 channels");
    return RNL_OK;
}

static void spread(pool_problem *problem)
{
    const rnl_pool_params *params = problem->params;
    for (size_t i = 0; i < 3; ++i) {
        const bool present = i + params->spatial >= 3;
        const size_t from = present ? i + params->spatial - 3 : 0;
        problem->src_size[i] = present ? problem->src->shape[from + 2] : 1;
        problem->dst_size[i] = present ? problem->dst->shape[from + 2] : 1;
        problem->window[i] = present ? params->kernel[from] : 1;
        problem->stride[i] = present ? params->stride[from] : 1;
        problem->dilation[i] = present ? params->dilation[from] : 1;
        problem->pad_begin[i] = present ? params->pad_begin[from] : 0;
        problem->pad_end[i] = present ? params->pad_end[from] : 0;
    }
}

static bool is_channels_first_in_memory(const rnl_view *view)
{
    return view->shape[1] > 1 && view->stride[1] == 1;
}

static bool has_vectors(const pool_problem *problem)
{
    return problem->src->shape[1] >= 4 && is_channels_first_in_memory(problem->src) &&
           is_channels_first_in_memory(problem->dst) && !rnl_view_exists(problem->indices);
}

static bool vectors_apply(const rnl_device *device, const void *data)
{
    const pool_problem *problem = data;
    (void)device;
    return has_vectors(problem) && rnl_dtype_is_float(problem->src->dtype) && problem->src->dtype != RNL_F64;
}

static void add_int4(rnl_step_builder *step, const int64_t xyz[3], int64_t w)
{
    const int32_t values[4] = {(int32_t)xyz[0], (int32_t)xyz[1], (int32_t)xyz[2], (int32_t)w};
    rnl_step_value(step, values, sizeof values);
}

/* (n, c, d, h, w). */
static void add_strides(rnl_step_builder *step, const rnl_view *view)
{
    int64_t stride[5] = {view->stride[0], view->stride[1], 0, 0, 0};
    for (size_t i = 2; i < view->rank; ++i)
        stride[i + 5 - view->rank] = view->stride[i];
    rnl_step_indices(step, 8, stride, 5, 0);
}

static void add_arguments(rnl_step_builder *step, const pool_problem *problem, int64_t rows, bool channels_first)
{
    rnl_step_view(step, problem->src);
    rnl_step_view(step, problem->dst);
    if (rnl_view_exists(problem->indices)) {
        rnl_step_define(step, "INDICES");
        rnl_step_view(step, problem->indices);
        add_strides(step, problem->indices);
    }
    add_int4(step, problem->src_size, problem->src->shape[1]);
    add_int4(step, problem->dst_size, 0);
    add_int4(step, problem->window, 0);
    add_int4(step, problem->stride, 0);
    add_int4(step, problem->dilation, 0);
    add_int4(step, problem->pad_begin, 0);
    add_int4(step, problem->pad_end, 0);
    add_strides(step, problem->src);
    add_strides(step, problem->dst);
    const rnl_pool_params *params = problem->params;
    add_int4(step, (const int64_t[]){params->count_include_pad, params->column_major_indices, rows}, channels_first);
}

static void add_cost(rnl_step_builder *step, const pool_problem *problem)
{
    const uint64_t outputs = (uint64_t)rnl_view_elements(problem->dst);
    step->step.flops = outputs * (uint64_t)(problem->window[0] * problem->window[1] * problem->window[2]);
    step->step.bytes = ((uint64_t)rnl_view_elements(problem->src) + outputs) * rnl_dtype_bytes(problem->src->dtype);
    if (rnl_view_exists(problem->indices))
        step->step.bytes += outputs * rnl_dtype_bytes(RNL_I64);
}

static rnl_status append(rnl_step_list *list, const char *name, const pool_problem *problem, int64_t vector)
{
    rnl_step_builder step;
    const size_t blocks = (size_t)((problem->src->shape[1] + vector - 1) / vector);
    const size_t columns = (size_t)problem->dst_size[2];
    const int64_t rows = problem->src->shape[0] * problem->dst_size[0] * problem->dst_size[1];
    const bool channels_first = is_channels_first_in_memory(problem->dst);
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", problem->src->dtype);
    rnl_step_define(&step, "V=%lld", (long long)vector);
    if (problem->op == RNL_POOL_AVERAGE)
        rnl_step_define(&step, "AVERAGE");
    if (problem->op == RNL_POOL_LP)
        rnl_step_define(&step, "LP=%d", (int)problem->params->p);
    add_arguments(&step, problem, rows, channels_first);
    const size_t items[3] = {channels_first ? blocks : columns, channels_first ? columns : blocks, (size_t)rows};
    size_t local[3];
    rnl_group_of_64(items, local);
    rnl_step_range(&step, 3, items, local);
    add_cost(&step, problem);
    rnl_step_writes(&step, problem->dst->slot);
    if (rnl_view_exists(problem->indices))
        rnl_step_writes(&step, problem->indices->slot);
    return rnl_step_end(&step, "pool.cl", "pool");
}

static rnl_status append_vectors(rnl_step_list *list, const char *name, const void *data)
{
    const pool_problem *problem = data;
    int64_t vector = list->device->vector_width;
    while (vector > problem->src->shape[1])
        vector /= 2;
    return append(list, name, problem, vector);
}

static bool columns_apply(const rnl_device *device, const void *data)
{
    const pool_problem *problem = data;
    const rnl_dtype dtype = problem->src->dtype;
    const bool bytes = problem->op == RNL_POOL_MAX && (dtype == RNL_U8 || dtype == RNL_I8) && has_vectors(problem);
    return rnl_device_is_cpu(device) && problem->op != RNL_POOL_LP && (bytes || vectors_apply(device, data));
}

/* A work-item makes a few columns, so that what it finds out of its row is worth it. */
static rnl_status append_columns(rnl_step_list *list, const char *name, const void *data)
{
    const pool_problem *problem = data;
    const int64_t channels = problem->src->shape[1], columns = problem->dst_size[2];
    const int64_t rows = problem->src->shape[0] * problem->dst_size[0] * problem->dst_size[1];
    const int64_t wanted = ITEM_RESULTS / channels + 1, each = wanted < columns ? wanted : columns;
    int64_t vector = list->device->vector_width;
    while (vector > channels)
        vector /= 2;
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", problem->src->dtype);
    rnl_step_define(&step, "V=%lld", (long long)vector);
    if (problem->op == RNL_POOL_AVERAGE)
        rnl_step_define(&step, "AVERAGE");
    add_arguments(&step, problem, rows, true);
    rnl_step_int(&step, (int32_t)each);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)((columns + each - 1) / each), (size_t)rows}, (size_t[3]){1, 1});
    add_cost(&step, problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "pool_vectors.cl", "pool_columns");
}

static rnl_status append_portable(rnl_step_list *list, const char *name, const void *data)
{
    return append(list, name, data, 1);
}

rnl_status rnl_op_pool(rnl_step_list *list, rnl_pool_op op, const rnl_pool_params *params, const rnl_view *src,
                       const rnl_view *dst, const rnl_view *indices)
{
    static const rnl_implementation implementations[] = {
        {"pool:columns", columns_apply, NULL, append_columns},
        {"pool:vectors", vectors_apply, NULL, append_vectors},
        {"pool:portable", NULL, NULL, append_portable},
    };
    pool_problem problem = {.op = op, .params = params, .src = src, .dst = dst, .indices = indices};
    TRY(check_types(op, src, dst, indices));
    TRY(rnl_views_check((const rnl_view *[]){src, dst, indices}, 3, &problem.index64));
    TRY(check_shapes(op, params, src, dst, indices));
    spread(&problem);
    TRY(check_reach(&problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(implementations, 3, NULL, list, &problem);
}
