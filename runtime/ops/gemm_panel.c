/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on CPUs whose second factor is first copied into panels: as float, in the order in which the kernel reads
 * it, zeros behind the last column. A first factor of another type than float is copied to float too.
 */
#include "base/status.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include "ops/map.h"

#define PACKED_ROWS 128 /* of a work-item, as in gemm_pack.cl */

typedef struct panel_plan {
    rnl_gemm_tile tile;
    bool copies_a;
    int64_t panels, b_batches, b_elements, a_elements;
} panel_plan;

/* Matrices of a view that differ: those that it repeats along a batch dimension are one. */
static bool count_batches(const rnl_dims *batch, int view, int64_t *out_count)
{
    *out_count = 1;
    for (size_t i = 0; i < batch->rank; ++i)
        if (batch->stride[view][i] != 0 && __builtin_mul_overflow(*out_count, batch->shape[i], out_count))
            return false;
    return true;
}

static rnl_gemm_tile panel_tile(const rnl_device *device, const rnl_gemm_problem *problem)
{
    rnl_gemm_tile tile = {.kind = "COLUMNS", .vector = device->vector_width, .panels = true};
    while (tile.vector > 4 && tile.vector / 2 >= problem->n)
        tile.vector /= 2;
    tile.count = problem->n > tile.vector ? 2 : 1;
    tile.rows = rnl_gemm_tile_rows(rnl_gemm_most_rows(tile.vector), problem->m);
    return tile;
}

/* False where the copies have more elements than can be counted. */
static bool make_plan(const rnl_device *device, const rnl_gemm_problem *problem, panel_plan *out_plan)
{
    panel_plan plan = {.tile = panel_tile(device, problem), .copies_a = problem->a->dtype != RNL_F32};
    const int64_t width = plan.tile.vector * plan.tile.count;
    int64_t a_batches = 0, a_rows = 0;
    plan.panels = problem->n / width + (problem->n % width != 0);
    if (!count_batches(&problem->batch, RNL_GEMM_B, &plan.b_batches) ||
        __builtin_mul_overflow(plan.panels * width, problem->k, &plan.b_elements) ||
        __builtin_mul_overflow(plan.b_elements, plan.b_batches, &plan.b_elements) || plan.b_elements > INT64_MAX / 16)
        return false;
    if (plan.copies_a &&
        (!count_batches(&problem->batch, RNL_GEMM_A, &a_batches) ||
         __builtin_mul_overflow(problem->m, a_batches, &a_rows) ||
         __builtin_mul_overflow(a_rows, problem->k, &plan.a_elements) || plan.a_elements > INT64_MAX / 16))
        return false;
    *out_plan = plan;
    return true;
}

int64_t rnl_gemm_panel_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const rnl_dtype type = problem->dst->dtype;
    panel_plan plan;
    if (!rnl_dtype_is_float(type) || type == RNL_F64 || problem->k == 0 || !make_plan(device, problem, &plan))
        return 0;
    return plan.b_elements + plan.a_elements;
}

bool rnl_gemm_panel_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const int64_t needed = rnl_gemm_panel_scratch(device, problem);
    return needed > 0 && problem->scratch && problem->scratch->dtype == RNL_F32 &&
           rnl_view_elements(problem->scratch) >= needed;
}

/* Copying must be shared by some rows of a. Rows of b that can be read as they are do well until many of them are long:
 * then each is a page of its own, and they meet in the same places of the caches. */
bool rnl_gemm_panel_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    if (!rnl_device_is_cpu(device) || problem->m < 8 || problem->n < 4 || problem->k < 4)
        return false;
    if (problem->b_n != 1 || problem->dst->dtype != RNL_F32)
        return true;
    return problem->m >= 64 && problem->k >= 1024 && problem->b_k >= 1024;
}

/* The strides of a dense copy of the matrices that differ. */
static void dense_batches(rnl_dims *batch, int view, int64_t matrix)
{
    for (size_t i = batch->rank; i-- > 0;) {
        if (batch->stride[view][i] == 0)
            continue;
        batch->stride[view][i] = matrix;
        matrix *= batch->shape[i];
    }
}

