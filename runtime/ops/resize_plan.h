/* SPDX-License-Identifier: Apache-2.0 */
/* What Resize's implementations share. */
#ifndef RUNNEL_OPS_RESIZE_PLAN_H
#define RUNNEL_OPS_RESIZE_PLAN_H

#include "ops/resize.h"
#include "ops/step_build.h"

#define RNL_RESIZE_MAX_AXES 3

/* Position in src of coordinate x, step by step in f32: (x * multiply + add) / divide + offset - half. */
typedef struct rnl_position_map {
    float multiply, add, divide, offset, half, unused[3]; /* a float8 */
} rnl_position_map;

/* One call, its arguments checked; there is at least one result. */
typedef struct rnl_resize_problem {
    const rnl_resize_params *params;
    const rnl_view *src, *dst;
    bool index64;
    size_t axes[RNL_RESIZE_MAX_AXES], count; /* the axes that are resized, outermost first; at least one */
} rnl_resize_problem;

/* Of axis `axis`, which may also be left as it is. */
rnl_position_map rnl_resize_map(const rnl_resize_problem *problem, size_t axis);

/* For CPUs: one or two axes, nearest or linear. */
bool rnl_resize_vectors_apply(const rnl_device *device, const void *problem);
rnl_status rnl_resize_vectors_append(rnl_step_list *list, const char *name, const void *problem);

#endif
