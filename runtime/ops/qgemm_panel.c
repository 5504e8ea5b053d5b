/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products whose second factor is in panels (qgemm_pack.h), packed before or here: by x86's vpdpbusd or vpmaddwd, by
 * dot products of packed bytes, and in float. Rows of the first factor are read as they are, or copied where their
 * bytes lie apart.
 */
#include "base/memory.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/fip.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/map.h"
#include "ops/qgemm_pack.h"

#define MOST_BLOCKS 8 /* as in qgemm_panel.cl */
#define FIP_RUNS 4    /* of a work-item */

typedef struct panel_plan {
    rnl_qgemm_panels panels;
    rnl_view a_copy; /* row-major; at the beginning of the scratch */
    bool copies_a;
    int64_t a_ints, ints; /* of the copies */
} panel_plan;

/* `a` as it lies when it is copied; false where that has too many elements. */
static bool plan_copy(const rnl_view *a, rnl_view *out_copy, int64_t *out_bytes)
{
    *out_copy = *a;
    *out_bytes = 1;
    for (size_t i = a->rank; i-- > 0;) {
        const bool is_repeated = i + 2 < a->rank && (a->stride[i] == 0 || a->shape[i] == 1);
        out_copy->stride[i] = is_repeated ? 0 : *out_bytes;
        if (!is_repeated && __builtin_mul_overflow(*out_bytes, a->shape[i], out_bytes))
            return false;
    }
    return *out_bytes <= INT64_MAX / 16;
}

/* False where there is nothing to multiply, or the copies have more elements than can be counted. */
static bool make_plan(const rnl_qgemm_problem *p, panel_plan *out_plan)
{
    panel_plan plan = {.copies_a = p->a_k != 1 && p->k > 1};
    int64_t bytes = 0;
    if (!rnl_qgemm_panels_of(p->b_given, &plan.panels) || (plan.copies_a && !plan_copy(p->a, &plan.a_copy, &bytes)))
        return false;
    plan.a_ints = (bytes + 3) / 4;
    plan.ints = plan.a_ints + (p->packed ? 0 : plan.panels.ints);
    *out_plan = plan;
    return true;
}

int64_t rnl_qgemm_panel_scratch(const rnl_qgemm_problem *p)
{
    panel_plan plan;
    return make_plan(p, &plan) ? plan.ints : 0;
}

bool rnl_qgemm_panel_applies(const rnl_device *device, const void *data)
{
    const rnl_qgemm_problem *p = data;
    panel_plan plan;
    (void)device;
    if (!make_plan(p, &plan))
        return false;
    return plan.ints == 0 || (p->scratch && p->scratch->dtype == RNL_I32 && rnl_view_elements(p->scratch) >= plan.ints);
}

bool rnl_qgemm_panel_pays(const rnl_device *device, const void *data)
{
    const rnl_qgemm_problem *p = data;
    /* A CPU copies rows of b in vectors, faster than it multiplies in single elements. */
    const int64_t rows = rnl_count_to_choose_by(p->m, RNL_DETERMINISTIC_ROWS);
    return p->packed || rows >= 8 || (rnl_device_is_cpu(device) && (p->b_n == 1 || rows > 1));
}

static rnl_status copy_a(rnl_step_list *list, const rnl_qgemm_problem *p, panel_plan *plan)
{
    rnl_view from = *p->a, to = plan->a_copy;
    to.slot = p->scratch->slot;
    to.offset = p->scratch->offset * 4;
    plan->a_copy = to;
    from.rank = to.rank = 0;
    for (size_t i = 0; i < p->a->rank; ++i) {
        if (i + 2 < p->a->rank && plan->a_copy.stride[i] == 0)
            continue;
        from.shape[from.rank] = to.shape[to.rank] = p->a->shape[i];
        from.stride[from.rank++] = p->a->stride[i];
        to.stride[to.rank++] = plan->a_copy.stride[i];
    }
    return rnl_op_map(list, RNL_MAP_COPY, 0, 0, &from, 1, &to);
}

/* The problem once everything that has to be copied is in scratch; what it points at lives as long as `out`. */
typedef struct ready {
    rnl_qgemm_params params;
    panel_plan plan;
    rnl_view packed;
    rnl_qgemm_problem problem;
} ready;

static rnl_status prepare(rnl_step_list *list, const rnl_qgemm_problem *p, ready *out)
{
    const rnl_view *a = p->a;
    out->params = *p->params;
    if (!make_plan(p, &out->plan))
        return FAIL(RNL_INTERNAL, "this integer matrix product has no form in panels");
    if (out->plan.copies_a) {
        TRY(copy_a(list, p, &out->plan));
        a = &out->plan.a_copy;
    }
    if (!p->packed) {
        out->packed = *p->scratch;
        out->packed.rank = 1;
        out->packed.offset += out->plan.a_ints;
        out->packed.shape[0] = out->plan.panels.ints;
        out->packed.stride[0] = 1;
        TRY(rnl_op_qgemm_pack(list, p->b_given, &out->packed));
        out->params.packed_b = &out->packed;
    }
    return rnl_qgemm_describe(list->device, &out->params, a, p->b_given, p->dst, &out->problem);
}

