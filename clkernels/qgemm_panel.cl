// SPDX-License-Identifier: Apache-2.0
// gpu: never
// Products of 8-bit integers whose second factor is in qgemm_pack.cl's panels, with vectors over the columns.
//
// Defines:
//   T_DST, INDEX64, STAGES …  see qgemm.clh
//   VNNI     with x86's vpdpbusd; else in float, which holds sums of a few hundred products exactly
//   T_A      I8 or U8, with VNNI: signed bytes of a are flipped on the way
//   R        rows of dst that a work-item computes
//   W        elements of a vector: 4, 8 or 16 (with VNNI: 16)
//   NB       vectors of columns that a work-item computes; W * NB divides 32
//   LANES    results are stored one by one
// check: -DT_DST=I32 -DR=4 -DW=16 -DNB=2
// check: -DT_DST=U8 -DR=2 -DW=8 -DNB=2 -DINDEX64
// check: -DT_DST=U8 -DR=2 -DW=4 -DNB=2 -DLANES
// check: -DT_DST=F32 -DR=1 -DW=16 -DNB=2 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT_DST=F32 -DR=1 -DW=8 -DNB=2 -DLANES -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=0
#if !defined(T_DST) || !defined(R) || !defined(W) || !defined(NB)
#error "qgemm_panel.cl needs T_DST, R, W and NB"
#endif
#ifdef LANES
#define V 1
#else
#define V W
#endif
#include "qgemm.clh"
#define PANEL 32

static inline uint load_four(__global const uchar *p)
{
    return as_uint(vload4(0, p));
}

// The first `count` of four bytes, the others 0.
static inline uint load_part(__global const uchar *p, int count)
{
    uint four = p[0];
    if (count > 1)
        four |= (uint)p[1] << 8;
    if (count > 2)
        four |= (uint)p[2] << 16;
    return four;
}

#ifdef VNNI
// sum += of each lane four products of unsigned bytes of x and signed bytes of y.
#define ADD_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y))
#if IS_UNSIGNED(T_A)
#define FLIPPED(v) (v)
#else
#define FLIPPED(v) ((v) ^ 0x80808080u)
#endif

// One four of k: of R rows, and of the panel's row at b.
#define ADD_FOURS(four_of)                                                                                         \
    do {                                                                                                               \
        uint16 y[NB];                                                                                                  \
        _Pragma("unroll") for (int j = 0; j < NB; j++) y[j] = as_uint16(vload16(0, b + j * W));                        \
        _Pragma("unroll") for (int r = 0; r < R; r++)                                                                  \
        {                                                                                                              \
            const uint16 x = FLIPPED((uint16)(four_of(rows[r] + k)));                                                  \
            _Pragma("unroll") for (int j = 0; j < NB; j++) ADD_PRODUCTS(sum[r * NB + j], x, y[j]);                     \
        }                                                                                                              \
        b += PANEL;                                                                                                    \
    } while (0)
#define LAST_OF(p) load_part(p, (int)(depth - k))

static inline void multiply(UINTS sum[R * NB], __global const uchar *const rows[R], __global const int *b, idx_t depth,
                            int flip)
{
    idx_t k = 0;
    for (; k + 4 <= depth; k += 4)
        ADD_FOURS(load_four);
    if (k < depth)
        ADD_FOURS(LAST_OF);
}

static inline uint sum_of_row(__global const uchar *row, idx_t k, int flip)
{
    uint16 sums = 0;
    uint sum = 0;
    idx_t i = 0;
    for (; i + 64 <= k; i += 64) {
        const uint16 x = FLIPPED(as_uint16(vload16(0, (__global const int *)(row + i))));
        ADD_PRODUCTS(sums, x, (uint16)(0x01010101u));
    }
    for (; i < k; i++)
        sum += (uint)(row[i] ^ (uchar)(FLIPPED(0u) & 255u));
    const uint8 s8 = sums.lo + sums.hi;
    const uint4 s4 = s8.lo + s8.hi;
    return sum + s4.x + s4.y + s4.z + s4.w;
}
#else
// 255 * 128 * 512 < 2^24
#define EXACT_ROWS 512

