// SPDX-License-Identifier: Apache-2.0
// gpu: never
// Products of 8-bit integers whose second factor is in qgemm_pack.cl's panels, with vectors over the columns.
//
// Defines:
//   T_DST, INDEX64, STAGES …  see qgemm.clh
//   VNNI     with x86's vpdpbusd; else
//   MADD     with x86's vpmaddwd, of 8 or 16 lanes; else in float, which holds sums of a few hundred products exactly
//   FOURS    with MADD of 8 lanes: with vpdpbusd of AVX-VNNI
//   FIP      with fewer products (fip.clh), with MADD of 8 lanes; R is a multiple of 3 then, and NB 2
//   T_A      I8 or U8, with VNNI: signed bytes of a are flipped on the way
//   R        rows of dst that a work-item computes
//   W        elements of a vector: 4, 8 or 16 (with VNNI or MADD: 16)
//   NB       vectors of columns that a work-item computes; W * NB divides 32
//   LANES    results are stored one by one
// check: -DT_DST=I32 -DR=4 -DW=16 -DNB=2
// check: -DT_DST=I32 -DR=6 -DW=16 -DNB=1 -DMADD=8
// check: -DT_DST=I32 -DR=6 -DW=16 -DNB=1 -DMADD=8 -DFOURS
// check: -DT_DST=I32 -DR=48 -DW=16 -DNB=2 -DMADD=8 -DFIP
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
#define BLOCK (W * NB)
#ifdef MADD
#define MAX_BLOCKS 8 // of columns, that a work-item computes one after another; as in qgemm_panel.c
#else
#define MAX_BLOCKS 1
#endif

#ifndef MADD
static inline uint load_four(__global const uchar *p)
{
    return as_uint(vload4(0, p));
}
#endif

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
// sum += of each lane four products of unsigned bytes of x and signed bytes of y. Signed bytes of a are y then, and x is
// b' + 128: what that adds, 128 times the sum of a row of a, is taken off at the end.
#define ADD_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y))
#if IS_UNSIGNED(T_A)
#define MULTIPLY(sum, of_a, of_b) ADD_PRODUCTS(sum, of_a, of_b)
#define OF_B(v) (v)
#else
#define MULTIPLY(sum, of_a, of_b) ADD_PRODUCTS(sum, of_b, of_a)
#define OF_B(v) ((v) ^ 0x80808080u)
#endif

// now += the products of four terms; rows of a are where offsets say.
static inline void add_fours(uint16 now[R * NB], __global const uchar *a, const long offsets[R], __global const int *b)
{
    uint16 y[NB];
#pragma unroll
    for (int j = 0; j < NB; j++)
        y[j] = OF_B(as_uint16(vload16(0, b + j * W)));
#pragma unroll
    for (int r = 0; r < R; r++) {
        uint16 x;
        BROADCAST_FOUR(x, a + offsets[r]);
#pragma unroll
        for (int j = 0; j < NB; j++)
            MULTIPLY(now[r * NB + j], x, y[j]);
    }
}

// The sums begin with added.
static inline void multiply(UINTS sum[R * NB], __global const uchar *const rows[R], const uint16 added[NB],
                            __global const int *b, idx_t depth)
{
    uint16 now[R * NB];
    long offsets[R];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        now[i] = added[i % NB];
#pragma unroll
    for (int r = 0; r < R; r++)
        offsets[r] = rows[r] - rows[0];
    idx_t k = 0;
    for (; k + 4 <= depth; k += 4, b += PANEL)
        add_fours(now, rows[0] + k, offsets, b);
    // A copy, for loops that need not be unrolled: it compiles much faster.
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = now[i];
    if (k == depth)
        return;
    for (int r = 0; r < R; r++) {
        const uint16 x = (uint16)(load_part(rows[r] + k, (int)(depth - k)));
        for (int j = 0; j < NB; j++)
            MULTIPLY(sum[r * NB + j], x, OF_B(as_uint16(vload16(0, b + j * W))));
    }
}

#if RESULT == RESULT_I32 && V > 1
#define HAS_PLAIN 1
// `count` whole tiles, one below the other, whose results are sums alone, of a multiple of four terms: from registers to
// memory. Of few terms the products take no longer than finding R pointers anew for each tile, so rows are a pointer and
// offsets, kept from one tile to the next.
static inline void multiply_plain(__global const uchar *a, idx_t step, const uint16 added[NB], __global const int *b,
                                  idx_t depth, __global int *dst, idx_t dst_step, idx_t count)
{
    long offsets[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        offsets[r] = (long)r * step;
        KEEP_NUMBER(offsets[r]);
    }
    for (; count > 0; count--) {
        uint16 now[R * NB];
        __global const int *of_b = b;
#pragma unroll
        for (int i = 0; i < R * NB; i++)
            now[i] = added[i % NB];
        for (__global const uchar *at = a, *const end = a + depth; at < end; at += 4, of_b += PANEL)
            add_fours(now, at, offsets, of_b);
#pragma unroll
        for (int i = 0; i < R * NB; i++)
            vstore16(as_int16(now[i]), 0, dst + (i / NB * (long)dst_step + i % NB * W));
        a += (long)R * step;
        dst += (long)R * dst_step;
    }
}
#endif