/* How a CPU multiplies; sums and what is multiplied fill its registers. */
typedef struct vectors {
    rnl_instruction instruction; /* RNL_INSTRUCTION_COUNT: floats */
    int64_t width, count, most_rows;
    bool fip;
} vectors;

static vectors vectors_of(const rnl_device *device, rnl_instruction instruction)
{
    if (instruction == RNL_INSTRUCTION_COUNT)
        return (vectors){instruction, device->vector_width, 2, device->vector_width < 16 ? 4 : 8, false};
    const bool halves = rnl_instruction_has_8_lanes(instruction); /* 16 elements are two registers */
    return (vectors){instruction, 16, halves ? 1 : 2, halves ? 6 : 8, false};
}

/* Rows of a tile. Seven are no slower than eight, and images of 7 x 7 leave none over. */
static int64_t rows_of(const vectors *v, int64_t m)
{
    return v->most_rows < 8 ? rnl_gemm_tile_rows(v->most_rows, m) : rnl_gemm_tile_rows_of_8(m);
}

/* Blocks of columns that share the rows of a, which have to be widened, as long as all threads have enough to do. */
static int32_t blocks_of(const rnl_device *device, const rnl_qgemm_problem *p, int64_t row_tiles, int64_t columns)
{
    const int64_t all = rnl_divide_up(p->n, columns), wanted = 4 * (int64_t)device->info.compute_units;
    int32_t blocks = 1;
    while (blocks < MOST_BLOCKS && blocks < all &&
           row_tiles * rnl_divide_up(all, 2 * blocks) * rnl_dims_elements(&p->batch) >= wanted)
        blocks *= 2;
    return blocks;
}

/* Rows of a tile, and what each work-item takes. */
static int64_t choose_grid(const rnl_device *device, const rnl_qgemm_problem *p, const vectors *v, rnl_qgemm_grid *out)
{
    const int64_t columns = v->count * v->width;
    const bool widens = rnl_instruction_has_8_lanes(v->instruction) || v->instruction == RNL_INSTRUCTION_MADD16;
    *out = (rnl_qgemm_grid){.rows_first = rnl_device_is_cpu(device), .tiles = 1, .blocks = 1};
    if (v->fip) {
        const rnl_shares s =
            rnl_fip_split(device, rnl_divide_up(p->m, RNL_FIP_ROWS), rnl_divide_up(p->n, columns), FIP_RUNS, FIP_RUNS);
        out->blocks = (int32_t)s.each_blocks;
        return s.each_rows * RNL_FIP_ROWS;
    }
    const int64_t rows = rows_of(v, p->m);
    if (widens) {
        out->blocks = blocks_of(device, p, rnl_divide_up(p->m, rows), columns);
    } else {
        out->tiles = (int32_t)rnl_tiles_of_item(device, rnl_divide_up(p->m, rows),
                                                rnl_divide_up(p->n, columns) * rnl_dims_elements(&p->batch), p->k);
        out->rows_first = out->rows_first && !rnl_shares_evenly(device, p->m, rows * out->tiles);
    }
    return rows;
}

static rnl_status append_vectors(rnl_step_list *list, const char *name, const rnl_qgemm_problem *given, vectors v)
{
    ready r;
    rnl_step_builder step;
    rnl_qgemm_grid grid;
    size_t local[3];
    TRY(prepare(list, given, &r));
    const rnl_qgemm_problem *p = &r.problem;
    const int64_t rows = choose_grid(list->device, p, &v, &grid);
    const int64_t row_tiles = rnl_divide_up(p->m, rows * grid.tiles);
    const int64_t column_tiles = rnl_divide_up(p->n, v.count * v.width * grid.blocks);
    const size_t items[3] = {(size_t)(grid.rows_first ? row_tiles : column_tiles),
                             (size_t)(grid.rows_first ? column_tiles : row_tiles),
                             (size_t)rnl_dims_elements(&p->batch)};
    rnl_step_begin(&step, list, name, p->index64);
    if (v.instruction != RNL_INSTRUCTION_COUNT)
        rnl_step_define(&step, "%s%s", rnl_instruction_define(v.instruction), v.fip ? " -DFIP" : "");
    if (v.instruction == RNL_INSTRUCTION_VNNI)
        rnl_step_define(&step, "T_A=%s", rnl_dtype_define(p->a->dtype));
    rnl_step_define(&step, "R=%lld -DW=%lld -DNB=%lld", (long long)rows, (long long)v.width, (long long)v.count);
    if (!rnl_qgemm_takes_vectors(p))
        rnl_step_define(&step, "LANES");
    rnl_qgemm_add_common(&step, p, &grid);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 3, items, local);
    return rnl_qgemm_end(&step, p, "qgemm_panel.cl", "qgemm_panel");
}

