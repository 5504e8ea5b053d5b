/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution of bytes that ends in bytes, compared with a reference in 64-bit integers and float64. */
#ifndef RUNNEL_TESTS_QCONV_CASE_H
#define RUNNEL_TESTS_QCONV_CASE_H

#include "ops/qconv_panel.h"
#include "support/op_test.h"

typedef enum qconv_options {
    QCONV_PLAIN,
    QCONV_ZEROS, /* zero points and a bias */
    QCONV_SUM,   /* and another tensor is added */
} qconv_options;

typedef struct qconv_case {
    int64_t images, channels, filters, size[2], kernel[2], stride[2], dilation[2], pad[2];
    rnl_dtype dtype;
    qconv_options options;
    int64_t winograd;
    int extreme;      /* 1: the largest pixels there are, -1: the smallest; with the smallest weights */
    uint32_t cropped; /* bits: a part of something larger is 1: src, 2: the addend, 4: dst; 8: its upper part, not its
                         left; 16: dst, of one image more */
} qconv_case;

/* Scales are powers of two, so that float32 computes exactly and halves occur. */
typedef struct qconv_run {
    rnl_qconv_params params;
    op_tensor *src, *weight, *packed, *bias, *dst, *addend;
    int64_t *pixels, *taps; /* what the sums are made of: (n, h, w, c) less its zero point, and (filter, h, w, c) */
    op_tensor *zero, *a_scale, *b_scale, *dst_scale, *dst_zero, *addend_scale, *addend_zero, *sum_scale, *sum_zero;
} qconv_run;

void qconv_case_create(const qconv_case *test, qconv_run *out_run);
rnl_qconv_end qconv_case_end(const qconv_run *run);
/* All of it; false where the device cannot. `implementation` (or NULL) must be what runs. */
bool qconv_case_run(const qconv_case *test, const char *implementation);

#endif
