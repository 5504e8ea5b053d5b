/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of 16-bit floats by warpgroups of NVIDIA's GPUs of compute capability 9.0, which read both factors from
 * local memory, where the copy engine brings them. Found by trying: matrix_probe.c.
 */
#include "ops/gemm_wgmma.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/gemm_matrix.h"
#include "ops/implementation.h"

/* A work-group's tile, pairs of tiles in local memory, and how fast large products are, in percent of the fastest
 * (H100). */
typedef struct wgmma_kind {
    int64_t rows, columns, tiles, rate;
} wgmma_kind;

#define DEPTH 64
#define MAP_FLOATS 32 /* a tensor map; a work-group has two */

static const wgmma_kind kinds[] = {{128, 256, 4, 100}, {128, 128, 6, 85}, {64, 128, 6, 69}, {64, 64, 6, 48}};
static const wgmma_kind model = {64, 64, 1, 1};

static bool is_model(int instruction)
{
    return (instruction & RNL_MATRIX_MODEL) != 0;
}

static int64_t tiles_of(const wgmma_kind *kind, const rnl_gemm_problem *problem)
{
    return rnl_divide_up(problem->m, kind->rows) * rnl_divide_up(problem->n, kind->columns);
}

/* Work-groups of one product, of which a multiprocessor has one at a time. */
static int64_t groups_of(const rnl_device *device, const wgmma_kind *kind, const rnl_gemm_problem *problem)
{
    const int64_t tiles = tiles_of(kind, problem), units = rnl_device_units(device);
    return tiles < units ? tiles : units;
}

/* The kind that is done first: all take their tiles in rounds. */
static const wgmma_kind *find_kind(const rnl_device *device, const rnl_gemm_problem *problem, int instruction)
{
    const int64_t batches = rnl_dims_elements(&problem->batch);
    const wgmma_kind *best = kinds;
    double least = 0;
    if (is_model(instruction))
        return &model;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const wgmma_kind *kind = &kinds[i];
        const int64_t rounds = rnl_divide_up(tiles_of(kind, problem) * batches, rnl_device_units(device));
        const double time = (double)(rounds * kind->rows * kind->columns) / (double)kind->rate;
        if (i == 0 || time < least) {
            least = time;
            best = kind;
        }
    }
    return best;
}

int64_t rnl_gemm_wgmma_scratch(const rnl_device *device, int instruction, const rnl_gemm_problem *problem)
{
    const wgmma_kind *kind = find_kind(device, problem, instruction);
    return MAP_FLOATS * (1 + 2 * groups_of(device, kind, problem) * rnl_dims_elements(&problem->batch));
}

static bool has_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const rnl_view *scratch = problem->scratch;
    return scratch && scratch->dtype == RNL_F32 &&
           rnl_view_elements(scratch) >= rnl_gemm_wgmma_scratch(device, device->matrix_instruction, problem);
}

bool rnl_gemm_wgmma_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_dtype type = problem->dst->dtype;
    return device->matrix_instruction > 0 && (device->matrix_instruction & ~RNL_MATRIX_MODEL) == RNL_MATRIX_WGMMA &&
           (type == RNL_F16 || type == RNL_BF16) && problem->k > 0 && problem->k <= INT32_MAX / 4 &&
           problem->m <= INT32_MAX && problem->n <= INT32_MAX && !problem->packed && has_scratch(device, problem);
}

/* The copy engine takes what lies in lines of 16 bytes. */
static bool in_lines(const rnl_gemm_problem *problem, const rnl_view *view, size_t which, int64_t step, int64_t between)
{
    bool whole = step == 1 && between > 0 && between % 8 == 0 && view->offset % 8 == 0;
    for (size_t d = 0; d < problem->batch.rank; ++d)
        whole = whole && problem->batch.stride[which][d] % 8 == 0;
    return whole;
}

bool rnl_gemm_wgmma_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const bool a_along = rnl_gemm_a_along(problem), b_along = rnl_gemm_b_along(problem);
    (void)device;
    return rnl_count_to_choose_by(problem->m, RNL_DETERMINISTIC_ROWS) >= 32 && problem->n >= 32 && problem->k >= 16 &&
           in_lines(problem, problem->a, RNL_GEMM_A, a_along ? problem->a_k : problem->a_m,
                    a_along ? problem->a_m : problem->a_k) &&
           in_lines(problem, problem->b, RNL_GEMM_B, b_along ? problem->b_k : problem->b_n,
                    b_along ? problem->b_n : problem->b_k);
}

rnl_status rnl_gemm_wgmma_append_with(int instruction, rnl_step_list *list, const char *name,
                                      const rnl_gemm_problem *given)
{
    rnl_gemm_problem problem = *given;
    const wgmma_kind *kind = find_kind(list->device, &problem, instruction);
    const size_t groups = (size_t)groups_of(list->device, kind, &problem);
    const size_t items = (size_t)(kind->rows / 64) * 128 + (is_model(instruction) ? 0 : 32);
    rnl_step_builder step;
    problem.index64 |= problem.scratch->offset + rnl_view_elements(problem.scratch) > INT32_MAX / 4;
    rnl_step_begin(&step, list, name, problem.index64);
    rnl_step_type(&step, "T", problem.dst->dtype);
    rnl_step_define(&step, "BM=%d -DBN=%d -DBK=%d -DTILES=%d", (int)kind->rows, (int)kind->columns, DEPTH,
                    (int)kind->tiles);
    rnl_step_define(&step, "A_ALONG=%d -DB_ALONG=%d", rnl_gemm_a_along(&problem), rnl_gemm_b_along(&problem));
    if (problem.chain && !rnl_gemm_chain_takes_vectors(&problem))
        rnl_step_define(&step, "LANES");
    if (is_model(instruction))
        rnl_step_define(&step, "MODEL");
    rnl_gemm_add_arguments(&step, &problem, false);
    rnl_step_view(&step, problem.scratch);
    rnl_gemm_add_chain(&step, &problem);
    rnl_step_range(&step, 3, (size_t[3]){groups * items, 1, (size_t)rnl_dims_elements(&problem.batch)},
                   (size_t[3]){items, 1, 1});
    step.step.flops = rnl_gemm_flops(&problem);
    step.step.bytes = rnl_gemm_bytes(&problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "gemm_wgmma.cl", "gemm_wgmma");
}

rnl_status rnl_gemm_wgmma_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *problem = data;
    if (!rnl_gemm_wgmma_applies(list->device, problem))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    return rnl_gemm_wgmma_append_with(list->device->matrix_instruction, list, name, problem);
}
