/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms of any length, in passes: see dft.cl. */
#ifndef RUNNEL_OPS_DFT_H
#define RUNNEL_OPS_DFT_H

#include "ops/op.h"

#define RNL_DFT_MAX_POINTS (INT64_C(1) << 24)
#define RNL_DFT_MAX_PASSES 24

typedef struct rnl_dft {
    int64_t points; /* 1 … RNL_DFT_MAX_POINTS; samples beyond the source's are 0, those beyond `points` are not read */
    bool inverse;   /* also divides by their number */
    bool mirrored;  /* the source is the lower half of a spectrum, whose upper half is its mirror image */
} rnl_dft;

/* The factors that the points are taken by, one a pass; their product is `points`. */
RNL_API size_t rnl_dft_radices(int64_t points, int64_t out_radices[RNL_DFT_MAX_PASSES]);

/*
 * Pass number `pass`. Views: … x samples x (1: real, 2: complex), of one batch shape and float types. The first pass
 * reads the source, the last one writes the result, of which as many points are made as it has; what is in between is
 * dense, `points` x 2. `table`: points x 4, cos and sin of 2 * pi * i / points and what they lost when they were
 * rounded; F64 where an operand is, else F32.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_dft_pass(rnl_step_list *list, const rnl_dft *dft, size_t pass,
                                                 const rnl_view *src, const rnl_view *table, const rnl_view *dst);

#endif
