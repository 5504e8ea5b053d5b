/* SPDX-License-Identifier: Apache-2.0 */
/* Small models with known answers, written byte by byte. */
#ifndef RUNNEL_TESTS_SMALL_MODEL_H
#define RUNNEL_TESTS_SMALL_MODEL_H

#include "support/proto_onnx.h"

#define SMALL_INPUTS 3
#define SMALL_OUTPUTS 4

extern const float small_weight[SMALL_INPUTS][SMALL_OUTPUTS];
extern const float small_bias[SMALL_OUTPUTS];

/* y = Relu(x W + b), x of N x 3 with a free N. */
proto small_model(void);
/* y = x W W W … (`count` products), x and W of n x n, W a constant that keeps numbers near 1. */
proto small_chain(int64_t n, int count);
/* y = x W0 W1 …, x of N x n with a free N; Wi turns columns by one place and adds (i + 1) / 64 of them as they are. */
proto small_layers(int64_t n, int count);
/* What it gives for `rows` rows of x, in double precision, layer after layer. */
void small_layers_compute(int64_t n, int count, const float *x, int64_t rows, double *out);

#endif
