// SPDX-License-Identifier: Apache-2.0
// Elementwise operators on quantised values: dst = quantise(OP(dequantise(src0), dequantise(src1))).
//
// Defines:
//   OP             OP_COPY …, see below
//   T0, T1, T_DST  types: U8 for either type of 8 bits; T0 also F32, F16, BF16 and I32, T1 also I32, T_DST also the floats
//   V              elements that are computed together: 1, or 8 or 16 where each view's neighbours are neighbours or one element
//   BY_ROW         scales and zero points are the same all along the innermost dimension
// check: -DOP=OP_ADD -DT0=U8 -DT1=U8 -DT_DST=U8 -DV=8 -DBY_ROW
// check: -DOP=OP_COPY -DT0=F32 -DT1=U8 -DT_DST=U8 -DV=16 -DBY_ROW
// check: -DOP=OP_SCALE -DT0=I32 -DT1=I32 -DT_DST=F16 -DV=8
// check: -DOP=OP_COPY -DT0=F32 -DT1=U8 -DT_DST=U8 -DV=1 -DINDEX64
// check: -DOP=OP_SIGMOID -DT0=U8 -DT1=U8 -DT_DST=U8 -DV=1
// check: -DOP=OP_LEAKY_RELU -DT0=U8 -DT1=U8 -DT_DST=U8 -DV=8
// check: -DOP=OP_MUL -DT0=U8 -DT1=U8 -DT_DST=BF16 -DV=1
#include "common.clh"
#include "walk.clh"
#include "pieces.clh"
#if !defined(OP) || !defined(T0) || !defined(T1) || !defined(T_DST) || !defined(V)
#error "qmap.cl needs OP, T0, T1, T_DST, V"
#endif

// Bits of flags.s0: what is there. Scales that are not are 1, zero points 0. flags.s1, s2, s3: for signed bytes of src0,
// src1 and dst the bit that makes unsigned ones of them, else 0; differences stay the same.
#define HAS_S0 1
#define HAS_Z0 2
#define HAS_SRC1 4
#define HAS_S1 8
#define HAS_Z1 16
#define HAS_SD 32
#define HAS_ZD 64
#define HAS(bit) ((flags.s0 & (bit)) != 0)

#define IS_BYTE(T) PASTE2_(IS_BYTE_, T)
#define IS_BYTE_U8 1
#define IS_BYTE_I32 0
#define IS_BYTE_F32 0
#define IS_BYTE_F16 0
#define IS_BYTE_BF16 0

#if V == 1
typedef float floats;
typedef int ints;
typedef uint uints;
#define TO_FLOATS(v) ((float)(v))
#define TO_INTS(v) convert_int(v)
#define AS_INTS(v) as_int(v)
#define AS_UINTS(v) as_uint(v)
#define LOAD_BYTES(p, at, step, flip) ((int)(p)[at] ^ (flip))
#define LOAD_NUMBERS(T, p, at, step) LOAD(T, p, at)
#define STORE_RESULT(p, at, v) ((p)[at] = (uchar)(v))
#define STORE_NUMBERS(T, p, at, v) STORE(T, p, at, v)
#else
typedef PASTE2_(float, V) floats;
typedef PASTE2_(int, V) ints;
typedef PASTE2_(uint, V) uints;
#define TO_FLOATS(v) PASTE2_(convert_float, V)(v)
#define TO_INTS(v) PASTE2_(convert_int, V)(v)
#define AS_INTS(v) PASTE2_(as_int, V)(v)
#define AS_UINTS(v) PASTE2_(as_uint, V)(v)
#define LOAD_BYTES(p, at, step, flip)                                                                                  \
    ((step) == 0 ? (ints)((int)(p)[at] ^ (flip)) : (TO_INTS(PASTE2_(vload, V)(0, (p) + (at))) ^ (flip)))
#define LOADV_I32(N, p, i) PASTE2_(vload, N)(0, (p) + (i))
#define VECTOR_OF_F32 floats
#define VECTOR_OF_F16 floats
#define VECTOR_OF_BF16 floats
#define VECTOR_OF_I32 ints
#define LOAD_NUMBERS(T, p, at, step)                                                                                   \
    ((step) == 0 ? (PASTE2_(VECTOR_OF_, T))(LOAD(T, p, at)) : LOADV(T, V, p, at))
#define STORE_RESULT(p, at, v) STORE_BYTES(V, p, at, v)
#define STORE_NUMBERS(T, p, at, v) STOREV(T, V, p, at, v)
#endif

// Elements less their zero points, in the type that they are computed in.
#if IS_BYTE(T0)
#define DIFFERENCE_0 (LOAD_BYTES(src0, at_src0, src0_stride.s7, flags.s1) - zero0)
#else
#define DIFFERENCE_0 LOAD_NUMBERS(T0, src0, at_src0, src0_stride.s7)
#endif
#if IS_BYTE(T1)
#define DIFFERENCE_1 (LOAD_BYTES(src1, at_src1, src1_stride.s7, flags.s2) - zero1)
#else
#define DIFFERENCE_1 LOAD_NUMBERS(T1, src1, at_src1, src1_stride.s7)
#endif
#define VALUE_0 (TO_FLOATS(DIFFERENCE_0) * scale0)
#define VALUE_1 (TO_FLOATS(DIFFERENCE_1) * scale1)