// Of the bytes as they are in memory; all rows at a time, for an addition waits for the one before it.
static inline void add_rows(uint sum[R], __global const uchar *const rows[R], idx_t depth, int flip)
{
    uint16 sums[R];
#pragma unroll
    for (int r = 0; r < R; r++)
        sums[r] = 0;
    idx_t k = 0;
    for (; k + 64 <= depth; k += 64)
#pragma unroll
        for (int r = 0; r < R; r++)
            MULTIPLY(sums[r], as_uint16(vload16(0, (__global const int *)(rows[r] + k))), (uint16)(0x01010101u));
#pragma unroll
    for (int r = 0; r < R; r++) {
        const uint8 s8 = sums[r].lo + sums[r].hi;
        const uint4 s4 = s8.lo + s8.hi;
        sum[r] = s4.x + s4.y + s4.z + s4.w;
    }
    for (; k < depth; k++)
        for (int r = 0; r < R; r++)
            sum[r] += IS_UNSIGNED(T_A) ? (uint)rows[r][k] : (uint)(int)as_char(rows[r][k]);
}
// Signed bytes of a, and their zero point, are 128 less than as the others take them.
#if IS_UNSIGNED(T_A)
#define LESS 0u
#else
#define LESS 128u
#endif
#else
#ifdef MADD
#define MADD_ROWS R
#define MADD_NB NB
#define MADD_PANEL PANEL
#include "madd.clh"

// sums of a block += the products of a chunk.
static inline void add_chunk(madd_uints *sums, const wide_rows *wide, int first_row, __global const int *columns,
                             __global const int *next, int fours)
{
#ifdef FIP
    fip_columns of;
    widen_columns(&of, columns, fours);
    add_rows_by_fip(sums, wide, first_row, R, &of, fours, next, 0, FIP_PACE(fours, R));
#else
    add_wide(sums, wide, columns, fours);
#endif
}

#define PLACE_OF(block) ((idx_t)((block)*BLOCK / PANEL) * panel_ints + (block)*BLOCK % PANEL)

