/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/status.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"

int64_t rnl_gemm_tile_rows(int64_t most, int64_t m)
{
    return m >= most ? most : m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : most;
}

int64_t rnl_gemm_tile_rows_of_8(int64_t m)
{
    return m > 8 && rnl_divide_up(m, 7) * 7 <= rnl_divide_up(m, 8) * 8 ? 7 : rnl_gemm_tile_rows(8, m);
}

int64_t rnl_gemm_most_rows(int64_t vector)
{
    return vector == 16 ? 7 : vector == 8 ? 6 : 4;
}

/* Vectors for one row or few: the longer the run of columns, the better the memory streams. */
static int64_t few_rows_count(const rnl_device *device, const rnl_gemm_problem *problem, const rnl_gemm_tile *tile)
{
    int64_t count = (tile->vector < 16 ? 8 : tile->rows < 4 ? 16 : 24) / tile->rows;
    while (count > 2 && problem->n < 2 * device->info.compute_units * count * tile->vector)
        count /= 2;
    return count < 2 ? 2 : count;
}

/* Vectors over columns, as many rows as keep the sums in registers. */
static rnl_gemm_tile column_tile(const rnl_device *device, const rnl_gemm_problem *problem)
{
    rnl_gemm_tile tile = {.kind = "COLUMNS", .vector = device->vector_width};
    while (tile.vector > problem->n)
        tile.vector /= 2;
    tile.count = problem->n >= 2 * tile.vector ? 2 : 1;
    tile.rows = rnl_gemm_tile_rows(rnl_gemm_most_rows(tile.vector), problem->m);
    if (problem->m == 8 && tile.vector == 16)
        tile.rows = 8;
    if (tile.count == 2 && problem->m == tile.rows && rnl_device_is_cpu(device))
        tile.count = few_rows_count(device, problem, &tile);
    return tile;
}

static rnl_gemm_tile dot_tile(const rnl_device *device, const rnl_gemm_problem *problem)
{
    rnl_gemm_tile tile = {.kind = "DOT", .vector = device->vector_width};
    while (tile.vector > 4 && tile.vector > problem->k)
        tile.vector /= 2;
    const int64_t most = tile.vector == 16 ? 4 : 2;
    tile.count = problem->n >= 4 ? 4 : problem->n >= 2 ? 2 : 1;
    tile.rows = rnl_gemm_tile_rows(most, problem->m);
    return tile;
}

static rnl_gemm_tile choose_tile(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const bool vectors = rnl_dtype_is_float(problem->dst->dtype);
    if (vectors && problem->b_n == 1 && problem->n >= 4)
        return column_tile(device, problem);
    if (vectors && problem->a_k == 1 && problem->b_k == 1 && problem->k >= 4)
        return dot_tile(device, problem);
    return (rnl_gemm_tile){.kind = "ANY", .rows = 1, .vector = 1, .count = 1};
}

/* Signed integers wrap as unsigned ones do, and only those may. */
static rnl_dtype kernel_type(rnl_dtype dtype)
{
    return dtype == RNL_I32 ? RNL_U32 : dtype == RNL_I64 ? RNL_U64 : dtype;
}

/* alpha and beta, as a vector. */
static void add_factors(rnl_step_builder *step, const rnl_gemm_problem *problem)
{
    const rnl_dtype type = problem->dst->dtype;
    const float floats[2] = {problem->alpha, problem->beta};
    const int64_t wide[2] = {(int64_t)problem->alpha, (int64_t)problem->beta};
    const int32_t narrow[2] = {(int32_t)wide[0], (int32_t)wide[1]};
    if (rnl_dtype_is_float(type))
        rnl_step_value(step, floats, sizeof floats);
    else if (rnl_dtype_bytes(type) == 8)
        rnl_step_value(step, wide, sizeof wide);
    else
        rnl_step_value(step, narrow, sizeof narrow);
}

static void add_batch(rnl_step_builder *step, const rnl_dims *batch)
{
    static const int views[4] = {RNL_GEMM_A, RNL_GEMM_B, RNL_GEMM_C, RNL_GEMM_DST};
    int64_t all[5][8];
    for (size_t i = 0; i < 8; ++i) {
        const bool there = i < batch->rank;
        all[0][i] = there ? batch->shape[batch->rank - 1 - i] : 1;
        for (size_t v = 0; v < 4; ++v)
            all[v + 1][i] = there ? batch->stride[views[v]][batch->rank - 1 - i] : 0;
    }
    rnl_step_define(step, "BATCHED");
    rnl_step_indices(step, 16, all[0], 16, 0);
    rnl_step_indices(step, 16, all[2], 16, 0);
    rnl_step_indices(step, 8, all[4], 8, 0);
}

