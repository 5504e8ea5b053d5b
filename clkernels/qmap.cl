// SPDX-License-Identifier: Apache-2.0
// Elementwise operators on quantised values: dst = quantise(OP(dequantise(src0), dequantise(src1))).
//
// Defines:
//   OP             OP_COPY …, see below
//   T0, T1, T_DST  types: U8 for either type of 8 bits; T0 also F32, F16, BF16 and I32, T1 also I32, T_DST also the floats
//   V              elements that are computed together: 1, or 8 where each view's neighbours are neighbours or one element
// check: -DOP=OP_ADD -DT0=U8 -DT1=U8 -DT_DST=U8 -DV=8
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

// Bits of flags.s0: what is there. Scales that are not are 1, zero points 0. flags.s1, s2, s3: the bytes of src0, src1
// and dst are signed.
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
#define LOAD_BYTES(p, at, step, is_signed) ((is_signed) ? (int)as_char((p)[at]) : (int)(p)[at])
#define LOAD_NUMBERS(T, p, at, step) LOAD(T, p, at)
#define STORE_BYTES(p, at, v) ((p)[at] = (uchar)(v))
#define STORE_NUMBERS(T, p, at, v) STORE(T, p, at, v)
#else
typedef float8 floats;
typedef int8 ints;
typedef uint8 uints;
#define TO_FLOATS(v) convert_float8(v)
#define TO_INTS(v) convert_int8(v)
#define AS_INTS(v) as_int8(v)
#define AS_UINTS(v) as_uint8(v)
#define ONE_BYTE(p, at, is_signed) ((is_signed) ? (int)as_char((p)[at]) : (int)(p)[at])
#define LOAD_BYTES(p, at, step, is_signed)                                                                             \
    ((step) == 0   ? (int8)(ONE_BYTE(p, at, is_signed))                                                                \
     : (is_signed) ? convert_int8(as_char8(vload8(0, (p) + (at))))                                                     \
                   : convert_int8(vload8(0, (p) + (at))))
#define LOADV_I32(N, p, i) PASTE2_(vload, N)(0, (p) + (i))
#define VECTOR_OF_F32 float8
#define VECTOR_OF_F16 float8
#define VECTOR_OF_BF16 float8
#define VECTOR_OF_I32 int8
#define LOAD_NUMBERS(T, p, at, step)                                                                                   \
    ((step) == 0 ? (PASTE2_(VECTOR_OF_, T))(LOAD(T, p, at)) : LOADV(T, 8, p, at))
#define STORE_BYTES(p, at, v) vstore8(convert_uchar8((v) & 255), 0, (p) + (at))
#define STORE_NUMBERS(T, p, at, v) STOREV(T, 8, p, at, v)
#endif

