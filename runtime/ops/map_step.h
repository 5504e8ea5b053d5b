/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of map.cl: what its callers share. */
#ifndef RUNNEL_OPS_MAP_STEP_H
#define RUNNEL_OPS_MAP_STEP_H

#include "ops/step_build.h"

/* dst's dimensions with the sources broadcast to them. */
RNL_NODISCARD rnl_status rnl_map_dims(const rnl_view *srcs, size_t src_count, const rnl_view *dst, rnl_dims *out_dims);
/* Adds the arguments and the range to a step that has the operator's and the types' defines, and ends it. `dims` are
 * coalesced. */
RNL_NODISCARD rnl_status rnl_map_end(rnl_step_builder *step, const rnl_dims *dims, float p0, float p1,
                                     const rnl_view *srcs, size_t src_count, const rnl_view *dst);

#endif
