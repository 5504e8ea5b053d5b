/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution or transposed convolution, run and compared with a float64 reference. */
#ifndef RUNNEL_TESTS_CONV_CASE_H
#define RUNNEL_TESTS_CONV_CASE_H

#include "ops/conv.h"
#include "support/op_test.h"

/* What a case's chain does to each result, in this order. */
#define CONV_CHAIN_SCALE 1    /* times an operand of one value a channel */
#define CONV_CHAIN_RESIDUAL 2 /* plus an operand like the result, which may lie within a wider image */
#define CONV_CHAIN_SCALAR 4   /* times a scalar */
#define CONV_CHAIN_RELU 8
#define CONV_CHAIN_PIXELS 16 /* plus an operand of one value a pixel */
#define CONV_CHAIN_ALL 31

typedef struct conv_case {
    bool transposed;
    size_t spatial;                           /* 0: 2 */
    int64_t batch, channels, filters, groups; /* channels and filters of all groups; 0 groups: 1 */
    int64_t size[3], taps[3];                 /* of the spatial dimensions there are */
    int64_t stride[3], dilation[3];           /* 0: 1 */
    int64_t pad_begin[3], pad_end[3];         /* in a transposed one: what is cut off */
    bool bias, slices;                        /* slices: src and dst are some channels of wider images */
    bool wide;                                /* kernels index in 64 bits, for a stride that nothing uses; batch is 1 */
    bool pack_on_device;                      /* the weights, from the order that models have */
    rnl_dtype dtype;                          /* 0: F32 */
    unsigned chain;                           /* CONV_CHAIN_…; 0: no chain */
    int64_t winograd;                         /* 4 or 2: the weights are for Winograd's way with such tiles */
    bool pairs;                               /* src is BF16, the weights F32 that are packed as pairs of BF16 */
    bool mixed;                               /* src alone is BF16 (with amx: the weights F32 that are packed) */
    bool fip;                                 /* the weights are for Winograd's inner product */
    bool strassen;                            /* … for Strassen's algorithm */
    int64_t amx;                              /* … for matrix tiles, in so many parts */
    const char *implementation;               /* that is expected, but for emulated devices; NULL: any */
} conv_case;

void conv_case_run(const conv_case *test);
void conv_cases_run(const conv_case *tests, size_t count);
#define CONV_RUN_ALL(tests) conv_cases_run(tests, sizeof(tests) / sizeof *(tests))
/* Small, of every kind, the same in each run. */
conv_case conv_case_random(bool transposed);

#endif