/* The batch dimensions along which the matrices differ, the last one first. */
static void add_batch(rnl_step_builder *step, const rnl_dims *batch, int view)
{
    int64_t sizes[RNL_MAX_RANK], strides[RNL_MAX_RANK];
    size_t count = 0;
    for (size_t i = batch->rank; i-- > 0;) {
        if (batch->stride[view][i] == 0)
            continue;
        sizes[count] = batch->shape[i];
        strides[count++] = batch->stride[view][i];
    }
    rnl_step_indices(step, 8, sizes, count, 1);
    rnl_step_indices(step, 8, strides, count, 0);
}

static rnl_status append_pack(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                              const panel_plan *plan, const rnl_view *panels)
{
    const int64_t size[4] = {problem->k, problem->n, plan->panels, plan->b_batches};
    const int64_t stride[4] = {problem->b_k, problem->b_n};
    const size_t items[3] = {(size_t)(problem->k + PACKED_ROWS - 1) / PACKED_ROWS, (size_t)plan->panels,
                             (size_t)plan->b_batches};
    size_t local[3];
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", problem->b->dtype);
    rnl_step_define(&step, "FORM=%s", problem->b_n == 1 ? "N" : problem->b_k == 1 ? "K" : "ANY");
    rnl_step_define(&step, "W=%lld -DNB=%lld", (long long)plan->tile.vector, (long long)plan->tile.count);
    rnl_step_view(&step, problem->b);
    rnl_step_view(&step, panels);
    rnl_step_indices(&step, 4, size, 4, 0);
    rnl_step_indices(&step, 4, stride, 4, 0);
    add_batch(&step, &problem->batch, RNL_GEMM_B);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 3, items, local);
    step.step.bytes = (uint64_t)plan->b_elements * (sizeof(float) + rnl_dtype_bytes(problem->b->dtype));
    rnl_step_writes(&step, panels->slot);
    return rnl_step_end(&step, "gemm_pack.cl", "gemm_pack");
}

/* The first factor as it is found and as floats. */
static rnl_status append_copy(rnl_step_list *list, const rnl_gemm_problem *problem, rnl_view *copy)
{
    const rnl_dims *batch = &problem->batch;
    rnl_view from = *problem->a;
    from.rank = 0;
    for (size_t i = 0; i < batch->rank; ++i) {
        if (batch->stride[RNL_GEMM_A][i] == 0)
            continue;
        from.shape[from.rank] = batch->shape[i];
        from.stride[from.rank++] = batch->stride[RNL_GEMM_A][i];
    }
    from.shape[from.rank] = problem->m;
    from.stride[from.rank++] = problem->a_m;
    from.shape[from.rank] = problem->k;
    from.stride[from.rank++] = problem->a_k;
    const int64_t offset = copy->offset;
    *copy = rnl_view_row_major(copy->slot, RNL_F32, from.rank, from.shape);
    copy->offset = offset;
    return rnl_op_map(list, RNL_MAP_COPY, 0, 0, &from, 1, copy);
}

rnl_status rnl_gemm_panel_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *given = data;
    rnl_gemm_problem problem = *given;
    panel_plan plan;
    if (!make_plan(list->device, given, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    rnl_view panels = *given->scratch, floats = *given->scratch;
    floats.offset += plan.b_elements;
    problem.index64 |= floats.offset + plan.a_elements > INT32_MAX;
    TRY(append_pack(list, name, &problem, &plan, &panels));
    const int64_t width = plan.tile.vector * plan.tile.count;
    problem.b = &panels;
    problem.b_k = width;
    problem.b_n = width * problem.k;
    dense_batches(&problem.batch, RNL_GEMM_B, plan.panels * problem.b_n);
    if (plan.copies_a) {
        TRY(append_copy(list, given, &floats));
        problem.a = &floats;
        problem.a_m = problem.k;
        problem.a_k = 1;
        dense_batches(&problem.batch, RNL_GEMM_A, problem.m * problem.k);
    }
    return rnl_gemm_append_tile(list, name, &problem, &plan.tile);
}
