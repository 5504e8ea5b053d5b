// SPDX-License-Identifier: Apache-2.0
// Matrix products with fewer multiplications, for CPUs: one or two levels of Strassen's algorithm (strassen.clh). The second
// factor's sums of blocks are there already (gemm_strassen_pack.cl).
//
// One work-item a work-group. It takes slabs of PARTS * R rows, whose parts are R rows each, and blocks of PARTS * WIDTH
// columns; terms come in chunks of PARTS parts. So nothing is halved as a whole, and any sizes will do: what is behind the
// last row is the last row again, what is behind the last term is 0. Some slabs pass together: their sums of blocks are
// copied into memory of the work-item's own, in the order in which they are read; then each of a column block's sums is
// multiplied with those of all slabs. Sums of products are there, too, and where there are several chunks what is added up
// of earlier ones.
//
// gpu: never
// Defines:
//   R        rows of a slab's part
//   W        elements of a vector: 4, 8 or 16
//   NB       vectors of a column block's part
//   LEVELS   1 or 2
//   LANES    the chain is applied to single elements
//   INDEX64, STAGES …  see gemm.clh; T is F32
// check: -DT=F32 -DR=6 -DW=8 -DNB=2 -DLEVELS=2
// check: -DT=F32 -DR=8 -DW=16 -DNB=3 -DLEVELS=1 -DINDEX64
// check: -DT=F32 -DR=6 -DW=4 -DNB=2 -DLEVELS=2 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
// check: -DT=F32 -DR=6 -DW=8 -DNB=2 -DLEVELS=1 -DTEAM -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
#if !defined(T) || !defined(R) || !defined(W) || !defined(NB) || !defined(LEVELS)
#error "gemm_strassen.cl needs T, R, W, NB and LEVELS"
#endif
// b's sums; the work-items' own memory; where both begin; of a work-item: floats of memory, slabs, column blocks, slabs that
// pass together; terms of a part, chunks.
#define MORE_ARGUMENTS , __global const float *blocks, __global float *memory, idx8_t cut
#define PASS_MORE , blocks, memory, cut
#define CUT_END
#include "gemm.clh"
#include "strassen.clh"

#define UNROLL _Pragma("unroll")
#define PARTS (1 << LEVELS)
#define PRODUCTS (LEVELS == 2 ? STRASSEN_PRODUCTS * STRASSEN_PRODUCTS : STRASSEN_PRODUCTS)
#define WIDTH (NB * W)
#define TILE (R * WIDTH)
#define SUMS (LEVELS == 2 ? 5 * STRASSEN_SUMS : STRASSEN_SUMS) // tiles: of the inner level, and for each of its quarters
#define PIECE (R * W)                                          // W terms of a slab's part: [row][term]
#define BLOCK(floats) ((((floats) + 15) / 16 | 1) * 16)        // an odd number of lines, which meet in no sets of a cache
#define FAR 32                                                 // floats of b's next sum that are asked for in W terms
// Not vload and vstore: of these pocl makes quarters of vectors.
typedef VECTOR loose_vector __attribute__((aligned(4)));
#define LOADF(p) (*(__global const loose_vector *)(p))
#define STOREF(v, p) *(__global loose_vector *)(p) = v
#ifdef CAN_FETCH
#define FETCH(p) __builtin_prefetch(p)
#define FETCH_FAR(p) __builtin_prefetch(p, 0, 2)
#else
#define FETCH(p)
#define FETCH_FAR(p)
#endif

// W terms of a row from t on.
static inline VECTOR load_terms(__global const float *row, idx_t a_k, idx_t t, idx_t terms)
{
    if (a_k == 1 && t + W <= terms)
        return LOADF(row + t);
    float lanes[W];
    for (int i = 0; i < W; i++)
        lanes[i] = t + i < terms ? row[(t + i) * a_k] : 0.0f;
    return PASTE2_(vload, W)(0, lanes);
}