// Rows are widened once for all blocks of columns.
static inline void multiply(UINTS *sum, __global const uchar *const rows[R], int first_row, __global const int *b,
                            idx_t depth, int flip, int blocks, idx_t panel_ints)
{
    const uint flips = (uint)flip * 0x01010101u;
    madd_uints sums[MAX_BLOCKS * MADD_SUMS];
    wide_rows wide;
    for (int i = 0; i < blocks * MADD_SUMS; i++)
        sums[i] = 0;
    __global const int *const first_chunk = b;
    for (idx_t k = 0; k < depth; k += 4 * MADD_CHUNK) {
        const int count = (int)min(depth - k, (idx_t)(4 * MADD_CHUNK)), whole = count / 4;
        for (int r = 0; r < R; r++) {
            widen(&wide, r, 0, rows[r] + k, whole, flips);
            if (count & 3) {
                const uint last = load_part(rows[r] + (k + 4 * whole), count & 3) ^ flips;
                widen_four(&wide, r * MADD_STRIDE + whole, last);
            }
        }
#ifdef FIP
        find_own_products(&wide, (count + 3) / 4);
#endif
        __global const int *later = k + count < depth ? b + MADD_CHUNK * PANEL : first_chunk;
        for (int block = 0; block < blocks; block++)
            add_chunk(sums + block * MADD_SUMS, &wide, first_row, b + PLACE_OF(block),
                      block + 1 < blocks ? b + PLACE_OF(block + 1) : later, (count + 3) / 4);
        b += MADD_CHUNK * PANEL;
    }
    for (int block = 0; block < blocks; block++)
        join_sums(sum + block * R * NB, sums + block * MADD_SUMS);
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

static inline void multiply(UINTS sum[R * NB], __global const uchar *const rows[R], int first_row,
                            __global const int *b, idx_t depth, int flip, int blocks, idx_t panel_ints)
{
    idx_t k = 0;
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
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
#endif

static inline void add_rows(uint sum[R], __global const uchar *const rows[R], idx_t depth, int flip)
{
    for (int r = 0; r < R; r++) {
        sum[r] = 0;
        for (idx_t k = 0; k < depth; k++)
            sum[r] += (uint)(rows[r][k] ^ (uchar)flip);
    }
}
#define LESS 0u
#endif

// What is added to the sums of W columns, what zero points are multiplied by, and what scales the results.
#define VECTORS (MAX_BLOCKS * NB)
#define FIND_COLUMNS                                                                                                   \
    UINTS added[VECTORS], sums_of_b[VECTORS], zeros_of_b[VECTORS];                                                     \
    FLOATS scales[VECTORS];                                                                                            \
    for (int j = 0; j < blocks * NB; j++) {                                                                            \
        const idx_t column = first_column + j * W;                                                                     \
        const int count = (int)min((idx_t)W, size.s1 - column);                                                        \
        if (count <= 0)                                                                                                \
            break;                                                                                                     \
        sums_of_b[j] = PASTE2_(as_uint, W)(PASTE2_(vload, W)(0, b + (j * W / PANEL * stride.s3 + j * W % PANEL)));     \
        zeros_of_b[j] = ZEROS_OF_B;                                                                                    \
        added[j] = BIAS_OF_COLUMNS - (UINTS)(first_zero) * sums_of_b[j];                                               \
        scales[j] = SCALES_OF_COLUMNS;                                                                                 \
    }
#if RESULT == RESULT_I32
#define SCALES_OF_COLUMNS 1.0f
#define FIND_SCALES const int lowest = 0, zero = 0
#else
#define SCALES_OF_COLUMNS (FLOATS)(scale_of_all) * SCALES_OF_B / (FLOATS)(scale_of_dst)
#define FIND_SCALES                                                                                                    \
    const float scale_of_all = SCALE_OF_ALL, scale_of_dst = SCALE_OF_DST;                                              \
    const int lowest = LOWEST, zero = ZERO_OF_DST
#endif

#ifdef VNNI
#define MULTIPLY_TILE multiply(sum, rows, added, b + PANEL, size.s2)
#define ADDED_BEHIND(j) 0u
#else
#define MULTIPLY_TILE                                                                                                  \
    multiply(sum, rows, (int)(wish - first), b + PANEL, size.s2, FLIP_A,                                               \
             (int)min((idx_t)blocks, (size.s1 - first_column - 1) / BLOCK + 1), stride.s3)
#define ADDED_BEHIND(j) added[j]
#endif

// flags.s6 tiles of R rows, one below the other, and with MADD flags.s7 blocks of columns (one, or an even number), which
// share what is widened of a. Rows first … first + R - 1 are multiplied; those from wish on are the
// tile's. Rows beyond the last one repeat it, and are not stored.
WORK multiply_tiles(QGEMM_ARGUMENTS(int), const idx_t grid0, const idx_t grid1, const idx_t grid2)
{
    TURN_GRID;
    const int blocks = MAX_BLOCKS > 1 ? flags.s7 : 1;
    const idx_t first_column = grid_column * (blocks * BLOCK), first_wish = grid_row * (R * flags.s6);
    if (first_wish >= size.s0 || first_column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    b += first_column / PANEL * stride.s3 + first_column % PANEL;
    const bool own_zeros = stride.s6 != 0, row_sums = HAS(ROW_SUMS) | (LESS != 0u);
    const uint first_zero = own_zeros ? 0u : ZERO_OF_A(0) - LESS;
    FIND_SCALES;
    FIND_COLUMNS

    idx_t row_offsets[R]; // of a tile's rows; the last one of all repeats
    for (int r = 0; r < R; r++)
        row_offsets[r] = min((idx_t)r, size.s0 - 1) * stride.s0;
    const idx_t end = min(first_wish + R * flags.s6, size.s0);
    idx_t wish = first_wish;
#ifdef HAS_PLAIN
    if (!(row_sums | own_zeros) && size.s2 % 4 == 0 && first_column + BLOCK <= size.s1) {
        const idx_t tiles = (end - wish) / R;
        multiply_plain(a + wish * stride.s0, stride.s0, added, b + PANEL, size.s2,
                       dst + (dst_offset + wish * stride.s4 + first_column), stride.s4, tiles);
        wish += tiles * R;
    }
#endif
    for (; wish < end; wish += R) {
        const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);
        __global const uchar *rows[R];
#pragma unroll
        for (int r = 0; r < R; r++)
            rows[r] = a + (first * stride.s0 + row_offsets[r]);
        UINTS sum[MAX_BLOCKS * R * NB];
        uint sum_of_a[R];
        MULTIPLY_TILE;
        if (row_sums)
            add_rows(sum_of_a, rows, size.s2, FLIP_A);
        for (int r = (int)(wish - first); r < R && first + r < size.s0; r++) {
            const idx_t m = first + r;
            const uint zero_of_a = own_zeros ? ZERO_OF_A(m) - LESS : first_zero;
            for (int j = 0; j < blocks * NB; j++) {
                const idx_t n = first_column + j * W;
                if (n >= size.s1)
                    break;
                UINTS total = sum[(j / NB * R + r) * NB + j % NB] + ADDED_BEHIND(j);
                if (own_zeros)
                    total -= (UINTS)(zero_of_a) * sums_of_b[j];
                if (row_sums)
                    total -= zeros_of_b[j] * (UINTS)(sum_of_a[r] - (uint)size.s2 * zero_of_a) + LESS * sum_of_a[r];
                store_vector(dst, dst_offset + m * stride.s4 + n * stride.s5, stride.s5, total, scales[j], lowest, zero,
                             (int)min((idx_t)W, size.s1 - n), m, n PASS_CHAIN);
            }
        }
    }
}

NOT_VECTORIZED __kernel void qgemm_panel(QGEMM_ARGUMENTS(int) TEAM_ARGUMENTS)
{
    TEAM_ENTER
    multiply_tiles(PASS_QGEMM, (idx_t)get_global_id(0), (idx_t)get_global_id(1), (idx_t)get_global_id(2));
    TEAM_LEAVE
}