// Elements less their zero points, in the type that they are computed in.
#define BYTES_OF(p, z, bit, is_signed)                                                                                 \
    (LOAD_BYTES(p, at_##p, p##_stride.s7, is_signed) -                                                                 \
     (HAS(bit) ? LOAD_BYTES(z, at_##z, z##_stride.s7, is_signed) : (ints)(0)))
#define NUMBERS_OF(T, p) LOAD_NUMBERS(T, p, at_##p, p##_stride.s7)
#if IS_BYTE(T0)
#define DIFFERENCE_0 BYTES_OF(src0, z0, HAS_Z0, flags.s1)
#else
#define DIFFERENCE_0 NUMBERS_OF(T0, src0)
#endif
#if IS_BYTE(T1)
#define DIFFERENCE_1 BYTES_OF(src1, z1, HAS_Z1, flags.s2)
#else
#define DIFFERENCE_1 NUMBERS_OF(T1, src1)
#endif
#define SCALE_OF(p, bit) (HAS(bit) ? NUMBERS_OF(F32, p) : (floats)(1.0f))
#define SCALE_0 SCALE_OF(s0, HAS_S0)
#define SCALE_1 SCALE_OF(s1, HAS_S1)
#define SCALE_D SCALE_OF(sd, HAS_SD)
#define VALUE_0 (TO_FLOATS(DIFFERENCE_0) * SCALE_0)
#define VALUE_1 (TO_FLOATS(DIFFERENCE_1) * SCALE_1)

// What is rounded: a value in units of dst's scale.
#define OP_COPY (VALUE_0 / SCALE_D)
#define OP_ADD ((VALUE_0 + VALUE_1) / SCALE_D)
#define OP_MUL (TO_FLOATS(DIFFERENCE_0 * DIFFERENCE_1) * (SCALE_0 * SCALE_1 / SCALE_D))
#define OP_SIGMOID (1.0f / (1.0f + exp(-VALUE_0)) / SCALE_D)
#define OP_LEAKY_RELU (VALUE_0 * (DIFFERENCE_0 < 0 ? (floats)(parameter) : (floats)(1.0f)) / SCALE_D)
// Sums of products, and a bias for them, by the scales of both factors. The sums wrap.
#define OP_SCALE                                                                                                       \
    (TO_FLOATS(AS_INTS(AS_UINTS(DIFFERENCE_0) + (HAS(HAS_SRC1) ? AS_UINTS(DIFFERENCE_1) : (uints)(0)))) *              \
     (parameter * SCALE_0 * SCALE_1 / SCALE_D))

#define FOR_VIEWS(X) X(dst) X(src0) X(src1) X(s0) X(z0) X(s1) X(z1) X(sd) X(zd)
#define BLOCK_INDEX(p) const idx_t block_##p = p##_offset + block_index(block, size, shape, p##_stride);
#define ROW_INDEX(p) const idx_t row_##p = block_##p + row * p##_stride.s6;
// Not all operators use all of them.
#define ELEMENT_INDEX(p)                                                                                               \
    const idx_t at_##p = row_##p + column * p##_stride.s7;                                                             \
    (void)at_##p;

__kernel void qmap(__global STORAGE(T_DST) *restrict dst, const idx_t dst_offset, __global const STORAGE(T0) *src0,
                   const idx_t src0_offset, __global const STORAGE(T1) *src1, const idx_t src1_offset,
                   __global const float *s0, const idx_t s0_offset, __global const uchar *z0, const idx_t z0_offset,
                   __global const float *s1, const idx_t s1_offset, __global const uchar *z1, const idx_t z1_offset,
                   __global const float *sd, const idx_t sd_offset, __global const uchar *zd, const idx_t zd_offset,
                   const float parameter, const int4 flags, PIECE_ARGUMENTS, const idx8_t dst_stride,
                   const idx8_t src0_stride, const idx8_t src1_stride, const idx8_t s0_stride, const idx8_t z0_stride,
                   const idx8_t s1_stride, const idx8_t z1_stride, const idx8_t sd_stride, const idx8_t zd_stride)
{
    FIND_PIECE
    for (idx_t block = first_block; block < end_block; ++block) {
        FOR_VIEWS(BLOCK_INDEX)
        for (idx_t row = first_row; row < end_row; ++row) {
            FOR_VIEWS(ROW_INDEX)
            for (idx_t next = first_column; next < end_column; next += V) {
                const idx_t column = min(next, size.x - V); // the last vector is moved back to be full
                FOR_VIEWS(ELEMENT_INDEX)
                const floats scaled = OP;
#if IS_BYTE(T_DST)
                // To the nearest integer, halves to even, within the 8 bits; what is not a number becomes the lowest one.
                const ints zero = HAS(HAS_ZD) ? LOAD_BYTES(zd, at_zd, zd_stride.s7, flags.s3) : (ints)(0);
                const floats low = TO_FLOATS((flags.s3 ? -128 : 0) - zero);
                STORE_BYTES(dst, at_dst, TO_INTS(fmin(fmax(rint(scaled), low), low + 255.0f)) + zero);
#else
                STORE_NUMBERS(T_DST, dst, at_dst, scaled);
#endif
            }
        }
    }
}
