/* SPDX-License-Identifier: Apache-2.0 */
/* A row times a matrix on CPUs, or a few: as fast as memory gives the matrix, read where it lies. */
#include "base/memory.h"
#include "kernel/team.h"
#include "ops/deterministic.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include <string.h>

#define FILE_NAME "gemm_row.cl"
#define TERMS 8     /* that it reads at a time */
#define MOST_ROWS 4 /* more, and their terms leave the registers: eight rows took 2.5 times as long as by tiles */
#define MOST_COLUMNS RNL_TEAM_SUMS             /* of a work-item there */
#define FAR_ELEMENTS (INT64_C(3) * 512 * 1024) /* a matrix that is not in the caches of the cores */
#define VERY_FAR_ELEMENTS (INT64_C(8) * 1024 * 1024)
#define LONG_COLUMNS 1024     /* a row of so many is read as fast as a longer one */
#define LINES_COLUMNS 64      /* some lines of memory */
#define FEWEST_ELEMENTS 16384 /* of a matrix by stretches, … */
#define FEWEST_LONG_ELEMENTS                                                                                           \
    65536               /* with registers of 16 floats: fewer are as fast by tiles, which a model has anyway */
#define FEWEST_TERMS 16 /* … and terms of a stretch */

bool rnl_gemm_row_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_dtype type = problem->dst->dtype;
    return problem->variant == 0 && !problem->packed && problem->b_n == 1 && problem->k > 0 &&
           (problem->m == 1 || (problem->m > 1 && problem->m <= MOST_ROWS && !problem->c)) &&
           problem->n >= device->vector_width && rnl_dtype_is_float(type) && type != RNL_F64;
}

/* How a product is cut up: see gemm_row.cl. */
typedef struct row_cut {
    int64_t span, stretch, stretches;
    bool by_team;
} row_cut;

/*
 * Whether a team's threads take a stretch of terms each. Not told by the batch, since it is another order of adding up.
 */
static bool takes_stretches(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const int64_t units = rnl_device_units(device);
    return problem->m == 1 && units > 1 && units <= RNL_TEAM_MOST_THREADS && problem->n <= MOST_COLUMNS &&
           problem->k >= FEWEST_TERMS * units && rnl_team_define(device, FILE_NAME) &&
           rnl_team_get_wish() != RNL_TEAM_OFF;
}

/* What is in the caches is faster by tiles, but for whole rows, by a team or one of a batch each. */
bool rnl_gemm_row_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    if (rnl_is_deterministic() || !rnl_device_is_cpu(device) || problem->k < TERMS ||
        problem->n > INT64_MAX / problem->k)
        return false;
    const int64_t elements = problem->n * problem->k;
    /* Of several rows tiles of registers of 16 floats read whole lines: 0.5 ms of one thread for 4x1000x2048 on a Xeon
     * (family 6, model 207), 0.8 so; with two threads either takes 0.3. */
    if (problem->m > 1 && device->vector_width > 8)
        return false;
    if (problem->dst->dtype == RNL_F32 && takes_stretches(device, problem))
        return elements >= (device->vector_width > 8 ? FEWEST_LONG_ELEMENTS : FEWEST_ELEMENTS);
    /* One thread of a core that takes two vectors of 16 floats a cycle from its caches: 1.0 to 1.2 times by tiles'
     * speed. */
    if (device->vector_width > 8 && rnl_device_units(device) == 1 && rnl_processor_is_swift())
        return problem->n >= 256 && elements >= FEWEST_LONG_ELEMENTS;
    return problem->n >= 512 && elements >= FAR_ELEMENTS;
}

/* What a batch's matrices leave to each work-item: whole lines of memory at least. Spans are in no sum. */
static int64_t span_of_batch(const rnl_device *device, const rnl_gemm_problem *problem, int64_t span)
{
    const bool is_enough = rnl_dims_elements(&problem->batch) >= rnl_device_units(device);
    const int64_t least = is_enough || problem->n < LINES_COLUMNS ? problem->n : LINES_COLUMNS;
    return span > least ? span : least;
}

/* Short rows are read in as few pieces as can be, and so is memory that is far away; else threads should finish
 * together. */
static int64_t choose_span(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const int64_t vector = device->vector_width, units = rnl_device_units(device);
    const bool by_unit = problem->n < 2 * units * LONG_COLUMNS || problem->n >= VERY_FAR_ELEMENTS / problem->k;
    const int64_t items = by_unit ? units : 2 * units;
    const int64_t wish = (problem->n + items - 1) / items, whole = (wish + vector - 1) / vector * vector;
    const int64_t span = whole < MOST_COLUMNS ? whole : MOST_COLUMNS;
    return span < problem->n ? span : problem->n;
}

static row_cut choose_cut(const rnl_device *device, const rnl_gemm_problem *problem)
{
    row_cut cut = {.span = choose_span(device, problem), .stretch = problem->k, .stretches = 1};
    if (!takes_stretches(device, problem))
        return cut;
    cut.stretches = rnl_device_units(device);
    cut.stretch = rnl_divide_up(rnl_divide_up(problem->k, cut.stretches), TERMS) * TERMS;
    cut.by_team = rnl_dims_elements(&problem->batch) == 1 && !problem->index64;
    if (!cut.by_team)
        cut.span = span_of_batch(device, problem, cut.span);
    return cut;
}

/* ROW_UNPACK of gemm_row.cl. */
static void add_arguments(rnl_step_builder *step, const rnl_gemm_problem *problem, const row_cut *cut)
{
    const float factors[2] = {problem->alpha, problem->beta};
    int32_t bits[2];
    memcpy(bits, factors, sizeof bits);
    const int64_t flags = (problem->c != NULL) + 2 * cut->by_team;
    const int64_t numbers[12] = {problem->n,
                                 problem->k,
                                 problem->a_k,
                                 problem->b_k,
                                 problem->c_n,
                                 problem->dst_n,
                                 cut->span,
                                 problem->m > 1 ? problem->a_m : cut->stretch,
                                 problem->m > 1 ? problem->dst_m : cut->stretches,
                                 flags,
                                 bits[0],
                                 bits[1]};
    rnl_gemm_add_matrices(step, problem, numbers);
}

rnl_status rnl_gemm_row_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const row_cut cut = choose_cut(list->device, problem);
    const int64_t columns = cut.by_team ? cut.stretches : rnl_divide_up(problem->n, cut.span);
    const size_t items[3] = {(size_t)columns, 1, (size_t)rnl_dims_elements(&problem->batch)};
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_step_type(&step, "T", problem->dst->dtype);
    rnl_step_define(&step, "W=%lld", (long long)list->device->vector_width);
    if (problem->m > 1)
        rnl_step_define(&step, "ROWS=%lld", (long long)problem->m);
    if (problem->chain && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(&step, "LANES");
    add_arguments(&step, problem, &cut);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 3, items, (size_t[3]){1, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, FILE_NAME, "gemm_row");
}
