/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form in which gemm:panel reads its second factor. Internal to the family.
 *
 * Each matrix as panels of `width` columns, one behind the other: in a panel row after row, as float, zeros behind the
 * last column. Matrices lie as in a dense row-major tensor; those that a view repeats are one.
 */
#ifndef RUNNEL_OPS_GEMM_PACK_H
#define RUNNEL_OPS_GEMM_PACK_H

#include "ops/gemm_problem.h"

typedef struct rnl_gemm_panels {
    int64_t width, panels, matrices;
    int64_t floats; /* of all of it */
} rnl_gemm_panels;

/* The form depends on the device and b alone. False for what has none: other types, no elements, too many of them. */
bool rnl_gemm_panels_of(const rnl_device *device, const rnl_view *b, rnl_gemm_panels *out_panels);
/* `b` as it lies in `packed`, for rnl_gemm_describe: the strides of the last two dimensions stand for nothing. */
rnl_view rnl_gemm_packed_view(const rnl_gemm_panels *panels, const rnl_view *b, const rnl_view *packed);
rnl_status rnl_gemm_append_pack(rnl_step_list *list, const rnl_gemm_panels *panels, const rnl_view *b,
                                const rnl_view *packed);

#endif
