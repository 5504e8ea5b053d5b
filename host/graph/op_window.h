/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over the spatial axes of N x C x spatial…: the parts that convolution and pooling share. */
#ifndef RUNNEL_GRAPH_OP_WINDOW_H
#define RUNNEL_GRAPH_OP_WINDOW_H

#include "graph/op_common.h"

typedef enum rnl_auto_pad {
    RNL_AUTO_PAD_NOTSET,
    RNL_AUTO_PAD_SAME_UPPER,
    RNL_AUTO_PAD_SAME_LOWER,
    RNL_AUTO_PAD_VALID
} rnl_auto_pad;

/* An integer list attribute of exactly `count` elements in least … INT32_MAX; nothing is written when it is absent. */
RNL_NODISCARD rnl_status rnl_window_ints(const rnl_node *node, const char *name, size_t count, int64_t least,
                                         int64_t *out_values);
/* Reads auto_pad, strides, dilations, kernel_shape and pads; checks input 0's rank. Leaves `output` open. */
RNL_NODISCARD rnl_status rnl_window_begin(const rnl_op_context *context, rnl_window *out_window,
                                          rnl_auto_pad *out_auto_pad);
/* Elements of the input that a window spans. */
int64_t rnl_window_extent(const rnl_window *window, size_t axis);
/* Splits padding between both ends; an odd one goes to the end for SAME_UPPER, else to the beginning. */
void rnl_window_distribute(rnl_window *window, size_t axis, int64_t total, rnl_auto_pad auto_pad);
/* Output size (and padding, for SAME_*) of one spatial axis of input 0. */
RNL_NODISCARD rnl_status rnl_window_slide(const rnl_op_context *context, size_t axis, rnl_auto_pad auto_pad,
                                          bool ceil_mode, rnl_window *window);
/* outputs[index] = N x channels x window->output. */
RNL_NODISCARD rnl_status rnl_window_output(rnl_op_context *context, size_t index, rnl_dtype dtype, int64_t channels,
                                           const rnl_window *window);

#endif