static rnl_instruction vnni_of(const rnl_device *device)
{
    return rnl_device_runs(device, RNL_INSTRUCTION_VNNI)    ? RNL_INSTRUCTION_VNNI
           : rnl_device_runs(device, RNL_INSTRUCTION_VNNI8) ? RNL_INSTRUCTION_VNNI8
                                                            : RNL_INSTRUCTION_FOURS;
}

bool rnl_qgemm_vnni_applies(const rnl_device *device, const void *data)
{
    return rnl_qgemm_panel_applies(device, data) && rnl_device_runs(device, vnni_of(device));
}

rnl_status rnl_qgemm_vnni_append(rnl_step_list *list, const char *name, const void *problem)
{
    return append_vectors(list, name, problem, vectors_of(list->device, vnni_of(list->device)));
}

static rnl_instruction madd_of(const rnl_device *device)
{
    return rnl_device_runs(device, RNL_INSTRUCTION_MADD16) ? RNL_INSTRUCTION_MADD16 : RNL_INSTRUCTION_MADD8;
}

bool rnl_qgemm_madd_applies(const rnl_device *device, const void *data)
{
    return rnl_qgemm_panel_applies(device, data) && rnl_device_runs(device, madd_of(device));
}

rnl_status rnl_qgemm_madd_append(rnl_step_list *list, const char *name, const void *problem)
{
    const rnl_qgemm_problem *p = problem;
    vectors v = vectors_of(list->device, madd_of(list->device));
    if (v.instruction == RNL_INSTRUCTION_MADD8 && rnl_fip_pays(list->device, p->m)) {
        v.count = 2;
        v.fip = true;
    }
    return append_vectors(list, name, problem, v);
}

/* ---- dot products of packed bytes ------------------------------------------------------------------------------- */

#define DOT_LANES 16 /* columns of neighbouring work-items, each with another 16 further on, as in qgemm_dot.cl */

bool rnl_qgemm_dot_applies(const rnl_device *device, const void *data)
{
    return rnl_qgemm_panel_applies(device, data) &&
           (rnl_device_runs(device, RNL_INSTRUCTION_DP4A) || rnl_device_runs(device, RNL_INSTRUCTION_DOT));
}

/* Intel's runtime for CPUs has the function, and calls it for each lane: 30 times slower than floats in vectors. */
bool rnl_qgemm_dot_pays(const rnl_device *device, const void *data)
{
    return !rnl_device_is_cpu(device) && rnl_qgemm_panel_pays(device, data);
}

/* Every row of every matrix begins where an integer may. */
static bool has_aligned_rows(const rnl_qgemm_problem *p)
{
    bool aligned = p->a->offset % 4 == 0 && p->a_m % 4 == 0;
    for (size_t i = 0; i < p->batch.rank; ++i)
        aligned = aligned && p->batch.stride[RNL_QGEMM_A][i] % 4 == 0;
    return aligned;
}

static rnl_status append_lanes(rnl_step_list *list, const char *name, const void *data, const char *define)
{
    ready r;
    rnl_step_builder step;
    TRY(prepare(list, data, &r));
    const rnl_qgemm_problem *p = &r.problem;
    const int64_t rows = rnl_gemm_tile_rows(8, p->m), columns = 2;
    const size_t lanes = (size_t)((p->n - 1) / (DOT_LANES * columns) + 1) * DOT_LANES;
    const size_t items[3] = {lanes, (size_t)((p->m + rows - 1) / rows), (size_t)rnl_dims_elements(&p->batch)};
    const size_t local[3] = {DOT_LANES, rnl_device_is_cpu(list->device) ? 1 : 4, 1};
    rnl_step_begin(&step, list, name, p->index64);
    if (define)
        rnl_step_define(&step, "%s", define);
    rnl_step_define(&step, "R=%lld -DC=%lld", (long long)rows, (long long)columns);
    rnl_qgemm_add_common(&step, p, &(rnl_qgemm_grid){.fours_of_a = has_aligned_rows(p), .tiles = 1});
    rnl_step_range(&step, 3, items, local);
    return rnl_qgemm_end(&step, p, "qgemm_dot.cl", "qgemm_dot");
}

rnl_status rnl_qgemm_dot_append(rnl_step_list *list, const char *name, const void *problem)
{
    const bool dp4a = rnl_device_runs(list->device, RNL_INSTRUCTION_DP4A);
    return append_lanes(list, name, problem, rnl_instruction_define(dp4a ? RNL_INSTRUCTION_DP4A : RNL_INSTRUCTION_DOT));
}

/* Vectors for CPUs; neighbouring work-items for neighbouring columns on GPUs. */
rnl_status rnl_qgemm_panel_append(rnl_step_list *list, const char *name, const void *problem)
{
    return list->device->info.type == RNL_DEVICE_GPU
               ? append_lanes(list, name, problem, NULL)
               : append_vectors(list, name, problem, vectors_of(list->device, RNL_INSTRUCTION_COUNT));
}
