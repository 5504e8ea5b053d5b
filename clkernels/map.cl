// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, copies and casts: dst[i] = OP(src0[i], …).
//
// Defines:
//   OP      OP_ADD …, see below
//   ARITY   number of sources, 1 to 5
//   PARAMETERS   number of the operator's parameters, 0 to 2; absent: 0
//   T_DST, T0 … T4   types of destination and sources
//   ROWS    which entry point there is
//   CONVERT there are types of small_types.clh and the operators of convert_ops.clh
//
// Entry points, for dimensions that were merged before:
//   map_flat   one dimension; sources have stride 1, or 0
//   map_rows   with ROWS, up to 8 dimensions: columns are the range's first dimension, rows are counted over the others
// check: -DOP=OP_ADD -DARITY=2 -DT_DST=F32 -DT0=F32 -DT1=F32
// check: -DOP=OP_COPY -DARITY=1 -DT_DST=F16 -DT0=BF16 -DINDEX64
// check: -DOP=OP_COPY -DARITY=1 -DT_DST=U8 -DT0=F32 -DROWS
// check: -DOP=OP_ERF -DARITY=1 -DT_DST=F64 -DT0=F64 -DUSE_F64
// check: -DOP=OP_SHRINK -DARITY=1 -DPARAMETERS=2 -DT_DST=I64 -DT0=I64
// check: -DOP=OP_SHIFT_RIGHT -DARITY=2 -DT_DST=I8 -DT0=I8 -DT1=I8
// check: -DCONVERT -DOP=OP_CAST -DARITY=1 -DT_DST=F8E4M3FN -DT0=I64 -DSATURATE=0
// check: -DCONVERT -DOP=OP_CAST -DARITY=1 -DT_DST=F8E8M0 -DT0=F16 -DROUND_MODE=2 -DROWS
// check: -DCONVERT -DOP=OP_CAST -DARITY=1 -DT_DST=I4 -DT0=F8E5M2
// check: -DCONVERT -DOP=OP_CAST -DARITY=1 -DT_DST=F4E2M1 -DT0=F64 -DUSE_F64
// check: -DCONVERT -DOP=OP_QUANTIZE_ZERO -DARITY=3 -DT_DST=I2 -DT0=F16 -DT1=F8E8M0 -DT2=I2 -DPRECISION=F16 -DROWS
// check: -DCONVERT -DOP=OP_QUANTIZE -DARITY=2 -DT_DST=F8E5M2FNUZ -DT0=I32 -DT1=F32 -DPRECISION=BF16 -DINDEX64
// check: -DCONVERT -DOP=OP_DEQUANTIZE_ZERO -DARITY=3 -DT_DST=F32 -DT0=I32 -DT1=F32 -DT2=I32
// check: -DCONVERT -DOP=OP_DEQUANTIZE -DARITY=2 -DT_DST=BF16 -DT0=F8E4M3FNUZ -DT1=F16 -DROWS
#include "common.clh"
#include "walk.clh"
#ifdef CONVERT
#include "small_types.clh"
#endif
#include "map_ops.clh"
#ifdef CONVERT
#include "convert_ops.clh"
#endif
#if !defined(OP) || !defined(ARITY) || !defined(T_DST) || !defined(T0)
#error "map.cl needs OP, ARITY, T_DST, T0 …"
#endif
#ifndef PARAMETERS
#define PARAMETERS 0
#endif

#if ARITY == 1
#define FOR_SOURCES(X) X(0)
#if PARAMETERS == 2
#define RESULT OP(x0, param0, param1)
#elif PARAMETERS == 1
#define RESULT OP(x0, param0)
#else
#define RESULT OP(x0)
#endif
#elif ARITY == 2
#define FOR_SOURCES(X) X(0) X(1)
#if PARAMETERS == 1
#define RESULT OP(x0, x1, param0)
#else
#define RESULT OP(x0, x1)
#endif
#elif ARITY == 3
#define FOR_SOURCES(X) X(0) X(1) X(2)
#define RESULT OP(x0, x1, x2)
#elif ARITY == 5
#define FOR_SOURCES(X) X(0) X(1) X(2) X(3) X(4)
#define RESULT OP(x0, x1, x2, x3, x4, param0)
#else
#error "map.cl: ARITY is 1, 2, 3 or 5"
#endif

#define SOURCE(k) , __global const STORAGE(T##k) *src##k, idx_t offset##k
#define ARGUMENTS                                                                                                      \
    __global STORAGE(T_DST) *dst, idx_t dst_offset FOR_SOURCES(SOURCE), const float param0, const float param1
#define LOAD_SOURCE(k) const COMPUTE(T##k) x##k = LOAD(T##k, src##k, i##k);
#define COMPUTE_AND_STORE(at)                                                                                          \
    {                                                                                                                  \
        FOR_SOURCES(LOAD_SOURCE)                                                                                       \
        STORE(T_DST, dst, at, RESULT);                                                                                 \
    }

#ifndef ROWS
#define ITEMS 4
#define STEP(k) , const idx_t step##k
#define FLAT_INDEX(k) const idx_t i##k = offset##k + i * step##k;
__kernel void map_flat(ARGUMENTS, const idx_t count FOR_SOURCES(STEP))
{
    const idx_t group = (idx_t)get_local_size(0);
    idx_t i = (idx_t)get_group_id(0) * (group * ITEMS) + (idx_t)get_local_id(0);
    for (int item = 0; item < ITEMS; ++item, i += group) {
        if (i < count) {
            FOR_SOURCES(FLAT_INDEX)
            COMPUTE_AND_STORE(dst_offset + i)
        }
    }
}

#else
#define STRIDES(k) , const idx8_t stride##k
#define ROW_INDEX(k) const idx_t row##k = offset##k + row_index(row, deep, shape, stride##k);
#define COLUMN_INDEX(k) const idx_t i##k = row##k + column * stride##k.s7;
__kernel void map_rows(ARGUMENTS, const idx_t rows, const int deep, const idx8_t shape,
                       const idx8_t dst_stride FOR_SOURCES(STRIDES))
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    // Before the guard, so that a compiler which makes a loop of a work-group moves the divisions out of it.
    const idx_t to = dst_offset + row_index(row, deep, shape, dst_stride);
    FOR_SOURCES(ROW_INDEX)
    if (column >= shape.s7 || row >= rows)
        return;
    FOR_SOURCES(COLUMN_INDEX)
    COMPUTE_AND_STORE(to + column * dst_stride.s7)
}
#endif
