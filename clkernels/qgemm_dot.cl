// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers whose second factor is in qgemm_pack.cl's panels, with dot products of four packed bytes.
//
// Defines: T_DST, INDEX64, STAGES …  see qgemm.clh
//   DP4A     with dp4a of PTX; DOT: with cl_khr_integer_dot_product (OpenCL C 3.0); neither: in plain C
//   R        rows of dst that a work-item computes, of columns 16 apart: C of them
// check: -DT_DST=I32 -DR=8 -DC=2
// check: -DT_DST=U8 -DR=2 -DC=2 -DINDEX64
// check: -DT_DST=F32 -DR=1 -DC=2 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
#if !defined(T_DST) || !defined(R) || !defined(C)
#error "qgemm_dot.cl needs T_DST, R and C"
#endif
#define V 1
#include "qgemm.clh"
#define PANEL 32
#define LANES 16

// sum += of four unsigned bytes of x and signed bytes of y.
#if defined(DP4A)
#define ADD_PRODUCTS(sum, x, y) __asm__("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(y))
#elif defined(DOT)
#define ADD_PRODUCTS(sum, x, y) sum += as_uint(dot_4x8packed_us_int(x, y))
#else
#define PRODUCT(x, y, left) ((((x) << (left)) >> 24) * as_uint(as_int((y) << (left)) >> 24))
#define ADD_PRODUCTS(sum, x, y)                                                                                        \
    sum += PRODUCT(x, y, 0) + PRODUCT(x, y, 8) + PRODUCT(x, y, 16) + PRODUCT(x, y, 24)
#endif

// Up to four bytes; the others are 0. What they are multiplied by is 0 as well, but not what sums of a's rows add up.
static inline uint load_four(__global const uchar *p, idx_t left, int aligned)
{
    if (left >= 4)
        return aligned ? *(__global const uint *)p : as_uint(vload4(0, p));
    uint four = p[0];
    if (left > 1)
        four |= (uint)p[1] << 8;
    if (left > 2)
        four |= (uint)p[2] << 16;
    return four;
}

__kernel void qgemm_dot(QGEMM_ARGUMENTS(int))
{
    const idx_t lane = (idx_t)get_global_id(0), row_tile = (idx_t)get_global_id(1), grid2 = (idx_t)get_global_id(2);
    const idx_t first = row_tile * R, column = lane / LANES * (LANES * C) + lane % LANES;
    if (first >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    b += column / PANEL * stride.s3 + column % PANEL;
    uint sum[R * C], row_sum[R], column_sum[C];
    idx_t rows[R];
    for (int r = 0; r < R; r++)
        rows[r] = min(first + r, size.s0 - 1) * stride.s0;
    for (int i = 0; i < R * C; i++)
        sum[i] = 0;
    for (int r = 0; r < R; r++)
        row_sum[r] = 0;
    for (int c = 0; c < C; c++)
        column_sum[c] = as_uint(b[c * LANES]);
    const uint flip = (uint)FLIP_A * 0x01010101u;
    for (idx_t k = 0; k < size.s2; k += 4) {
        uint x[R], y[C];
        b += PANEL;
        for (int c = 0; c < C; c++)
            y[c] = as_uint(b[c * LANES]);
        for (int r = 0; r < R; r++)
            x[r] = load_four(a + rows[r] + k, size.s2 - k, FOURS_OF_A) ^ flip;
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++)
                ADD_PRODUCTS(sum[r * C + c], x[r], y[c]);
        if (HAS(ROW_SUMS)) {
            const uint there = size.s2 - k >= 4 ? ~0u : (1u << (8 * (int)(size.s2 - k))) - 1u;
            for (int r = 0; r < R; r++)
                ADD_PRODUCTS(row_sum[r], x[r] & there, 0x01010101u);
        }
    }
#if RESULT != RESULT_I32
    const float scale_of_all = SCALE_OF_ALL, scale_of_dst = SCALE_OF_DST;
    const int lowest = LOWEST, zero = ZERO_OF_DST;
#else
    const float scale = 1.0f;
    const int lowest = 0, zero = 0;
#endif
    for (int c = 0; c < C; c++) {
        const idx_t n = column + c * LANES;
        if (n >= size.s1)
            break;
        const uint zero_of_b = ZERO_OF_B(n), added = BIAS_OF(n);
#if RESULT != RESULT_I32
        const float scale = scale_of_all * SCALE_OF_B(n) / scale_of_dst;
#endif
        for (int r = 0; r < R && first + r < size.s0; r++) {
            const idx_t m = first + r;
            const uint zero_of_a = ZERO_OF_A(m);
            const uint total = sum[r * C + c] + added - zero_of_a * column_sum[c] -
                               zero_of_b * (row_sum[r] - (uint)size.s2 * zero_of_a);
            store_element(dst, dst_offset + m * stride.s4 + n * stride.s5, total, scale, lowest, zero, m,
                          n PASS_CHAIN);
        }
    }
}
