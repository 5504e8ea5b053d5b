/* SPDX-License-Identifier: Apache-2.0 */
/* What the elementwise operators mean, in float64 and exact integers. */
#ifndef RUNNEL_TESTS_MAP_REFERENCE_H
#define RUNNEL_TESTS_MAP_REFERENCE_H

#include "ops/map.h"
#include "support/op_test.h"

/* A launch under test. */
typedef struct map_launch {
    rnl_map_op op;
    float p0, p1;
    size_t count;
    op_tensor *src[RNL_MAP_MAX_SOURCES], *dst;
} map_launch;

/* An operator on floats with a float result. */
double map_reference_float(rnl_map_op op, const double *sources, double p0, double p1);
/* An op_reference; user is a map_launch. */
op_value map_reference(void *user, const int64_t *at);

#endif
