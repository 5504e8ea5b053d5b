/* SPDX-License-Identifier: Apache-2.0 */
/* What one product of 8-bit integers asks for, checked and simplified. Internal to the family. */
#ifndef RUNNEL_OPS_QGEMM_PROBLEM_H
#define RUNNEL_OPS_QGEMM_PROBLEM_H

#include "ops/qgemm.h"
#include "ops/step_build.h"

#define RNL_QGEMM_MAX_BATCH_DIMS 6

/* The views in a rnl_dims of a problem. */
enum { RNL_QGEMM_DST, RNL_QGEMM_A, RNL_QGEMM_B, RNL_QGEMM_ZA, RNL_QGEMM_ZB, RNL_QGEMM_OPERAND };

/* What is there, as in flags.s0 of clkernels/qgemm.clh. */
enum {
    RNL_QGEMM_HAS_ZA = 1,
    RNL_QGEMM_HAS_ZB = 2,
    RNL_QGEMM_HAS_BIAS = 4,
    RNL_QGEMM_HAS_A_SCALE = 8,
    RNL_QGEMM_HAS_B_SCALE = 16,
    RNL_QGEMM_HAS_DST_SCALE = 32,
    RNL_QGEMM_HAS_ZD = 64,
    RNL_QGEMM_ROW_SUMS = 128
};

typedef struct rnl_qgemm_problem {
    rnl_device *device;
    const rnl_qgemm_params *params;
    const rnl_view *a, *b, *dst; /* b: &packed_b where it is packed */
    const rnl_view *b_given;
    const rnl_view *za, *zb, *bias, *a_scale, *b_scale, *dst_scale, *zd; /* or NULL */
    const rnl_chain *chain;                                              /* or NULL */
    const rnl_view *packed, *scratch;                                    /* or NULL */
    rnl_view packed_b;
    bool index64;
    uint32_t has; /* RNL_QGEMM_HAS_… */
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, dst_m, dst_n, za_m, zb_n, bias_n, b_scale_n;      /* strides */
    int64_t operand_m[RNL_CHAIN_MAX_OPERANDS], operand_n[RNL_CHAIN_MAX_OPERANDS]; /* strides of the chain's */
    rnl_dims batch; /* what is left of the batch dimensions */
} rnl_qgemm_problem;

/* The problem points into itself and at the arguments. */
rnl_status rnl_qgemm_describe(rnl_device *device, const rnl_qgemm_params *params, const rnl_view *a, const rnl_view *b,
                              const rnl_view *dst, rnl_qgemm_problem *out_problem);
/* Results can be stored, and a chain applied, in vectors of columns. */
bool rnl_qgemm_takes_vectors(const rnl_qgemm_problem *problem);
/* The byte that is exclusive-or'ed to signed bytes of a, and to unsigned ones of b. */
int32_t rnl_qgemm_flip(rnl_dtype dtype, bool is_b);

/* How a kernel's work-items are laid out; see flags in clkernels/qgemm.clh. */
typedef struct rnl_qgemm_grid {
    bool rows_first, fours_of_a;
    int32_t tiles;  /* of rows, a work-item */
    int32_t blocks; /* of columns, likewise; 0: its kernel has one */
} rnl_qgemm_grid;

/* The defines and arguments of clkernels/qgemm.clh, with those of the chain. */
void rnl_qgemm_add_common(rnl_step_builder *step, const rnl_qgemm_problem *problem, const rnl_qgemm_grid *grid);
rnl_status rnl_qgemm_end(rnl_step_builder *step, const rnl_qgemm_problem *problem, const char *file,
                         const char *kernel);

/* The I32 elements of params.scratch that the implementations which read panels need; 0 when they do not apply. */
int64_t rnl_qgemm_panel_scratch(const rnl_qgemm_problem *problem);
bool rnl_qgemm_vnni_applies(const rnl_device *device, const void *problem);
rnl_status rnl_qgemm_vnni_append(rnl_step_list *list, const char *name, const void *problem);
bool rnl_qgemm_madd_applies(const rnl_device *device, const void *problem);
rnl_status rnl_qgemm_madd_append(rnl_step_list *list, const char *name, const void *problem);
bool rnl_qgemm_dot_applies(const rnl_device *device, const void *problem);
bool rnl_qgemm_dot_pays(const rnl_device *device, const void *problem);
rnl_status rnl_qgemm_dot_append(rnl_step_list *list, const char *name, const void *problem);
bool rnl_qgemm_panel_applies(const rnl_device *device, const void *problem);
/* For all three: copying b must be shared by some rows of a. */
bool rnl_qgemm_panel_pays(const rnl_device *device, const void *problem);
rnl_status rnl_qgemm_panel_append(rnl_step_list *list, const char *name, const void *problem);
rnl_status rnl_qgemm_portable_append(rnl_step_list *list, const char *name, const void *problem);

#endif
