/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: which element is largest, the largest few, sums so far; and ones at an index. */
#ifndef RUNNEL_OPS_SELECT_H
#define RUNNEL_OPS_SELECT_H

#include "ops/op.h"

/*
 * dst (I64, size 1 along `axis`) = where the largest or smallest element is; of equal ones the first, or the last. As
 * in numpy, the first (last) NaN is found before any number.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_arg(rnl_step_list *list, bool largest, bool last, size_t axis,
                                            const rnl_view *src, const rnl_view *dst);
/*
 * The largest or smallest elements along `axis`, as many as values and places (I64) have there, in order: of equal ones
 * the first comes first, and NaN is above all numbers.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_topk(rnl_step_list *list, bool largest, size_t axis, const rnl_view *src,
                                             const rnl_view *values, const rnl_view *places);

typedef struct rnl_scan_params {
    size_t axis;
    bool product;   /* else sums */
    bool exclusive; /* without the element itself */
    bool reverse;   /* from the end */
} rnl_scan_params;
/* Halves are summed in float, integers wrap. */
RNL_API RNL_NODISCARD rnl_status rnl_op_scan(rnl_step_list *list, const rnl_scan_params *params, const rnl_view *src,
                                             const rnl_view *dst);

/*
 * dst = values[1] where the coordinate along `axis` is the index, else values[0]. indices: dst's shape with 1 along the
 * axis, any type of number. Below 0 counts from the end; out of range matches nothing.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_one_hot(rnl_step_list *list, size_t axis, const rnl_view *indices,
                                                const rnl_view *values, const rnl_view *dst);
/* src on and above (below) the diagonal that lies diagonal (I64, one element) columns to the right; else 0. */
RNL_API RNL_NODISCARD rnl_status rnl_op_triangle(rnl_step_list *list, bool upper, const rnl_view *src,
                                                 const rnl_view *diagonal, const rnl_view *dst);
/* The first lengths[b] elements along `axis` in reverse. lengths (I64 or I32) broadcasts to dst with 1 along the axis.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_reverse_sequence(rnl_step_list *list, size_t axis, const rnl_view *src,
                                                         const rnl_view *lengths, const rnl_view *dst);
/* Writes src into dst along `axis` from place starts[b] on, which broadcasts likewise; what does not fit is left out.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_write_sequence(rnl_step_list *list, bool circular, size_t axis,
                                                       const rnl_view *src, const rnl_view *starts,
                                                       const rnl_view *dst);

#endif