// sum += of four, or fewer, of k; x has the bytes of a, y those of b.
static inline void add_products(FLOATS part[R * NB], const float4 x[R], const INTS y[NB])
{
#define ADD_BYTE(component, left)                                                                                      \
    do {                                                                                                               \
        FLOATS y_[NB];                                                                                                 \
        for (int j = 0; j < NB; j++)                                                                                   \
            y_[j] = PASTE2_(convert_float, W)((y[j] << (left)) >> 24);                                                 \
        for (int r = 0; r < R; r++)                                                                                    \
            for (int j = 0; j < NB; j++)                                                                               \
                part[r * NB + j] = fma((FLOATS)(x[r].component), y_[j], part[r * NB + j]);                             \
    } while (0)
    ADD_BYTE(x, 24);
    ADD_BYTE(y, 16);
    ADD_BYTE(z, 8);
    ADD_BYTE(w, 0);
}

static inline void multiply(UINTS sum[R * NB], __global const uchar *const rows[R], __global const int *b, idx_t depth,
                            int flip)
{
    idx_t k = 0;
    while (k < depth) {
        const idx_t end = min(k + EXACT_ROWS, depth);
        FLOATS part[R * NB];
        for (int i = 0; i < R * NB; i++)
            part[i] = 0.0f;
        for (; k < end; k += 4) {
            float4 x[R];
            INTS y[NB];
            for (int j = 0; j < NB; j++)
                y[j] = PASTE2_(vload, W)(0, b + j * W);
            for (int r = 0; r < R; r++) {
                const uint four = k + 4 <= depth ? load_four(rows[r] + k) : load_part(rows[r] + k, (int)(depth - k));
                x[r] = convert_float4(as_uchar4(four) ^ (uchar4)((uchar)flip));
            }
            add_products(part, x, y);
            b += PANEL;
        }
        for (int i = 0; i < R * NB; i++)
            sum[i] += PASTE2_(as_uint, W)(PASTE2_(convert_int, W)(part[i]));
    }
}

static inline uint sum_of_row(__global const uchar *row, idx_t k, int flip)
{
    uint sum = 0;
    for (idx_t i = 0; i < k; i++)
        sum += (uint)(row[i] ^ (uchar)flip);
    return sum;
}
#endif

// Rows first … first + R - 1; those from begin on are this work-item's. Rows beyond the last one repeat it, and are not
// stored.
__kernel void qgemm_panel(QGEMM_ARGUMENTS(int))
{
    FIND_GRID;
    const idx_t first_column = grid_column * (W * NB), wish = grid_row * R;
    if (wish >= size.s0 || first_column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);
    __global const uchar *rows[R];
    for (int r = 0; r < R; r++)
        rows[r] = a + min(first + r, size.s0 - 1) * stride.s0;
    b += first_column / PANEL * stride.s3 + first_column % PANEL;

    UINTS sum[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
    multiply(sum, rows, b + PANEL, size.s2, FLIP_A);

#if RESULT != RESULT_I32
    const float scale_of_all = SCALE_OF_ALL, scale_of_dst = SCALE_OF_DST;
    const int lowest = LOWEST, zero = ZERO_OF_DST;
#else
    const int lowest = 0, zero = 0;
#endif
    UINTS added[NB], sums_of_b[NB], zeros_of_b[NB];
    FLOATS scales[NB];
    for (int j = 0; j < NB; j++) {
        const idx_t column = first_column + j * W;
        const int count = (int)min((idx_t)W, size.s1 - column);
        if (count <= 0)
            break;
        added[j] = BIAS_OF_COLUMNS;
        sums_of_b[j] = PASTE2_(as_uint, W)(PASTE2_(vload, W)(0, b + j * W));
        zeros_of_b[j] = ZEROS_OF_B;
#if RESULT != RESULT_I32
        scales[j] = (FLOATS)(scale_of_all) * SCALES_OF_B / (FLOATS)(scale_of_dst);
#else
        scales[j] = 1.0f;
#endif
    }
    for (int r = (int)(wish - first); r < R && first + r < size.s0; r++) {
        const uint zero_of_a = ZERO_OF_A(first + r);
        const uint sum_of_a = (HAS(ROW_SUMS) ? sum_of_row(rows[r], size.s2, FLIP_A) : 0u) - (uint)size.s2 * zero_of_a;
        for (int j = 0; j < NB; j++) {
            const idx_t m = first + r, n = first_column + j * W;
            if (n >= size.s1)
                break;
            const UINTS total = sum[r * NB + j] + added[j] - (UINTS)(zero_of_a) * sums_of_b[j] -
                                zeros_of_b[j] * (UINTS)(sum_of_a);
            store_vector(dst, dst_offset + m * stride.s4 + n * stride.s5, stride.s5, total, scales[j], lowest, zero,
                         (int)min((idx_t)W, size.s1 - n), m, n PASS_CHAIN);
        }
    }
}
