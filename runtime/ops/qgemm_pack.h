/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form in which qgemm:vnni, qgemm:madd, qgemm:dot and qgemm:panel read their second factor
 * (clkernels/qgemm_pack.cl). Internal to the family.
 *
 * Each matrix as panels of 32 columns, one behind the other: a row of the columns' sums, then a row for each four of k.
 * Matrices lie as in a dense row-major tensor; those that a view repeats are one.
 */
#ifndef RUNNEL_OPS_QGEMM_PACK_H
#define RUNNEL_OPS_QGEMM_PACK_H

#include "ops/qgemm_problem.h"

#define RNL_QGEMM_PANEL 32

typedef struct rnl_qgemm_panels {
    int64_t panels, matrices;
    int64_t panel_ints, ints; /* of one and of all */
} rnl_qgemm_panels;

/* False for what has no such form: other types, no elements, too many of them. */
bool rnl_qgemm_panels_of(const rnl_view *b, rnl_qgemm_panels *out_panels);
/* `b` as it lies in `packed`, for broadcasting: the strides of the last two dimensions stand for nothing. */
rnl_view rnl_qgemm_packed_view(const rnl_qgemm_panels *panels, const rnl_view *b, const rnl_view *packed);

#endif
