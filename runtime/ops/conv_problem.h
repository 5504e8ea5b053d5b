/* SPDX-License-Identifier: Apache-2.0 */
/* What one call of a convolution asks for, checked, in the kernels' terms. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_PROBLEM_H
#define RUNNEL_OPS_CONV_PROBLEM_H

#include "ops/conv.h"

/* One call, its spatial dimensions spread to (d, h, w). */
typedef struct rnl_conv_problem {
    const rnl_view *src, *weight, *bias, *dst;
    bool transposed, depthwise, pairs, fip, strassen, index64; /* depthwise: in conv_weight.h's sense */
    int64_t winograd;                         /* pixels of a tile's side; 0: weights are of another form */
    int64_t amx;                              /* parts of a number; 0: weights are of another form */
    int64_t batch, groups, channels, filters; /* channels and filters of a group */
    int64_t src_size[3], dst_size[3], taps[3], stride[3], dilation[3], pad[3];
    int64_t src_stride[4], dst_stride[4]; /* n, d, h, w */
    int64_t weight_stride[4];             /* tap, group, panel, zeros */
    const rnl_chain *chain;
    const rnl_view *scratch;                                      /* or NULL */
    int64_t operand_stride[RNL_CHAIN_MAX_OPERANDS][RNL_MAX_RANK]; /* n, d, h, w */
    int64_t operand_step[RNL_CHAIN_MAX_OPERANDS];                 /* from channel to channel: 0 or 1 */
} rnl_conv_problem;

rnl_status rnl_conv_describe(const rnl_conv_params *params, bool transposed, const rnl_view *src,
                             const rnl_view *weight, const rnl_view *bias, const rnl_view *dst,
                             rnl_conv_problem *out_problem);

#endif
