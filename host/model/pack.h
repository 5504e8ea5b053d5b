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

#endif
