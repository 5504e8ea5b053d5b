/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_TESTS_OP_VALUES_H
#define RUNNEL_TESTS_OP_VALUES_H

#include "support/op_test.h"

#define OP_INTEGER_TYPES(X)                                                                                            \
    X(U8, uint8_t)                                                                                                     \
    X(I8, int8_t)                                                                                                      \
    X(U16, uint16_t) X(I16, int16_t) X(U32, uint32_t) X(I32, int32_t) X(U64, uint64_t) X(I64, int64_t)

/* One element in memory, unaligned. Encoding rounds to nearest even; integers wrap. */
op_value op_decode(rnl_dtype dtype, const void *at);
void op_encode(rnl_dtype dtype, op_value value, void *at);
bool op_is_float(rnl_dtype dtype);
double op_largest(rnl_dtype dtype);         /* finite, of a float type */
double op_smallest_normal(rnl_dtype dtype); /* of a float type */
int64_t op_int_limit(rnl_dtype dtype, bool highest);

#endif
