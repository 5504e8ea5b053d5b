/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/pool.h"
#include "ops/step_build.h"

#define PIECE_ELEMENTS 2048 /* of a work-item: long against the start of one */

typedef struct lrn_problem {
    const rnl_lrn_params *params;
    const rnl_view *src, *dst;
    bool index64;
} lrn_problem;

static rnl_status check(const rnl_lrn_params *params, const rnl_view *src, const rnl_view *dst)
{
    if (src->rank < 2 || src->rank > 5)
        return FAIL(RNL_UNIMPLEMENTED, "local response normalisation of rank %zu; 2 to 5 are supported", src->rank);
    if (!rnl_shapes_equal(src, dst))
        return FAIL(RNL_INVALID_ARGUMENT, "local response normalisation changes the shape");
    if (src->dtype != dst->dtype || !rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "local response normalisation of %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(dst->dtype));
    if (params->size < 1 || params->size > INT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "local response normalisation over %lld channels", (long long)params->size);
    return RNL_OK;
}

/* (n, c, d, h, w), absent dimensions in front of the present spatial ones. */
static void add_spread(rnl_step_builder *step, const int64_t *values, size_t rank, int64_t fill)
{
    int64_t spread[5] = {values[0], values[1], fill, fill, fill};
    for (size_t i = 2; i < rank; ++i)
        spread[i + 5 - rank] = values[i];
    rnl_step_indices(step, 8, spread, 5, 0);
}

static void add_grid(rnl_step_builder *step, const rnl_view *dst, bool channels_first)
{
    const size_t channels = (size_t)dst->shape[1], columns = dst->rank > 2 ? (size_t)dst->shape[dst->rank - 1] : 1;
    const size_t rows = (size_t)rnl_view_elements(dst) / channels / columns;
    const size_t items[3] = {channels_first ? channels : columns, channels_first ? columns : channels, rows};
    size_t local[3];
    rnl_group_of_64(items, local);
    rnl_step_range(step, 3, items, local);
}

static int32_t neighbours_before(const rnl_lrn_params *params)
{
    return (int32_t)((params->size - 1) / 2);
}

static int32_t neighbours_after(const rnl_lrn_params *params)
{
    return (int32_t)(params->size / 2);
}

static void add_views(rnl_step_builder *step, const lrn_problem *problem)
{
    const rnl_view *src = problem->src, *dst = problem->dst;
    rnl_step_type(step, "T", src->dtype);
    rnl_step_view(step, src);
    rnl_step_view(step, dst);
    add_spread(step, src->shape, src->rank, 1);
    add_spread(step, src->stride, src->rank, 0);
    add_spread(step, dst->stride, src->rank, 0);
}

static void add_cost(rnl_step_builder *step, const lrn_problem *problem)
{
    const uint64_t elements = (uint64_t)rnl_view_elements(problem->dst);
    step->step.flops = elements * (2 * (uint64_t)problem->params->size + 3);
    step->step.bytes = 2 * elements * rnl_dtype_bytes(problem->src->dtype);
}

static rnl_status append_portable(rnl_step_list *list, const char *name, const void *data)
{
    const lrn_problem *problem = data;
    const rnl_lrn_params *params = problem->params;
    const rnl_view *dst = problem->dst;
    const bool channels_first = dst->shape[1] > 1 && dst->stride[1] == 1;
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    add_views(&step, problem);
    rnl_step_int(&step, channels_first);
    rnl_step_int(&step, neighbours_before(params));
    rnl_step_int(&step, neighbours_after(params));
    rnl_step_float(&step, params->alpha);
    rnl_step_float(&step, params->beta);
    rnl_step_float(&step, params->bias);
    add_grid(&step, dst, channels_first);
    add_cost(&step, problem);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "lrn.cl", "lrn");
}

static int64_t vector_of(const rnl_device *device, const rnl_view *view)
{
    int64_t vector = device->vector_width;
    while (vector > view->shape[1])
        vector /= 2;
    return vector;
}

static bool vectors_apply(const rnl_device *device, const void *data)
{
    const lrn_problem *problem = data;
    const int64_t vector = vector_of(device, problem->dst);
    return vector >= 4 && problem->src->dtype != RNL_F64 && problem->params->beta == 0.75f &&
           neighbours_after(problem->params) <= vector && problem->src->stride[1] == 1 && problem->dst->stride[1] == 1;
}

static bool vectors_pay(const rnl_device *device, const void *data)
{
    (void)data;
    return rnl_device_is_cpu(device);
}

static rnl_status append_vectors(rnl_step_list *list, const char *name, const void *data)
{
    const lrn_problem *problem = data;
    const rnl_view *dst = problem->dst;
    const int64_t columns = dst->rank > 2 ? dst->shape[dst->rank - 1] : 1;
    const int64_t rows = rnl_view_elements(dst) / dst->shape[1] / columns;
    const int64_t each = (PIECE_ELEMENTS + dst->shape[1] - 1) / dst->shape[1];
    const size_t items[3] = {(size_t)((columns + each - 1) / each), (size_t)rows, 1};
    size_t local[3];
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_define(&step, "V=%lld -DBEFORE=%d -DAFTER=%d", (long long)vector_of(list->device, dst),
                    (int)neighbours_before(problem->params), (int)neighbours_after(problem->params));
    add_views(&step, problem);
    rnl_step_index(&step, each);
    rnl_step_float(&step, problem->params->alpha / (float)problem->params->size);
    rnl_step_float(&step, problem->params->bias);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 2, items, local);
    add_cost(&step, problem);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "lrn_vectors.cl", "lrn_vectors");
}

rnl_status rnl_op_lrn(rnl_step_list *list, const rnl_lrn_params *params, const rnl_view *src, const rnl_view *dst)
{
    static const rnl_implementation implementations[] = {{"lrn:vectors", vectors_apply, vectors_pay, append_vectors},
                                                         {"lrn:portable", NULL, NULL, append_portable}};
    lrn_problem problem = {.params = params, .src = src, .dst = dst};
    TRY(check(params, src, dst));
    TRY(rnl_views_check((const rnl_view *[]){src, dst}, 2, &problem.index64));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(implementations, 2, NULL, list, &problem);
}