// One row of each part: W terms of each of a chunk's parts from t on, as sums of blocks, `step` floats apart.
static inline void copy_terms(__global const float *const row[PARTS], idx_t a_k, idx_t t, idx_t part, idx_t terms,
                              __global float *to, int step)
{
#define TERMS(i, j) load_terms(row[i], a_k, t + (j) * part, terms)
    VECTOR sums[STRASSEN_PRODUCTS];
#if LEVELS == 2
    VECTOR outer[4][STRASSEN_PRODUCTS];
    UNROLL for (int q = 0; q < 4; q++)
    {
        const int i = q >> 1, j = q & 1;
        const VECTOR a11 = TERMS(i, j), a12 = TERMS(i, 2 + j), a21 = TERMS(2 + i, j), a22 = TERMS(2 + i, 2 + j);
        STRASSEN_LEFT(a11, a12, a21, a22, outer[q]);
    }
    UNROLL for (int o = 0; o < STRASSEN_PRODUCTS; o++)
    {
        STRASSEN_LEFT(outer[0][o], outer[1][o], outer[2][o], outer[3][o], sums);
        UNROLL for (int i = 0; i < STRASSEN_PRODUCTS; i++) STOREF(sums[i], to + (o * STRASSEN_PRODUCTS + i) * step);
    }
#else
    const VECTOR a11 = TERMS(0, 0), a12 = TERMS(0, 1), a21 = TERMS(1, 0), a22 = TERMS(1, 1);
    STRASSEN_LEFT(a11, a12, a21, a22, sums);
    UNROLL for (int i = 0; i < STRASSEN_PRODUCTS; i++) STOREF(sums[i], to + i * step);
#endif
}

static inline void copy_slab(__global const float *a, idx_t a_m, idx_t a_k, idx_t first, idx_t rows, idx_t t0, int part,
                             idx_t terms, __global float *to)
{
    for (int c = 0; c < part; c += W)
        for (int r = 0; r < R; r++) {
            __global const float *row[PARTS];
            UNROLL for (int i = 0; i < PARTS; i++) row[i] = a + min(first + i * R + r, rows - 1) * a_m;
            copy_terms(row, a_k, t0 + c, part, terms, to + (c * R + r * W), BLOCK(part * R));
        }
}

// A block of a slab times one of b's. Then comes what is at `next`, and soon what is at `far`.
static inline void multiply(__global const float *left, __global const float *right, int terms, VECTOR sum[R * NB],
                            __global const float *next, __global const float *far)
{
    UNROLL for (int i = 0; i < R * NB; i++) sum[i] = 0;
    for (int c = 0; c < terms; c += W, left += PIECE, right += W * WIDTH, next += PIECE, far += FAR) {
        UNROLL for (int i = 0; i < PIECE; i += 16) FETCH(next + i);
        UNROLL for (int i = 0; i < FAR; i += 16) FETCH_FAR(far + i);
        UNROLL for (int k = 0; k < W; k++)
        {
            VECTOR y[NB];
            UNROLL for (int j = 0; j < NB; j++) y[j] = LOADF(right + (k * WIDTH + j * W));
            UNROLL for (int r = 0; r < R; r++)
            {
                const VECTOR x = (VECTOR)(left[r * W + k]);
                UNROLL for (int j = 0; j < NB; j++) sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);
            }
        }
    }
}

static inline void add_tile(VECTOR sum[R * NB], __global const float *tile)
{
    UNROLL for (int i = 0; i < R * NB; i++) sum[i] += LOADF(tile + i * W);
}

static inline void put_tile(const VECTOR sum[R * NB], __global float *tile)
{
    UNROLL for (int i = 0; i < R * NB; i++) STOREF(sum[i], tile + i * W);
}

// Makes of product i what comes of it, with the sums so far, `step` floats apart. Returns the quarter that it is, or 4.
static inline int add_up(VECTOR sum[R * NB], int i, __global float *sums, int step)
{
    if (i == 5) {
        UNROLL for (int v = 0; v < R * NB; v++)
            STOREF(LOADF(sums + (step + v * W)) + sum[v], sums + (step + v * W));
    }
    if (STRASSEN_FROM(i) < STRASSEN_SUMS)
        add_tile(sum, sums + STRASSEN_FROM(i) * step);
    if (STRASSEN_TO(i) < STRASSEN_SUMS)
        put_tile(sum, sums + STRASSEN_TO(i) * step);
    return STRASSEN_ENDS(i);
}

// What is complete of product p: part column + PARTS * row of the results, or -1.
static inline int add_up_levels(VECTOR sum[R * NB], int p, __global float *sums)
{
#if LEVELS == 2
    const int inner = add_up(sum, p % STRASSEN_PRODUCTS, sums + 4 * STRASSEN_SUMS * TILE, TILE);
    if (inner == 4)
        return -1;
    const int outer = add_up(sum, p / STRASSEN_PRODUCTS, sums + inner * TILE, 4 * TILE);
    return outer == 4 ? -1 : ((outer >> 1) * 2 + (inner >> 1)) * PARTS + (outer & 1) * 2 + (inner & 1);
#else
    const int quarter = add_up(sum, p, sums, TILE);
    return quarter == 4 ? -1 : quarter;
#endif
}

