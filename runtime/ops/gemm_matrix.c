/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_matrix.h"
#include "base/memory.h"
#include "base/status.h"
#include "device/enumerate.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"

/* A work-group's tile and its sub-groups: sums stay in registers, some tiles of each factor in local memory. */
typedef struct matrix_kind {
    int instruction;
    bool model;  /* which compiles slowly, so its tiles are few */
    bool floats; /* elements of 4 bytes instead of 2 */
    int64_t rows, columns, depth, groups_m, groups_n, lanes, tiles;
} matrix_kind;

/* Of one instruction the first that gives three in four of the device's units work, else the last. */
static const matrix_kind kinds[] = {
    {RNL_MATRIX_MFMA, false, true, 128, 128, 16, 2, 2, 64, 2},
    {RNL_MATRIX_MFMA, false, false, 128, 128, 32, 2, 2, 64, 2},
    {RNL_MATRIX_DPAS8, false, false, 64, 64, 32, 2, 4, 8, 2},
    {RNL_MATRIX_DPAS16, false, false, 64, 64, 32, 2, 2, 16, 2},
    {RNL_MATRIX_MMA, false, false, 128, 256, 32, 2, 4, 32, 4},
    {RNL_MATRIX_MMA, false, false, 128, 128, 32, 2, 4, 32, 3},
    {RNL_MATRIX_MMA, false, false, 64, 64, 64, 2, 2, 32, 3},
    {RNL_MATRIX_MFMA, true, true, 32, 32, 16, 1, 2, 64, 2},
    {RNL_MATRIX_MFMA, true, false, 32, 32, 32, 1, 2, 64, 2},
    {RNL_MATRIX_DPAS8, true, false, 16, 32, 32, 1, 2, 8, 2},
    {RNL_MATRIX_DPAS16, true, false, 32, 32, 32, 2, 1, 16, 2},
    {RNL_MATRIX_MMA, true, false, 32, 32, 32, 1, 2, 32, 3},
};

static const char *const names[] = {"", "MFMA", "DPAS8", "DPAS16", "MMA"};

static int64_t items_of(const matrix_kind *kind)
{
    return kind->groups_m * kind->groups_n * kind->lanes;
}

static int64_t groups_of(const matrix_kind *kind, const rnl_gemm_problem *problem)
{
    return rnl_divide_up(problem->m, kind->rows) * rnl_divide_up(problem->n, kind->columns);
}

/* NVIDIA's driver names 48 KiB for all devices, and takes kernels with as much as the multiprocessor has: 160 KiB and
 * more with compute capability 8.0, 9.0 and later. */
static uint64_t local_bytes(const rnl_device *device, const matrix_kind *kind)
{
    const int capability =
        kind->instruction == RNL_MATRIX_MMA && !kind->model ? rnl_device_compute_capability(device) : 0;
    return capability == 80 || capability >= 90 ? 160 * 1024 : device->info.local_memory_bytes;
}

/* As in gemm_matrix.cl and gemm_mma.cl and, for the model's exchange, in matrix.clh and mma.clh: of the former at most
 * 32 bytes of each factor a work-item, of the latter 28 bytes. */
static bool fits(const rnl_device *device, const matrix_kind *kind)
{
    const int64_t element = kind->floats ? 4 : 2, gap = kind->instruction == RNL_MATRIX_MMA ? 0 : 4;
    const int64_t bytes = kind->tiles * (kind->rows + kind->columns) * (kind->depth + gap) * element;
    const int64_t total = bytes + (kind->model ? items_of(kind) * 64 : 0);
    return (uint64_t)total <= local_bytes(device, kind) && (uint64_t)items_of(kind) <= device->info.max_work_group_size;
}

static const matrix_kind *find_kind(const rnl_device *device, const rnl_gemm_problem *problem, int found)
{
    const rnl_dtype type = problem->dst->dtype;
    const int instruction = found == RNL_MATRIX_WGMMA ? RNL_MATRIX_MMA : found & ~RNL_MATRIX_MODEL;
    const matrix_kind *last = NULL;
    if (found <= 0 || (type != RNL_F32 && type != RNL_F16 && type != RNL_BF16))
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const matrix_kind *kind = &kinds[i];
        if (kind->instruction != instruction || kind->model != !!(found & RNL_MATRIX_MODEL) ||
            kind->floats != (type == RNL_F32) || !fits(device, kind))
            continue;
        last = kind;
        if (4 * groups_of(kind, problem) * rnl_dims_elements(&problem->batch) >= 3 * rnl_device_units(device))
            break;
    }
    return last;
}

bool rnl_gemm_matrix_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    return problem->k > 0 && problem->k <= INT32_MAX / 4 && !problem->packed &&
           find_kind(device, problem, device->matrix_instruction);
}

/* Smaller ones fill too little of a tile. */
bool rnl_gemm_matrix_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    (void)device;
    return rnl_count_to_choose_by(problem->m, RNL_DETERMINISTIC_ROWS) >= 32 && problem->n >= 32 && problem->k >= 16;
}

rnl_status rnl_gemm_matrix_append(rnl_step_list *list, const char *name, const void *data)
{
    return rnl_gemm_matrix_append_with(list->device->matrix_instruction, list, name, data);
}

/* What gemm_matrix.cl and gemm_mma.cl take in common, and what each takes of its own. */
static void define_tile(rnl_step_builder *step, const matrix_kind *kind, const rnl_gemm_problem *problem)
{
    rnl_step_type(step, "T", problem->dst->dtype);
    if (kind->instruction == RNL_MATRIX_MMA)
        rnl_step_define(step, "TILES=%d", (int)kind->tiles);
    else
        rnl_step_define(step, "INSTRUCTION=%s", names[kind->instruction]);
    rnl_step_define(step, "BM=%d -DBN=%d -DBK=%d -DGROUPS_M=%d -DGROUPS_N=%d", (int)kind->rows, (int)kind->columns,
                    (int)kind->depth, (int)kind->groups_m, (int)kind->groups_n);
    rnl_step_define(step, "A_ALONG=%d -DB_ALONG=%d", rnl_gemm_a_along(problem), rnl_gemm_b_along(problem));
    if (kind->model)
        rnl_step_define(step, "MODEL");
}

rnl_status rnl_gemm_matrix_append_with(int instruction, rnl_step_list *list, const char *name,
                                       const rnl_gemm_problem *problem)
{
    const matrix_kind *kind = find_kind(list->device, problem, instruction);
    rnl_step_builder step;
    if (!kind)
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    const bool mma = kind->instruction == RNL_MATRIX_MMA;
    const size_t items = (size_t)items_of(kind);
    rnl_step_begin(&step, list, name, problem->index64);
    define_tile(&step, kind, problem);
    rnl_gemm_add_arguments(&step, problem, false);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 3,
                   (size_t[3]){(size_t)groups_of(kind, problem) * items, 1, (size_t)rnl_dims_elements(&problem->batch)},
                   (size_t[3]){items, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, mma ? "gemm_mma.cl" : "gemm_matrix.cl", mma ? "gemm_mma" : "gemm_matrix");
}
