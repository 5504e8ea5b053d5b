/* SPDX-License-Identifier: Apache-2.0 */
/* One row times a matrix on CPUs: as fast as memory gives the matrix, read where it lies. */
#include "ops/deterministic.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"

#define MOST_COLUMNS 2048                      /* of a work-item, as in gemm_row.cl */
#define FAR_ELEMENTS (INT64_C(3) * 512 * 1024) /* a matrix that is not in the caches of the cores */
#define VERY_FAR_ELEMENTS (INT64_C(8) * 1024 * 1024)
#define LONG_COLUMNS 1024 /* a row of so many is read as fast as a longer one */

bool rnl_gemm_row_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_dtype type = problem->dst->dtype;
    return problem->variant == 0 && !problem->packed && problem->m == 1 && problem->b_n == 1 && problem->k > 0 &&
           problem->n >= device->vector_width && rnl_dtype_is_float(type) && type != RNL_F64;
}

/* What is in the caches is faster by tiles. */
bool rnl_gemm_row_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    return !rnl_is_deterministic() && rnl_device_is_cpu(device) && problem->k >= 8 && problem->n >= 512 &&
           problem->n <= INT64_MAX / problem->k && problem->n * problem->k >= FAR_ELEMENTS;
}

/* Short rows are read in as few pieces as can be, and so is memory that is far away; else threads should finish
 * together. */
static int64_t choose_span(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const int64_t vector = device->vector_width, units = device->info.compute_units ? device->info.compute_units : 1;
    const bool by_unit = problem->n < 2 * units * LONG_COLUMNS || problem->n >= VERY_FAR_ELEMENTS / problem->k;
    const int64_t items = by_unit ? units : 2 * units;
    const int64_t wish = (problem->n + items - 1) / items, whole = (wish + vector - 1) / vector * vector;
    const int64_t most = problem->n / vector * vector;
    const int64_t span = whole < MOST_COLUMNS ? whole : MOST_COLUMNS;
    return span < most ? span : most;
}

rnl_status rnl_gemm_row_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_dtype type = problem->dst->dtype;
    const int64_t span = choose_span(list->device, problem);
    const size_t items[3] = {(size_t)((problem->n + span - 1) / span), 1, (size_t)rnl_dims_elements(&problem->batch)};
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", type);
    rnl_step_define(&step, "W=%lld", (long long)list->device->vector_width);
    if (problem->chain && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(&step, "LANES");
    rnl_gemm_add_arguments(&step, problem, true);
    rnl_step_index(&step, span);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 3, items, (size_t[3]){1, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "gemm_row.cl", "gemm_row");
}
