/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/transpose.h"
#include "ops/implementation.h"

#define TILE_ROWS 16 /* of a large matrix */
#define SMALL_ROWS 256
/* As in transpose.cl. */
#define TILE_COLUMNS 32
#define TILE 16
#define TILE_LINES 4 /* of a work-group's work-items */

#define SMALLEST_MATRIX 4 /* rows and columns from which on blocks are worth it */
#define SHORTEST_ROW 4
#define ITEM_ELEMENTS 8192 /* that a work-item moves, where it takes several rows */
#define ITEMS_A_UNIT 4

typedef struct copy_problem {
    const rnl_view *src, *dst;
    bool index64;
    size_t row_dim;   /* contiguous in src; the innermost dimension, the columns', is it in dst */
    rnl_dims batches; /* the other dimensions */
    int64_t rows, columns, dst_row, src_column;
} copy_problem;

/* False when the two are contiguous in the same dimension or either in none. */
static bool find_matrix(const rnl_dims *dims, copy_problem *out)
{
    const size_t inner = dims->rank - 1;
    size_t row_dim = inner;
    for (size_t i = 0; i < inner; ++i)
        if (dims->stride[1][i] == 1)
            row_dim = i;
    if (row_dim == inner || dims->stride[0][inner] != 1 || dims->stride[1][inner] == 0)
        return false;
    out->rows = dims->shape[row_dim];
    out->columns = dims->shape[inner];
    out->dst_row = dims->stride[0][row_dim];
    out->src_column = dims->stride[1][inner];
    out->batches = (rnl_dims){.views = 2};
    for (size_t i = 0; i < inner; ++i) {
        if (i == row_dim)
            continue;
        out->batches.shape[out->batches.rank] = dims->shape[i];
        for (size_t v = 0; v < 2; ++v)
            out->batches.stride[v][out->batches.rank] = dims->stride[v][i];
        ++out->batches.rank;
    }
    return true;
}

static int64_t part(const rnl_step_builder *step, int64_t count, int64_t elements)
{
    const int64_t wanted = ITEM_ELEMENTS / elements + 1;
    const int64_t fair = count / ((int64_t)step->list->device->info.compute_units * ITEMS_A_UNIT) + 1;
    return wanted < fair ? wanted : fair;
}

static size_t parts(int64_t count, int64_t each)
{
    return (size_t)((count + each - 1) / each);
}

