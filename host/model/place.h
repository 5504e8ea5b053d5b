/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes: a value that becomes a part of a larger one (an input of Concat or Pad) is written there from the start, so
 * that joining copies nothing. A home is the larger value and how the part lies in it; homes nest, and the outermost
 * value owns the memory. The layout is the first writer's choice; a writer that needs another gets memory of its own,
 * and whoever joins the parts copies what does not lie in place.
 */
#ifndef RUNNEL_MODEL_PLACE_H
#define RUNNEL_MODEL_PLACE_H

#include "model/lower.h"

/* Gives homes to the values that can have one, once it is known which nodes run on the device. */
RNL_NODISCARD rnl_status rnl_place_homes(rnl_planner *planner);

bool rnl_place_has_home(const rnl_planner *planner, uint32_t value);

/*
 * The part of the home's memory for a value that is about to be written in this layout; with `any`, in whatever layout
 * the memory has, the given one if it is new. RNL_NO_SLOT: it needs memory of its own. The part is not dense: rows or
 * pixels lie further apart than they are long.
 */
RNL_NODISCARD rnl_status rnl_place_output(rnl_lowering *lowering, uint32_t value, rnl_layout layout, bool any,
                                          rnl_view *out_view);

#endif
