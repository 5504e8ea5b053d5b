/* SPDX-License-Identifier: Apache-2.0 */
/* What reductions, softmax and normalisations share: kept dimensions number the results, the others are walked in each.
 */
#ifndef RUNNEL_OPS_REDUCE_PLAN_H
#define RUNNEL_OPS_REDUCE_PLAN_H

#include "ops/step_build.h"

/* How results are shared out, and the entry points `<family>_<name>` of it. */
typedef enum rnl_reduce_way {
    RNL_REDUCE_ITEMS,   /* a work-item for each */
    RNL_REDUCE_GROUPS,  /* a work-group for each */
    RNL_REDUCE_ROWS,    /* vectors along what is reduced, for CPUs; a work-item takes some results */
    RNL_REDUCE_COLUMNS, /* vectors of neighbouring results, for CPUs; a work-item takes some vectors */
    RNL_REDUCE_WAYS
} rnl_reduce_way;

typedef struct rnl_reduce_plan {
    rnl_dims kept, taken;
    rnl_reduce_way way;
    int64_t results;
    int64_t vector; /* lanes; RNL_REDUCE_ROWS and RNL_REDUCE_COLUMNS */
    int64_t each;   /* results or vectors of a work-item; the same */
    size_t items;
} rnl_reduce_plan;

/*
 * `axes` are reduced. Views: dst, then src, then others that follow them (with stride 0 where they repeat); the first
 * `kept_only` of them lack the reduced dimensions. There is at least one result.
 */
void rnl_reduce_plan_make(const rnl_device *device, uint32_t axes, const rnl_view *const *views, size_t count,
                          size_t kept_only, rnl_reduce_plan *out_plan);
/* The arguments from the number of results on, the define V, and the range. */
void rnl_reduce_plan_add(rnl_step_builder *step, const rnl_reduce_plan *plan);

#endif
