/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_choice.h"
#include "ops/gemm_panel.h"
#include "ops/tile.h"
#include "ops/tuning.h"
#include <stdlib.h>
#include <string.h>

/* As they are numbered in tuning tables: a name keeps its place. */
static const char *const names[] = {"portable", "panel", "tiled",    "clblast", "matrix",
                                    "bf16",     "row",   "strassen", "wgmma"};
#define NAMES (sizeof names / sizeof *names)

uint32_t rnl_gemm_choice_number(const char *name, uint32_t variant)
{
    for (size_t i = 0; i < NAMES; ++i)
        if (strcmp(names[i], name) == 0 && variant < RNL_GEMM_VARIANTS)
            return (uint32_t)i * RNL_GEMM_VARIANTS + variant;
    return RNL_TUNING_NONE;
}

uint32_t rnl_gemm_choice_variants(const rnl_device *device, const char *name)
{
    if (strcmp(name, "panel") == 0)
        return rnl_gemm_panel_variants(device);
    return strcmp(name, "tiled") == 0 ? rnl_tile_kinds() : 0;
}

/* Which neighbours in memory a matrix has: 1 along its columns, 2 along its rows. */
static int64_t layout_of(int64_t row_stride, int64_t column_stride)
{
    return (column_stride == 1) + 2 * (row_stride == 1);
}

rnl_hash rnl_gemm_problem_hash(const rnl_gemm_problem *problem)
{
    const int64_t key[] = {'g',
                           'e',
                           'm',
                           'm',
                           problem->normwise ? 2 : 1,
                           problem->m,
                           problem->n,
                           problem->k,
                           rnl_dims_elements(&problem->batch),
                           problem->a->dtype,
                           problem->b->dtype,
                           problem->dst->dtype,
                           layout_of(problem->a_m, problem->a_k),
                           problem->packed ? -1 : layout_of(problem->b_k, problem->b_n),
                           layout_of(problem->dst_m, problem->dst_n),
                           problem->c != NULL,
                           problem->chain != NULL};
    return rnl_hash_bytes(key, sizeof key);
}

static const rnl_implementation *find(const rnl_implementation *implementations, size_t count, const char *name)
{
    for (size_t i = 0; i < count; ++i) {
        const char *colon = strchr(implementations[i].name, ':');
        if (colon && strcmp(colon + 1, name) == 0)
            return &implementations[i];
    }
    return NULL;
}

static bool pays(const rnl_implementation *it, const rnl_device *device, const rnl_gemm_problem *problem)
{
    return it && it->applies(device, problem) && it->pays(device, problem);
}

/* As measured; NULL when nothing was, or it does not apply here. Bounds by norm change nothing for most products. */
static const rnl_implementation *find_tuned(const rnl_implementation *implementations, size_t count, rnl_device *device,
                                            rnl_gemm_problem *problem)
{
    uint32_t number = rnl_tuning_get_noted(device, rnl_gemm_problem_hash(problem), NAMES * RNL_GEMM_VARIANTS);
    if (number == RNL_TUNING_NONE && problem->normwise &&
        !pays(find(implementations, count, "strassen"), device, problem)) {
        rnl_gemm_problem elementwise = *problem;
        elementwise.normwise = false;
        number = rnl_tuning_get_noted(device, rnl_gemm_problem_hash(&elementwise), NAMES * RNL_GEMM_VARIANTS);
    }
    if (number == RNL_TUNING_NONE)
        return NULL;
    const rnl_implementation *it = find(implementations, count, names[number / RNL_GEMM_VARIANTS]);
    problem->variant = number % RNL_GEMM_VARIANTS;
    if (it && (!it->applies || it->applies(device, problem)))
        return it;
    problem->variant = 0;
    return NULL;
}

const rnl_implementation *rnl_gemm_choose(const rnl_implementation *implementations, size_t count,
                                          const rnl_gemm_params *params, rnl_device *device, rnl_gemm_problem *problem)
{
    const char *forced = params->implementation ? params->implementation : getenv("RUNNEL_GEMM");
    problem->variant = forced ? params->variant : 0;
    problem->normwise = problem->normwise || (forced && strcmp(forced, "strassen") == 0);
    const rnl_implementation *tuned = forced ? NULL : find_tuned(implementations, count, device, problem);
    return tuned ? tuned : rnl_implementation_choose(implementations, count, forced, device, problem);
}