// What is rounded: a value in units of dst's scale.
#define OP_COPY (VALUE_0 / scale_d)
// As qconv_panel.cl adds.
#define OP_ADD fma(TO_FLOATS(DIFFERENCE_0), scale0 / scale_d, TO_FLOATS(DIFFERENCE_1) * (scale1 / scale_d))
#define OP_MUL (TO_FLOATS(DIFFERENCE_0 * DIFFERENCE_1) * (scale0 * scale1 / scale_d))
#define OP_SIGMOID (1.0f / (1.0f + exp(-VALUE_0)) / scale_d)
#define OP_LEAKY_RELU (VALUE_0 * (DIFFERENCE_0 < 0 ? (floats)(parameter) : (floats)(1.0f)) / scale_d)
// Sums of products, and a bias for them, by the scales of both factors. The sums wrap.
#define OP_SCALE                                                                                                       \
    (TO_FLOATS(AS_INTS(AS_UINTS(DIFFERENCE_0) + (HAS(HAS_SRC1) ? AS_UINTS(DIFFERENCE_1) : (uints)(0)))) *              \
     (parameter * scale0 * scale1 / scale_d))

#define FOR_VALUES(X) X(dst) X(src0) X(src1)
#define FOR_SCALES(X) X(s0) X(z0) X(s1) X(z1) X(sd) X(zd)
#define BLOCK_INDEX(p) const idx_t block_##p = p##_offset + block_index(block, size, shape, p##_stride);
#define ROW_INDEX(p) const idx_t row_##p = block_##p + row * p##_stride.s6;
// Not all operators use all of them.
#define ELEMENT_INDEX(p)                                                                                               \
    const idx_t at_##p = row_##p + column * p##_stride.s7;                                                             \
    (void)at_##p;
#ifdef BY_ROW
#define STEP(p) 0
#define SCALE_INDEX(p) const idx_t at_##p = row_##p;
#else
#define STEP(p) p##_stride.s7
#define SCALE_INDEX(p) ELEMENT_INDEX(p)
#endif
#define SCALE_OF(p, bit) (HAS(bit) ? LOAD_NUMBERS(F32, p, at_##p, STEP(p)) : (floats)(1.0f))
#define ZERO_OF(p, bit, flip) (HAS(bit) ? LOAD_BYTES(p, at_##p, STEP(p), flip) : (ints)(flip))
#define FIND_SCALES                                                                                                    \
    FOR_SCALES(SCALE_INDEX)                                                                                            \
    const floats scale0 = SCALE_OF(s0, HAS_S0), scale1 = SCALE_OF(s1, HAS_S1), scale_d = SCALE_OF(sd, HAS_SD);         \
    const ints zero0 = ZERO_OF(z0, HAS_Z0, flags.s1), zero1 = ZERO_OF(z1, HAS_Z1, flags.s2);                           \
    const ints zero_d = ZERO_OF(zd, HAS_ZD, flags.s3) - flags.s3;                                                      \
    (void)scale0, (void)scale1, (void)scale_d, (void)zero0, (void)zero1, (void)zero_d;

NOT_VECTORIZED __kernel void qmap(__global STORAGE(T_DST) *restrict dst, const idx_t dst_offset, __global const STORAGE(T0) *src0,
                   const idx_t src0_offset, __global const STORAGE(T1) *src1, const idx_t src1_offset,
                   __global const float *s0, const idx_t s0_offset, __global const uchar *z0, const idx_t z0_offset,
                   __global const float *s1, const idx_t s1_offset, __global const uchar *z1, const idx_t z1_offset,
                   __global const float *sd, const idx_t sd_offset, __global const uchar *zd, const idx_t zd_offset,
                   const float parameter, const int4 flags, PIECE_ARGUMENTS, const idx8_t dst_stride,
                   const idx8_t src0_stride, const idx8_t src1_stride, const idx8_t s0_stride, const idx8_t z0_stride,
                   const idx8_t s1_stride, const idx8_t z1_stride, const idx8_t sd_stride, const idx8_t zd_stride
                       TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_PIECE
    for (idx_t block = first_block; block < end_block; ++block) {
        FOR_VALUES(BLOCK_INDEX)
        FOR_SCALES(BLOCK_INDEX)
        for (idx_t row = first_row; row < end_row; ++row) {
            FOR_VALUES(ROW_INDEX)
            FOR_SCALES(ROW_INDEX)
#ifdef BY_ROW
            FIND_SCALES
#endif
            for (idx_t next = first_column; next < end_column; next += V) {
                const idx_t column = min(next, size.x - V); // the last vector is moved back to be full
                FOR_VALUES(ELEMENT_INDEX)
#ifndef BY_ROW
                FIND_SCALES
#endif
                const floats scaled = OP;
#if IS_BYTE(T_DST)
                // Within the 8 bits, where what is not a number becomes the lowest one, and to the nearest integer, halves
                // to even: what is added leaves no bits for fractions.
                const floats low = TO_FLOATS(-flags.s3 - zero_d), high = low + 255.0f;
                const floats above = scaled > low ? scaled : low, within = above < high ? above : high;
                STORE_RESULT(dst, at_dst, TO_INTS((within + 12582912.0f) - 12582912.0f) + zero_d);
#else
                STORE_NUMBERS(T_DST, dst, at_dst, scaled);
#endif
            }
        }
    }
    TEAM_LEAVE
}