void rnl_gemm_add_matrices(rnl_step_builder *step, const rnl_gemm_problem *problem, const int64_t numbers[12])
{
    const rnl_view *const views[4] = {problem->a, problem->b, problem->c, problem->dst};
    for (size_t i = 0; i < 4; ++i)
        rnl_step_slot(step, rnl_view_exists(views[i]) ? views[i]->slot : RNL_NO_SLOT);
    rnl_step_offsets(step, 16, views, 4, numbers, 12);
    if (problem->batch.rank > 0)
        add_batch(step, &problem->batch);
}

void rnl_gemm_add_arguments(rnl_step_builder *step, const rnl_gemm_problem *problem, bool rows_first)
{
    const int64_t size_and_stride[12] = {problem->m,   problem->n,   problem->k,     rnl_dims_elements(&problem->batch),
                                         problem->a_m, problem->a_k, problem->b_k,   problem->b_n,
                                         problem->c_m, problem->c_n, problem->dst_m, problem->dst_n};
    const int32_t flags[2] = {problem->c != NULL, rows_first};
    rnl_gemm_add_matrices(step, problem, size_and_stride);
    add_factors(step, problem);
    rnl_step_value(step, flags, sizeof flags);
}

static bool is_unit_or_zero(int64_t stride)
{
    return stride == 0 || stride == 1;
}

bool rnl_gemm_chain_takes_vectors(const rnl_gemm_problem *problem)
{
    bool takes = problem->dst_n == 1 && is_unit_or_zero(problem->c_n);
    for (size_t i = 0; i < problem->chain->operand_count; ++i)
        takes = takes && is_unit_or_zero(problem->operand_n[i]);
    return takes;
}

static void add_grid(rnl_step_builder *step, const rnl_gemm_problem *problem, const rnl_gemm_tile *tile,
                     bool rows_first)
{
    const int64_t width = tile->vector > 1 && tile->kind[0] == 'C' ? tile->vector * tile->count : tile->count;
    const size_t rows = (size_t)((problem->m + tile->rows - 1) / tile->rows);
    const size_t columns = (size_t)((problem->n + width - 1) / width);
    const size_t items[3] = {rows_first ? rows : columns, rows_first ? columns : rows,
                             (size_t)rnl_dims_elements(&problem->batch)};
    size_t local[3];
    if (tile->vector == 1)
        rnl_group_of_64(items, local);
    else
        rnl_tile_group(step->list->device, items, local);
    rnl_step_range(step, 3, items, local);
}

static void add_defines(rnl_step_builder *step, const rnl_gemm_problem *problem, const rnl_gemm_tile *tile)
{
    const rnl_dtype type = problem->dst->dtype;
    rnl_step_type(step, "T", kernel_type(type));
    if (problem->a->dtype != type)
        rnl_step_type(step, "T_A", problem->a->dtype);
    if (problem->b->dtype != type)
        rnl_step_type(step, "T_B", problem->b->dtype);
    rnl_step_define(step, "KIND=%s", tile->kind);
    if (tile->vector > 1)
        rnl_step_define(step, "R=%lld -DW=%lld -DNB=%lld", (long long)tile->rows, (long long)tile->vector,
                        (long long)tile->count);
    if (problem->chain && tile->kind[0] == 'C' && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(step, "LANES");
}

rnl_status rnl_gemm_append_tile(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                                const rnl_gemm_tile *tile)
{
    /* On a CPU the columns of one block stay in the cache while all rows pass. */
    const bool rows_first = rnl_device_is_cpu(list->device) && tile->vector > 1;
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    add_defines(&step, problem, tile);
    rnl_gemm_add_arguments(&step, problem, rows_first);
    rnl_gemm_add_chain(&step, problem);
    add_grid(&step, problem, tile, rows_first);
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "gemm.cl", "gemm");
}

rnl_status rnl_gemm_portable_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_tile tile = choose_tile(list->device, data);
    return rnl_gemm_append_tile(list, name, data, &tile);
}
