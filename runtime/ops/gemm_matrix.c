/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_matrix.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"

/* A work-group's tile and its sub-groups: sums stay in registers, two tiles of each factor in local memory. */
typedef struct matrix_kind {
    int instruction;
    bool model;  /* which compiles slowly, so its tiles are few */
    bool floats; /* elements of 4 bytes instead of 2 */
    int64_t rows, columns, depth, groups_m, groups_n, lanes;
} matrix_kind;

static const matrix_kind kinds[] = {
    {RNL_MATRIX_MFMA, false, true, 128, 128, 16, 2, 2, 64}, {RNL_MATRIX_MFMA, false, false, 128, 128, 32, 2, 2, 64},
    {RNL_MATRIX_DPAS8, false, false, 64, 64, 32, 2, 4, 8},  {RNL_MATRIX_DPAS16, false, false, 64, 64, 32, 2, 2, 16},
    {RNL_MATRIX_MFMA, true, true, 32, 32, 16, 1, 2, 64},    {RNL_MATRIX_MFMA, true, false, 32, 32, 32, 1, 2, 64},
    {RNL_MATRIX_DPAS8, true, false, 16, 32, 32, 1, 2, 8},   {RNL_MATRIX_DPAS16, true, false, 32, 32, 32, 2, 1, 16},
};

static const char *const names[] = {"", "MFMA", "DPAS8", "DPAS16"};

static int64_t items_of(const matrix_kind *kind)
{
    return kind->groups_m * kind->groups_n * kind->lanes;
}

/* As in gemm_matrix.cl and, for the model's exchange, in matrix.clh: at most 32 bytes of each factor a work-item. */
static bool fits(const rnl_device *device, const matrix_kind *kind)
{
    const int64_t element = kind->floats ? 4 : 2;
    const int64_t bytes = 2 * (kind->rows + kind->columns) * (kind->depth + 4) * element;
    const int64_t total = bytes + (kind->model ? items_of(kind) * 64 : 0);
    return (uint64_t)total <= device->info.local_memory_bytes &&
           (uint64_t)items_of(kind) <= device->info.max_work_group_size;
}

static const matrix_kind *find_kind(const rnl_device *device, const rnl_gemm_problem *problem, int found)
{
    const rnl_dtype type = problem->dst->dtype;
    if (found <= 0 || (type != RNL_F32 && type != RNL_F16 && type != RNL_BF16))
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (kinds[i].instruction == (found & ~RNL_MATRIX_MODEL) && kinds[i].model == !!(found & RNL_MATRIX_MODEL) &&
            kinds[i].floats == (type == RNL_F32) && fits(device, &kinds[i]))
            return &kinds[i];
    return NULL;
}

bool rnl_gemm_matrix_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    return problem->k > 0 && !problem->packed && find_kind(device, problem, device->matrix_instruction);
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

rnl_status rnl_gemm_matrix_append_with(int instruction, rnl_step_list *list, const char *name,
                                       const rnl_gemm_problem *problem)
{
    const matrix_kind *kind = find_kind(list->device, problem, instruction);
    rnl_step_builder step;
    if (!kind)
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    const int64_t groups = rnl_divide_up(problem->m, kind->rows) * rnl_divide_up(problem->n, kind->columns);
    const size_t items = (size_t)items_of(kind);
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", problem->dst->dtype);
    rnl_step_define(&step, "INSTRUCTION=%s", names[kind->instruction]);
    rnl_step_define(&step, "BM=%d -DBN=%d -DBK=%d -DGROUPS_M=%d -DGROUPS_N=%d", (int)kind->rows, (int)kind->columns,
                    (int)kind->depth, (int)kind->groups_m, (int)kind->groups_n);
    rnl_step_define(&step, "A_ALONG=%d -DB_ALONG=%d", problem->a_k == 1 || problem->a_m != 1,
                    problem->b_k == 1 && problem->b_n != 1);
    if (kind->model)
        rnl_step_define(&step, "MODEL");
    rnl_gemm_add_arguments(&step, problem, false);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 3, (size_t[3]){(size_t)groups * items, 1, (size_t)rnl_dims_elements(&problem->batch)},
                   (size_t[3]){items, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "gemm_matrix.cl", "gemm_matrix");
}
