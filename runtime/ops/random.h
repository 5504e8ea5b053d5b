/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers by Philox4x32-10: each is a function of a key, of the draw that it belongs to, and of its element's
 * row-major number. So they are the same on every device and in any layout.
 */
#ifndef RUNNEL_OPS_RANDOM_H
#define RUNNEL_OPS_RANDOM_H

#include "ops/op.h"

/* What a run's draws start from: a view of RNL_RANDOM_WORDS words U32. */
#define RNL_RANDOM_WORDS 4
typedef struct rnl_random_state {
    uint32_t draw[2]; /* the number of the first one, low word first */
    uint32_t key[2];
} rnl_random_state;

typedef struct rnl_random_params {
    bool normal;      /* mean a and standard deviation b; else uniform from a on, below b */
    bool seeded;      /* by `seed` instead of the state's key */
    uint32_t seed;    /* any bits */
    uint32_t ordinal; /* of the draw within the run */
    float a, b;
} rnl_random_params;

/* dst: any float type; halves are computed in float and rounded, so that a uniform number may become b. */
RNL_API RNL_NODISCARD rnl_status rnl_op_random(rnl_step_list *list, const rnl_random_params *params,
                                               const rnl_view *state, const rnl_view *dst);
/*
 * dst (I32 or I64, rows x samples) = classes, each drawn by weight: sums (rows x classes, at least one class) are the
 * weights' sums so far, uniforms (dst's shape) from [0, 1), both F32 or both F64.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_multinomial(rnl_step_list *list, const rnl_view *sums, const rnl_view *uniforms,
                                                    const rnl_view *dst);

#endif
