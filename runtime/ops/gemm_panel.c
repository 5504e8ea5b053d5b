/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on CPUs whose second factor is first copied into panels: as float, in the order in which the kernel reads
 * it, zeros behind the last column. A first factor of another type than float is copied to float too.
 */
#include "base/status.h"
#include "ops/gemm_pack.h"
#include "ops/implementation.h"
#include "ops/map.h"

typedef struct panel_plan {
    rnl_gemm_tile tile;
    rnl_gemm_panels panels;
    bool copies_a;
    int64_t scratch, a_floats;
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

static rnl_gemm_tile choose_tile(const rnl_gemm_problem *problem, const rnl_gemm_panels *panels)
{
    rnl_gemm_tile tile = {.kind = "COLUMNS", .vector = panels->width, .panels = true};
    tile.count = panels->panels > 1 ? 2 : 1;
    tile.rows = rnl_gemm_tile_rows(rnl_gemm_most_rows(tile.vector), problem->m);
    return tile;
}

static int64_t given_floats(const rnl_gemm_problem *problem)
{
    const rnl_view *scratch = problem->scratch;
    return scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
}

/* False where the copies have more elements than can be counted. */
static bool make_plan(const rnl_device *device, const rnl_gemm_problem *problem, panel_plan *out_plan)
{
    panel_plan plan = {.copies_a = problem->a->dtype != RNL_F32};
    int64_t a_rows = 0;
    if (!rnl_gemm_panels_of(device, problem->b, &plan.panels))
        return false;
    plan.tile = choose_tile(problem, &plan.panels);
    if (plan.copies_a &&
        (!count_batches(&problem->batch, RNL_GEMM_A, &a_rows) || __builtin_mul_overflow(problem->m, a_rows, &a_rows) ||
         __builtin_mul_overflow(a_rows, problem->k, &plan.a_floats) || plan.a_floats > INT64_MAX / 16))
        return false;
    plan.scratch = plan.a_floats + (problem->packed ? 0 : plan.panels.floats);
    *out_plan = plan;
    return true;
}

int64_t rnl_gemm_panel_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    panel_plan plan;
    return make_plan(device, problem, &plan) ? plan.scratch : 0;
}

bool rnl_gemm_panel_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    panel_plan plan;
    return make_plan(device, problem, &plan) && (problem->packed || given_floats(problem) >= plan.scratch);
}

/* Copying must be shared by some rows of a. Rows of b that can be read as they are do well until many of them are long:
 * then each is a page of its own, and they meet in the same places of the caches. */
bool rnl_gemm_panel_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    if (problem->packed)
        return true;
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

/* The product with its second factor in panels, which a step in front of it makes. */
static rnl_status pack(rnl_step_list *list, const panel_plan *plan, rnl_gemm_problem *problem, rnl_view *packed)
{
    const rnl_gemm_params params = {
        .alpha = problem->alpha, .beta = problem->beta, .chain = problem->chain, .scratch = problem->scratch};
    TRY(rnl_gemm_append_pack(list, &plan->panels, problem->b, problem->scratch));
    *packed = rnl_gemm_packed_view(&plan->panels, problem->b, problem->scratch);
    return rnl_gemm_describe(&params, problem->a, packed, problem->c, problem->dst, problem);
}

rnl_status rnl_gemm_panel_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *given = data;
    rnl_gemm_problem problem = *given;
    panel_plan plan;
    rnl_view panels = *given->b, floats;
    if (!make_plan(list->device, given, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    if (!given->packed)
        TRY(pack(list, &plan, &problem, &panels));
    panels.dtype = RNL_F32;
    problem.b = &panels;
    problem.b_k = plan.panels.width;
    problem.b_n = plan.panels.width * problem.k;
    problem.index64 |= panels.offset + plan.panels.floats > INT32_MAX;
    if (plan.copies_a && given_floats(given) >= plan.scratch) {
        floats = *given->scratch;
        floats.offset += plan.scratch - plan.a_floats;
        problem.index64 |= floats.offset + plan.a_floats > INT32_MAX;
        TRY(append_copy(list, given, &floats));
        problem.a = &floats;
        problem.a_m = problem.k;
        problem.a_k = 1;
        dense_batches(&problem.batch, RNL_GEMM_A, problem.m * problem.k);
    }
    return rnl_gemm_append_tile(list, name, &problem, &plan.tile);
}
