/* SPDX-License-Identifier: Apache-2.0 */
/* What one matrix product asks for, checked and simplified. Internal to the family. */
#ifndef RUNNEL_OPS_GEMM_PROBLEM_H
#define RUNNEL_OPS_GEMM_PROBLEM_H

#include "ops/gemm.h"
#include "ops/step_build.h"

#define RNL_GEMM_MAX_BATCH_DIMS 6

/* The views in a rnl_dims of a problem. */
enum { RNL_GEMM_DST, RNL_GEMM_A, RNL_GEMM_B, RNL_GEMM_C, RNL_GEMM_OPERAND };

typedef struct rnl_gemm_problem {
    float alpha, beta;
    const rnl_view *a, *b, *c, *dst; /* c is NULL when there is none, or beta is 0 */
    const rnl_chain *chain;          /* or NULL */
    const rnl_view *scratch;         /* or NULL */
    bool packed;                     /* b is a rnl_gemm_packed_view */
    const rnl_view *sums;            /* of b's blocks, packed: for gemm:strassen; or NULL */
    bool normwise;                   /* errors may be bounded by norm */
    uint32_t variant;                /* of the implementation: 0 as it estimates, n its n-th */
    bool index64;
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m, c_n, dst_m, dst_n;                           /* strides */
    int64_t operand_m[RNL_CHAIN_MAX_OPERANDS], operand_n[RNL_CHAIN_MAX_OPERANDS]; /* strides of the chain's */
    rnl_dims batch; /* what is left of the batch dimensions */
} rnl_gemm_problem;

rnl_status rnl_gemm_describe(const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b, const rnl_view *c,
                             const rnl_view *dst, rnl_gemm_problem *out_problem);
uint64_t rnl_gemm_flops(const rnl_gemm_problem *problem);
uint64_t rnl_gemm_bytes(const rnl_gemm_problem *problem);
/* The chain's defines and arguments; an operand's strides are those of the batch dimensions, the last one first, then
 * of a row in s6 and of a column in s7. */
void rnl_gemm_add_chain(rnl_step_builder *step, const rnl_gemm_problem *problem);

/* Whether a kernel that reads several neighbours of a factor at once finds them along k, or along its rows (columns).
 */
static inline bool rnl_gemm_a_along(const rnl_gemm_problem *problem)
{
    return problem->a_k == 1 || problem->a_m != 1;
}
static inline bool rnl_gemm_b_along(const rnl_gemm_problem *problem)
{
    return problem->b_k == 1 && problem->b_n != 1;
}

/* The part of dst that one work-item of gemm.cl computes, and how. */
typedef struct rnl_gemm_tile {
    const char *kind;
    int64_t rows, vector, count; /* count: vectors of columns, or columns */
} rnl_gemm_tile;

/* As many rows of at most `most` as the product has. */
int64_t rnl_gemm_tile_rows(int64_t most, int64_t m);
/* Of at most eight, or seven where these are no more in all. */
int64_t rnl_gemm_tile_rows_of_8(int64_t m);
/* Rows that keep the sums of two vectors in registers. */
int64_t rnl_gemm_most_rows(int64_t vector);
rnl_status rnl_gemm_append_tile(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                                const rnl_gemm_tile *tile);

/* The buffers, their offsets with these numbers behind them, and the batch dimensions. */
void rnl_gemm_add_matrices(rnl_step_builder *step, const rnl_gemm_problem *problem, const int64_t numbers[12]);
/* The arguments in front of gemm.clh's MORE_ARGUMENTS. */
void rnl_gemm_add_arguments(rnl_step_builder *step, const rnl_gemm_problem *problem, bool rows_first);
/* Everything that a vector of columns meets when it is stored is a vector, or one element that repeats. */
bool rnl_gemm_chain_takes_vectors(const rnl_gemm_problem *problem);

bool rnl_gemm_matrix_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_matrix_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_matrix_append(rnl_step_list *list, const char *name, const void *problem);
/* The floats of params.scratch that gemm:tiled wants; 0: none. */
int64_t rnl_gemm_tiled_scratch(const rnl_device *device, const rnl_gemm_problem *problem);
bool rnl_gemm_tiled_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_tiled_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_tiled_append(rnl_step_list *list, const char *name, const void *problem);
bool rnl_gemm_row_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_row_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_row_append(rnl_step_list *list, const char *name, const void *problem);
/* The floats of params.scratch that gemm:panel needs; 0 when it does not apply. */
int64_t rnl_gemm_panel_scratch(const rnl_device *device, const rnl_gemm_problem *problem);
bool rnl_gemm_panel_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_panel_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_panel_append(rnl_step_list *list, const char *name, const void *problem);
rnl_status rnl_gemm_portable_append(rnl_step_list *list, const char *name, const void *problem);
bool rnl_gemm_clblast_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_clblast_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_clblast_append(rnl_step_list *list, const char *name, const void *problem);

#endif
