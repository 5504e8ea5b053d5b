/* SPDX-License-Identifier: Apache-2.0 */
/* Max, average and Lp pooling, and local response normalisation. Any layout. */
#ifndef RUNNEL_OPS_POOL_H
#define RUNNEL_OPS_POOL_H

#include "ops/op.h"

typedef enum rnl_pool_op { RNL_POOL_MAX, RNL_POOL_AVERAGE, RNL_POOL_LP } rnl_pool_op;

typedef struct rnl_pool_params {
    size_t spatial; /* 1, 2 or 3 */
    int64_t kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    bool count_include_pad;    /* average: padding counts, but never what ceil_mode adds beyond it */
    int64_t p;                 /* of RNL_POOL_LP, 1 or more */
    bool column_major_indices; /* ONNX's storage_order of MaxPool's Indices */
} rnl_pool_params;

/* src, dst: N x C x spatial…. indices (I64, dst's shape, optional, max only): flat positions in src as ONNX defines
 * them. */
RNL_API RNL_NODISCARD rnl_status rnl_op_pool(rnl_step_list *list, rnl_pool_op op, const rnl_pool_params *params,
                                             const rnl_view *src, const rnl_view *dst, const rnl_view *indices);

/* y = x / (bias + alpha / size * sum of squares over `size` channels around)^beta; src, dst N x C x …. */
typedef struct rnl_lrn_params {
    int64_t size;
    float alpha, beta, bias;
} rnl_lrn_params;
RNL_API RNL_NODISCARD rnl_status rnl_op_lrn(rnl_step_list *list, const rnl_lrn_params *params, const rnl_view *src,
                                            const rnl_view *dst);

#endif