static void begin(rnl_step_builder *step, rnl_step_list *list, const char *name, const rnl_view *src,
                  const rnl_view *dst, bool index64)
{
    rnl_step_begin(step, list, name, index64);
    rnl_step_type(step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_view(step, dst);
    rnl_step_view(step, src);
    step->step.bytes = 2 * (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(step, dst->slot);
}

static void add_walk(rnl_step_builder *step, const rnl_dims *dims)
{
    rnl_step_int(step, dims->rank > 3);
    rnl_step_dims(step, dims->shape, dims->rank, 1);
    for (size_t v = 0; v < 2; ++v)
        rnl_step_dims(step, dims->stride[v], dims->rank, 0);
}

static void add_matrices(rnl_step_builder *step, const copy_problem *problem)
{
    rnl_step_index(step, problem->rows);
    rnl_step_index(step, problem->columns);
    rnl_step_index(step, problem->dst_row);
    rnl_step_index(step, problem->src_column);
    add_walk(step, &problem->batches);
}

/* Three colours, packed in one of the two. */
static rnl_status append_three(rnl_step_list *list, const copy_problem *problem, bool interleave)
{
    rnl_step_builder step;
    begin(&step, list, "copy:three", problem->src, problem->dst, problem->index64);
    add_matrices(&step, problem);
    const int64_t count = interleave ? problem->rows : problem->columns, each = (part(&step, count, 3) + 15) / 16 * 16;
    rnl_step_index(&step, each);
    rnl_step_range(&step, 3, (size_t[3]){parts(count, each), 1, (size_t)rnl_dims_elements(&problem->batches)},
                   (size_t[3]){1, 1, 1});
    return rnl_step_end(&step, "transpose.cl", interleave ? "transpose_interleave" : "transpose_separate");
}

/* A work-group and its tile, whose rows are one element longer. */
static bool has_tiles(const rnl_device *device, const copy_problem *problem)
{
    return !rnl_device_is_cpu(device) && device->info.max_work_group_size >= TILE * TILE_LINES &&
           device->info.local_memory_bytes >= TILE * (TILE + 1) * rnl_dtype_bytes(problem->dst->dtype);
}

/* For GPUs. */
static rnl_status append_tiles(rnl_step_list *list, const copy_problem *problem)
{
    rnl_step_builder step;
    begin(&step, list, "copy:transpose", problem->src, problem->dst, problem->index64);
    add_matrices(&step, problem);
    rnl_step_range(&step, 3,
                   (size_t[3]){parts(problem->columns, TILE) * TILE, parts(problem->rows, TILE) * TILE_LINES,
                               (size_t)rnl_dims_elements(&problem->batches)},
                   (size_t[3]){TILE, TILE_LINES, 1});
    return rnl_step_end(&step, "transpose.cl", "transpose_tiles");
}

/* Of small matrices a work-item takes several, each whole. */
static rnl_status append_blocks(rnl_step_list *list, const copy_problem *problem)
{
    rnl_step_builder step;
    const int64_t count = rnl_dims_elements(&problem->batches);
    const bool small = problem->columns <= TILE_COLUMNS && problem->rows <= SMALL_ROWS;
    begin(&step, list, "copy:transpose", problem->src, problem->dst, problem->index64);
    add_matrices(&step, problem);
    const int64_t tile_rows = small ? problem->rows : TILE_ROWS;
    const int64_t each = small ? part(&step, count, problem->rows * problem->columns) : 1;
    rnl_step_index(&step, tile_rows);
    rnl_step_index(&step, count);
    rnl_step_index(&step, each);
    rnl_step_range(
        &step, 3,
        (size_t[3]){parts(problem->columns, TILE_COLUMNS), parts(problem->rows, tile_rows), parts(count, each)},
        (size_t[3]){1, 1, 1});
    return rnl_step_end(&step, "transpose.cl", "transpose_blocks");
}

static rnl_status append_rows(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src, const rnl_view *dst,
                              bool index64)
{
    rnl_step_builder step;
    const int64_t columns = dims->shape[dims->rank - 1], rows = rnl_dims_elements(dims) / columns;
    begin(&step, list, "copy:rows", src, dst, index64);
    const int64_t each = part(&step, rows, columns);
    rnl_step_index(&step, rows);
    add_walk(&step, dims);
    rnl_step_index(&step, each);
    rnl_step_range(&step, 1, (size_t[3]){parts(rows, each)}, (size_t[3]){1});
    return rnl_step_end(&step, "transpose.cl", "copy_rows");
}

static bool has_rows(const rnl_dims *dims)
{
    const size_t inner = dims->rank - 1;
    return dims->rank > 1 && dims->stride[0][inner] == 1 && dims->stride[1][inner] == 1 &&
           dims->shape[inner] >= SHORTEST_ROW;
}

rnl_status rnl_op_transpose(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src, const rnl_view *dst,
                            bool index64, bool *out_done)
{
    copy_problem problem = {.src = src, .dst = dst, .index64 = index64};
    const bool cpu = rnl_device_is_cpu(list->device);
    *out_done = true;
    if (dims->rank > 1 && find_matrix(dims, &problem) && rnl_dims_elements(&problem.batches) <= 32768) {
        if (cpu && problem.columns == 3 && problem.dst_row == 3)
            return append_three(list, &problem, true);
        if (cpu && problem.rows == 3 && problem.src_column == 3)
            return append_three(list, &problem, false);
        if (problem.rows >= SMALLEST_MATRIX && problem.columns >= SMALLEST_MATRIX)
            return has_tiles(list->device, &problem) ? append_tiles(list, &problem) : append_blocks(list, &problem);
    } else if (cpu && dims->rank > 1 && has_rows(dims)) {
        return append_rows(list, dims, src, dst, index64);
    }
    *out_done = false;
    return RNL_OK;
}
