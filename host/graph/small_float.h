/* SPDX-License-Identifier: Apache-2.0 */
/* The floats of 8 and 4 bits: numbers from their codes, and codes by the rules of ONNX's Cast. */
#ifndef RUNNEL_GRAPH_SMALL_FLOAT_H
#define RUNNEL_GRAPH_SMALL_FLOAT_H

#include "graph/op.h"

/* How Cast makes a number of a type that cannot hold it. The mode is for float8e8m0, which has powers of two alone. */
typedef enum rnl_round_mode { RNL_ROUND_UP, RNL_ROUND_DOWN, RNL_ROUND_NEAREST } rnl_round_mode;
typedef struct rnl_narrowing {
    bool saturate; /* what is out of range becomes the greatest finite number, not infinity or NaN */
    rnl_round_mode mode;
} rnl_narrowing;
#define RNL_NARROWING_DEFAULT                                                                                          \
    (rnl_narrowing)                                                                                                    \
    {                                                                                                                  \
        true, RNL_ROUND_UP                                                                                             \
    }

bool rnl_dtype_is_small_float(rnl_dtype dtype);
double rnl_small_float_decode(rnl_dtype dtype, uint8_t code);
uint8_t rnl_small_float_encode(rnl_dtype dtype, double value, rnl_narrowing narrowing);
/* The code of the greatest finite number. */
uint8_t rnl_small_float_highest(rnl_dtype dtype);

#endif
