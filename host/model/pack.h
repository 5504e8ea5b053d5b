/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a weight's elements where its layout on the device wants them. */
#ifndef RUNNEL_MODEL_PACK_H
#define RUNNEL_MODEL_PACK_H

#include "graph/graph.h"
#include "ops/op.h"

/*
 * Scatters a row-major tensor into `size_bytes` of memory as `view` says (its strides are not negative). What lies
 * between and behind the view's elements becomes zero. Any thread.
 */
void rnl_pack(const rnl_host_tensor *tensor, const rnl_view *view, unsigned char *target, size_t size_bytes);

/*
 * Multiplies packed floats in place. The factor of an element is that of its index along `axis`, 0 or 1; for axis 1,
 * the factors of the next group start every `group` indices of axis 0.
 */
void rnl_pack_scale(const rnl_view *view, size_t axis, int64_t group, const double *factors, void *target);

#endif
