/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose places come from a tensor of indices; Gather is in resize.h. Indices are I32 or I64. */
#ifndef RUNNEL_OPS_INDEXING_H
#define RUNNEL_OPS_INDEXING_H

#include "ops/op.h"

/* dst[i…] = data[i… with indices[i…] along `axis`]; dst has indices' shape. Out of range: the nearest. */
RNL_API RNL_NODISCARD rnl_status rnl_op_gather_elements(rnl_step_list *list, size_t axis, const rnl_view *data,
                                                        const rnl_view *indices, const rnl_view *dst);
/* ONNX's GatherND: the last dimension of the indices is a tuple, behind `batch` dimensions that all have. */
RNL_API RNL_NODISCARD rnl_status rnl_op_gather_nd(rnl_step_list *list, size_t batch, const rnl_view *data,
                                                  const rnl_view *indices, const rnl_view *dst);

typedef enum rnl_scatter_op {
    RNL_SCATTER_NONE, /* replaces */
    RNL_SCATTER_ADD,
    RNL_SCATTER_MUL,
    RNL_SCATTER_MAX,
    RNL_SCATTER_MIN
} rnl_scatter_op;

/*
 * Updates of dst, which holds the data already, where it lies. Several updates of one place are applied in their order;
 * one that is out of range is left out.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_scatter_elements(rnl_step_list *list, rnl_scatter_op op, size_t axis,
                                                         const rnl_view *indices, const rnl_view *updates,
                                                         const rnl_view *dst);
RNL_API RNL_NODISCARD rnl_status rnl_op_scatter_nd(rnl_step_list *list, rnl_scatter_op op, const rnl_view *indices,
                                                   const rnl_view *updates, const rnl_view *dst);

#endif
