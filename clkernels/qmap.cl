// SPDX-License-Identifier: Apache-2.0
// Elementwise operators on quantised values: dst = quantise(OP(dequantise(src0), dequantise(src1))).
//
// Defines:
//   OP             OP_COPY …, see below
//   T0, T1, T_DST  types: U8 for either type of 8 bits; T0 also F32, F16, BF16 and I32, T1 also I32, T_DST also the floats
// check: -DOP=OP_ADD -DT0=U8 -DT1=U8 -DT_DST=U8
// check: -DOP=OP_SCALE -DT0=I32 -DT1=I32 -DT_DST=F16
// check: -DOP=OP_COPY -DT0=F32 -DT1=U8 -DT_DST=U8 -DINDEX64
// check: -DOP=OP_SIGMOID -DT0=U8 -DT1=U8 -DT_DST=U8
#include "common.clh"
#include "walk.clh"
#if !defined(OP) || !defined(T0) || !defined(T1) || !defined(T_DST)
#error "qmap.cl needs OP, T0, T1, T_DST"
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

#define LOAD_BYTE(p, at, is_signed) ((is_signed) ? (int)as_char((p)[at]) : (int)(p)[at])

// Elements less their zero points, in the type that they are computed in.
#if IS_BYTE(T0)
#define DIFFERENCE_0 (LOAD_BYTE(src0, i0, flags.s1) - (HAS(HAS_Z0) ? LOAD_BYTE(z0, iz0, flags.s1) : 0))
#else
#define DIFFERENCE_0 LOAD(T0, src0, i0)
#endif
#if IS_BYTE(T1)
#define DIFFERENCE_1 (LOAD_BYTE(src1, i1, flags.s2) - (HAS(HAS_Z1) ? LOAD_BYTE(z1, iz1, flags.s2) : 0))
#else
#define DIFFERENCE_1 LOAD(T1, src1, i1)
#endif
#define SCALE_0 (HAS(HAS_S0) ? s0[is0] : 1.0f)
#define SCALE_1 (HAS(HAS_S1) ? s1[is1] : 1.0f)
#define SCALE_D (HAS(HAS_SD) ? sd[isd] : 1.0f)
#define VALUE_0 ((float)DIFFERENCE_0 * SCALE_0)
#define VALUE_1 ((float)DIFFERENCE_1 * SCALE_1)

// What is rounded: a value in units of dst's scale.
#define OP_COPY (VALUE_0 / SCALE_D)
#define OP_ADD ((VALUE_0 + VALUE_1) / SCALE_D)
#define OP_MUL ((float)(DIFFERENCE_0 * DIFFERENCE_1) * (SCALE_0 * SCALE_1 / SCALE_D))
#define OP_SIGMOID (1.0f / (1.0f + exp(-VALUE_0)) / SCALE_D)
#define OP_LEAKY_RELU (VALUE_0 * (DIFFERENCE_0 < 0 ? parameter : 1.0f) / SCALE_D)
// Sums of products, and a bias for them, by the scales of both factors. The sums wrap.
#define OP_SCALE                                                                                                       \
    ((float)as_int((uint)DIFFERENCE_0 + (HAS(HAS_SRC1) ? (uint)DIFFERENCE_1 : 0u)) *                                   \
     (parameter * SCALE_0 * SCALE_1 / SCALE_D))

// Before the guard, so that a compiler which makes a loop of a work-group moves the divisions out of it. Not all operators
// use all of them.
#define INDEX_OF(name, offset, stride)                                                                                 \
    const idx_t name = offset + row_index(row, deep, shape, stride) + column * stride.s7;                              \
    (void)name

__kernel void qmap(__global STORAGE(T_DST) *dst, const idx_t dst_offset, __global const STORAGE(T0) *src0,
                   const idx_t src0_offset, __global const STORAGE(T1) *src1, const idx_t src1_offset,
                   __global const float *s0, const idx_t s0_offset, __global const uchar *z0, const idx_t z0_offset,
                   __global const float *s1, const idx_t s1_offset, __global const uchar *z1, const idx_t z1_offset,
                   __global const float *sd, const idx_t sd_offset, __global const uchar *zd, const idx_t zd_offset,
                   const float parameter, const int4 flags, const idx_t rows, const int deep, const idx8_t shape,
                   const idx8_t dst_stride, const idx8_t src0_stride, const idx8_t src1_stride,
                   const idx8_t s0_stride, const idx8_t z0_stride, const idx8_t s1_stride, const idx8_t z1_stride,
                   const idx8_t sd_stride, const idx8_t zd_stride)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    INDEX_OF(to, dst_offset, dst_stride);
    INDEX_OF(i0, src0_offset, src0_stride);
    INDEX_OF(i1, src1_offset, src1_stride);
    INDEX_OF(is0, s0_offset, s0_stride);
    INDEX_OF(iz0, z0_offset, z0_stride);
    INDEX_OF(is1, s1_offset, s1_stride);
    INDEX_OF(iz1, z1_offset, z1_stride);
    INDEX_OF(isd, sd_offset, sd_stride);
    INDEX_OF(izd, zd_offset, zd_stride);
    if (column >= shape.s7 || row >= rows)
        return;
    const float scaled = OP;
#if IS_BYTE(T_DST)
    // To the nearest integer, halves to even, within the 8 bits; what is not a number becomes the lowest one.
    const int lowest = flags.s3 ? -128 : 0, zero = HAS(HAS_ZD) ? LOAD_BYTE(zd, izd, flags.s3) : 0;
    dst[to] = (uchar)(convert_int(fmin(fmax(rint(scaled), (float)(lowest - zero)), (float)(lowest + 255 - zero))) + zero);
#else
    STORE(T_DST, dst, to, scaled);
#endif
}