// Where a tile's results go: column n of row m at m * stride.s6 + n * stride.s7 + dst_offset.
static inline void store_tile(__global float *dst, idx_t dst_offset, __global const float *c, idx_t c_offset, idx_t rows,
                              idx_t columns, idx8_t stride, float alpha, float beta, bool has_c, idx_t first,
                              idx_t column, const VECTOR *sum CHAIN_ARGUMENTS)
{
    const int end = (int)min((idx_t)R, rows - first);
    for (int r = 0; r < end; r++)
        for (int j = 0; j < NB; j++) {
            const idx_t m = first + r, n = column + j * W;
            if (n < columns)
                store_vector(dst, dst_offset + m * stride.s6 + n * stride.s7, stride.s7, c,
                             c_offset + m * stride.s4 + n * stride.s5, stride.s5, sum[r * NB + j], alpha, beta, has_c, 0,
                             (int)min((idx_t)W, columns - n), m, n PASS_CHAIN_ARGUMENTS);
        }
}

#define IS_PLAIN (STAGES == 0 && stride.s7 == 1 && !flags.x && first + R <= size.s0 && column + WIDTH <= size.s1)

WORK multiply_share(GEMM_ARGUMENTS, const idx_t grid0, const idx_t grid1)
{
    GEMM_UNPACK
    const idx_t grid2 = 0;
    const int part = (int)cut.s6, chunks = (int)cut.s7, block_floats = BLOCK(part * R), right_floats = BLOCK(part * WIDTH);
    const idx_t slabs = (size.s0 + PARTS * R - 1) / (PARTS * R), first_slab = grid0 * cut.s3;
    const idx_t end_slab = min(first_slab + cut.s3, slabs), slab_items = (slabs + cut.s3 - 1) / cut.s3;
    const idx_t all_blocks = (size.s1 + PARTS * WIDTH - 1) / (PARTS * WIDTH), first_block = grid1 * cut.s4;
    const idx_t end_block = min(first_block + cut.s4, all_blocks);
    const idx_t done_floats = chunks > 1 ? cut.s4 * (PARTS * PARTS * TILE) : 0;
    const idx_t slab_floats = PRODUCTS * block_floats + SUMS * TILE + done_floats;
    FIND_MATRICES;
    (void)b;
    __global float *own = memory + (cut.s1 + (grid1 * slab_items + grid0) * cut.s2);
    for (idx_t slab = first_slab; slab < end_slab; slab += cut.s5)
        for (int chunk = 0; chunk < chunks; chunk++) {
            const int count = (int)min(cut.s5, end_slab - slab);
            for (int s = 0; s < count; s++)
                copy_slab(a, stride.s0, stride.s1, (slab + s) * (PARTS * R), size.s0, (idx_t)chunk * (PARTS * part), part,
                          size.s2, own + s * slab_floats);
            for (idx_t block = first_block; block < end_block; block++)
                for (int p = 0; p < PRODUCTS; p++) {
                    __global const float *right =
                        blocks + (cut.s0 + (((idx_t)block * chunks + chunk) * PRODUCTS + p) * right_floats);
                    for (int s = 0; s < count; s++) {
                        __global float *memory_of = own + s * slab_floats, *left = memory_of + p * block_floats;
                        VECTOR sum[R * NB];
                        __global float *sums = memory_of + PRODUCTS * block_floats;
                        multiply(left, right, part, sum,
                                 s + 1 < count ? left + slab_floats : own + min(p + 1, PRODUCTS - 1) * block_floats,
                                 p + 1 < PRODUCTS || block + 1 < end_block ? right + right_floats + s * (part / W * FAR)
                                                                           : right);
                        const int at = add_up_levels(sum, p, sums);
                        if (at < 0)
                            continue;
                        __global float *done = sums + (SUMS * TILE + ((block - first_block) * (PARTS * PARTS) + at) * TILE);
                        if (chunk > 0)
                            add_tile(sum, done);
                        if (chunk + 1 < chunks) {
                            put_tile(sum, done);
                            continue;
                        }
                        const idx_t first = (slab + s) * (PARTS * R) + at / PARTS * R;
                        const idx_t column = block * (PARTS * WIDTH) + at % PARTS * WIDTH;
                        if (IS_PLAIN) {
                            UNROLL for (int i = 0; i < R * NB; i++)
                                STOREF((VECTOR)(alpha) * sum[i], dst + (dst_offset + (first + i / NB) * stride.s6 + column + i % NB * W));
                            continue;
                        }
                        VECTOR copied[R * NB]; // for a loop that need not be unrolled
                        UNROLL for (int i = 0; i < R * NB; i++) copied[i] = sum[i];
                        store_tile(dst, dst_offset, c, c_offset, size.s0, size.s1, stride, alpha, beta, flags.x,
                                   first, column, copied PASS_CHAIN);
                    }
                }
        }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemm_strassen(GEMM_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    multiply_share(PASS_GEMM, (idx_t)get_global_id(0), (idx_t)get_global_id(1));
    TEAM_LEAVE
}
