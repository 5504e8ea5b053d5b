// SPDX-License-Identifier: Apache-2.0
// Matrix products for CPUs: a tile of R rows and NB panels of W columns in registers, one work-item a work-group. A
// work-item takes a share of the tiles: all its columns for one slab of R rows, then the next slab. Terms may be taken block
// by block, with the sums so far in memory of the work-item's own: then few rows of b, each long, are read at a time. Where
// a's elements do not lie along k, each block of a slab is first copied there, term after term.
//
// Defines:
//   T, T_A, T_B   see gemm.clh; with PANELS, T_B is F32
//   R        rows of a tile
//   W        columns of a panel: 4, 8 or 16
//   NB       panels of a tile
//   A        a is read as it is, ROWS: its elements are neighbours along k, ANY: any strides; or copied, COPY_K: neighbours
//            along k, COPY_M: along the rows, COPY_ANY: any strides
//   PANELS   b is in gemm_pack.cl's panels, and its column stride is a panel's; any n. Else its columns are neighbours, and
//            n >= W
//   COPY_B   b lies as it does, its columns are neighbours; any n. A work-item copies its panels of a block of terms first
//   LANES    the chain is applied to single elements
//   INDEX64, STAGES …  see gemm.clh
// check: -DT=F32 -DR=14 -DW=16 -DNB=2 -DA=ROWS -DPANELS
// check: -DT=F32 -DR=8 -DW=16 -DNB=3 -DA=ROWS -DBATCHED
// check: -DT=F16 -DR=6 -DW=8 -DNB=2 -DA=COPY_K -DPANELS -DINDEX64
// check: -DT=F32 -DR=6 -DW=4 -DNB=2 -DA=COPY_M -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=F32 -DR=6 -DW=8 -DNB=2 -DA=ROWS -DCOPY_B -DTEAM
// check: -DT=F32 -DR=6 -DW=8 -DNB=2 -DA=COPY_M -DCOPY_B -DINDEX64
// check: -DT=BF16 -DR=1 -DW=16 -DNB=4 -DA=COPY_ANY -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
#define ROWS 1
#define COPY_K 2
#define COPY_M 3
#define COPY_ANY 4
#define ANY 5
#if !defined(T) || !defined(R) || !defined(W) || !defined(NB) || !defined(A)
#error "gemm_panel.cl needs T, R, W, NB and A"
#endif
// The work-items' own memory; where it begins, and of each work-item: floats of it, slabs, panels, terms of a block.
#define MORE_ARGUMENTS , __global float *memory, idx8_t shares
#define PASS_MORE , memory, shares
#ifdef PANELS
#define CUT_END
#define T_B F32
#define B_PANELS 1
#define FIRST_COLUMN(wish, columns) (wish)
#elif defined(COPY_B)
#define CUT_END
#define B_PANELS 1
#define FIRST_COLUMN(wish, columns) (wish)
#else
#define B_PANELS 0
#define FIRST_COLUMN(wish, columns) min(wish, (columns) - W)
#endif
#include "gemm.clh"

#if A == ROWS || A == ANY
#define SLAB_T __global const STORAGE(T_A) *const *
#else
#define COPIES
#define SLAB_T __global const float *
#endif
#if A == ROWS
#define SLAB_VALUE(r) LOAD(T_A, slab[r], k)
#elif A == ANY
#define SLAB_VALUE(r) LOAD(T_A, slab[r], k * a_k)
#else
#define SLAB_VALUE(r) slab[k * R + r]
#endif

// sum[row][panel] += the products of all terms. A function for each number of panels: their sums stay in registers.
#define DEFINE_ACCUMULATE(name, NB)                                                                                    \
    static inline void name(VECTOR *sum, SLAB_T slab, idx_t a_k, __global const STORAGE(T_B) *const *column,           \
                            idx_t b_k, idx_t depth)                                                                    \
    {                                                                                                                  \
        for (idx_t k = 0; k < depth; k++) {                                                                            \
            VECTOR y[NB];                                                                                              \
            UNROLL for (int j = 0; j < NB; j++) y[j] = LOADV(T_B, W, column[j], k * b_k);                              \
            UNROLL for (int r = 0; r < R; r++)                                                                         \
            {                                                                                                          \
                const VECTOR x = (VECTOR)(SLAB_VALUE(r));                                                              \
                UNROLL for (int j = 0; j < NB; j++) sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);                   \
            }                                                                                                          \
        }                                                                                                              \
    }
#define UNROLL _Pragma("unroll")
DEFINE_ACCUMULATE(accumulate, NB)
#if NB > 1
DEFINE_ACCUMULATE(accumulate_1, 1)
#endif

#if A == COPY_K && R <= W
#define COPIED W
// W terms of R rows. Each round interleaves the first half of the vectors with the second; log2(W) rounds transpose. The
// lanes behind R are overwritten by the next term's.
static inline void copy_terms(__global const STORAGE(T_A) *a, const idx_t row[R], idx_t k, __global float *slab)
{
    VECTOR v[W], next[W];
#pragma unroll
    for (int r = 0; r < W; r++)
        v[r] = r < R ? LOADV(T_A, W, a, row[min(r, R - 1)] + k) : (VECTOR)(0);
#pragma unroll
    for (int round = 1; round < W; round *= 2) {
#pragma unroll
        for (int i = 0; i < W / 2; i++) {
            next[2 * i].even = v[i].lo;
            next[2 * i].odd = v[i + W / 2].lo;
            next[2 * i + 1].even = v[i].hi;
            next[2 * i + 1].odd = v[i + W / 2].hi;
        }
#pragma unroll
        for (int i = 0; i < W; i++)
            v[i] = next[i];
    }
#pragma unroll
    for (int i = 0; i < W; i++)
        PASTE2_(vstore, W)(v[i], 0, slab + (k + i) * R);
}
#endif

#ifdef COPIES
// Behind the slab are W floats to spare.
static inline void copy_slab(__global const STORAGE(T_A) *a, const idx_t row[R], idx_t a_k, bool full, idx_t depth,
                             __global float *slab)
{
    idx_t k = 0;
#ifdef COPIED
    for (; k + W <= depth; k += W)
        copy_terms(a, row, k, slab);
#elif A == COPY_M && R <= W
    for (; full && k < depth - W; k++)
        PASTE2_(vstore, W)(LOADV(T_A, W, a, row[0] + k * a_k), 0, slab + k * R);
#endif
    for (; k < depth; k++)
        for (int r = 0; r < R; r++)
            slab[k * R + r] = LOAD(T_A, a, row[r] + k * a_k);
}
#endif

#ifdef COPY_B
#define TOGETHER 8 // panels: long pieces of rows are read
#define AHEAD 4    // rows, that are asked for before they are copied
static inline void copy_panels(__global const STORAGE(T_B) *b, idx_t b_k, idx_t panel, idx_t end, idx_t columns,
                               idx_t depth, idx_t room, __global float *to)
{
    for (; panel + TOGETHER <= end && (panel + TOGETHER) * W <= columns; panel += TOGETHER, to += TOGETHER * room * W) {
        __global const STORAGE(T_B) *row = b + panel * W;
        __global float *at = to;
        for (idx_t k = 0; k < depth; k++, row += b_k, at += W) {
#ifdef CAN_FETCH
            UNROLL for (int j = 0; j < TOGETHER * W; j += 16) __builtin_prefetch(row + AHEAD * b_k + j);
#endif
            UNROLL for (int j = 0; j < TOGETHER; j++)
                PASTE2_(vstore, W)(LOADV(T_B, W, row, j * W), 0, at + j * room * W);
        }
    }
    for (; panel < end; panel++, to += room * W)
        for (idx_t k = 0; k < depth; k++) {
            VECTOR v = 0;
            const idx_t at = k * b_k + panel * W, rest = columns - panel * W;
            if (rest >= W)
                v = LOADV(T_B, W, b, at);
            else
                LOAD_FIRST(T_B, W, b, at, v, rest);
            PASTE2_(vstore, W)(v, 0, to + k * W);
        }
}
#endif

// Where a tile's results go: column n of row m at m * stride.s6 + n * stride.s7 + dst_offset.
#define TILE_ARGUMENTS                                                                                                 \
    __global STORAGE(T) *dst, idx_t dst_offset, __global const STORAGE(T) *c, idx_t c_offset, idx_t columns,           \
        idx8_t stride, SCALAR alpha, SCALAR beta, bool has_c, idx_t first, int begin, int end
#define PASS_TILE dst, dst_offset, c, c_offset, size.s1, stride, alpha, beta, flags.x, first, begin, end

// Stores rows begin … end - 1 of a tile of `count` panels, the first of which is number `panel`.
static inline void store_tile(TILE_ARGUMENTS, const VECTOR *sum, int count, idx_t panel CHAIN_ARGUMENTS)
{
    for (int r = begin; r < end; r++)
        for (int j = 0; j < count; j++) {
            const idx_t m = first + r, wish = (panel + j) * W, n = FIRST_COLUMN(wish, columns);
            store_vector(dst, dst_offset + m * stride.s6 + n * stride.s7, stride.s7, c,
                         c_offset + m * stride.s4 + n * stride.s5, stride.s5, sum[r * count + j], alpha, beta, has_c,
                         (int)(wish - n), (int)min((idx_t)W, columns - n), m, n PASS_CHAIN_ARGUMENTS);
        }
}

#if STAGES == 0
#define IS_PLAIN(count)                                                                                                \
    (begin == 0 && end == R && stride.s7 == 1 && !flags.x && (panel + count) * W <= size.s1)
// Without alpha, which is 1 mostly, since what multiplies sums multiplies no products meanwhile.
#define STORE_SUMS(count, factor)                                                                                      \
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int j = 0; j < count; j++)                                          \
        STOREV(T, W, dst, dst_offset + (first + r) * stride.s6 + (panel + j) * W, factor sum[r * count + j])
#define STORE_PLAIN(count)                                                                                             \
    if (alpha == 1)                                                                                                    \
        STORE_SUMS(count, );                                                                                           \
    else                                                                                                               \
        STORE_SUMS(count, (VECTOR)((VALUE)alpha) *)
#else
#define IS_PLAIN(count) false
#define STORE_PLAIN(count)
#endif
#ifdef COPY_B
#define B_ROOM (share.s3 + 2) // terms of a panel: an odd number of lines, mostly
#define B_FLOATS (share.s2 * B_ROOM * W)
#define B_AT(j) (own + (panel + (j) - first_panel) * (B_ROOM * W))
#define B_STEP W
#else
#define B_FLOATS 0
#define B_AT(j) (PANEL(j) + k0 * stride.s2)
#define B_STEP stride.s2
#endif
#define PANEL(j) (b + (B_PANELS ? (panel + j) * stride.s3 : FIRST_COLUMN((panel + j) * W, size.s1)))

#define DO_TILE(accumulate, count)                                                                                     \
    do {                                                                                                               \
        __global const STORAGE(T_B) *columns[count];                                                                   \
        __global float *so_far = own + B_FLOATS + ((s - first_slab) * share.s2 + (panel - first_panel)) * (R * W);                \
        VECTOR sum[R * count];                                                                                         \
        UNROLL for (int j = 0; j < count; j++) columns[j] = B_AT(j);                                                    \
        UNROLL for (int i = 0; i < R * count; i++) sum[i] = 0;                                                         \
        if (k0 > 0)                                                                                                    \
            UNROLL for (int i = 0; i < R * count; i++) sum[i] = PASTE2_(vload, W)(0, so_far + i * W);                  \
        accumulate(sum, slab, stride.s1, columns, B_STEP, depth);                                                      \
        if (k0 + depth < size.s2) {                                                                                    \
            UNROLL for (int i = 0; i < R * count; i++) PASTE2_(vstore, W)(sum[i], 0, so_far + i * W);                  \
        } else if (IS_PLAIN(count)) {                                                                                         \
            STORE_PLAIN(count);                                                                                        \
        } else {                                                                                                       \
            VECTOR copied[R * count]; /* for a loop that need not be unrolled: it compiles much faster */              \
            UNROLL for (int i = 0; i < R * count; i++) copied[i] = sum[i];                                             \
            store_tile(PASS_TILE, copied, count, panel PASS_CHAIN);                                                    \
        }                                                                                                              \
    } while (0)

WORK multiply_share(GEMM_ARGUMENTS, const idx_t grid0, const idx_t grid1, const idx_t grid2)
{
    GEMM_UNPACK
    const idx4_t share = (idx4_t)(shares.s1, shares.s2, shares.s3, shares.s4);
    const idx_t panels = (size.s1 + W - 1) / W, slab_count = (size.s0 + R - 1) / R;
    const idx_t slab_items = (slab_count + share.s1 - 1) / share.s1, panel_items = (panels + share.s2 - 1) / share.s2;
    const idx_t first_slab = grid0 * share.s1, end_slab = min(first_slab + share.s1, slab_count);
    // A share that is smaller comes first: a driver may give half of all work-items to one thread at once.
    const idx_t end_panel = panels - (panel_items - 1 - grid1) * share.s2;
    const idx_t first_panel = max((idx_t)0, end_panel - share.s2);
    FIND_MATRICES;
    __global float *own = memory + shares.s0;
    own += ((grid2 * panel_items + grid1) * slab_items + grid0) * share.s0;
    for (idx_t k0 = 0; k0 < size.s2; k0 += share.s3) {
        const idx_t depth = min(share.s3, size.s2 - k0);
#ifdef COPY_B
        copy_panels(b + k0 * stride.s2, stride.s2, first_panel, end_panel, size.s1, depth, B_ROOM, own);
#endif
        for (idx_t s = first_slab; s < end_slab; s++) {
            // The last slab is moved back to be full; its first rows are not stored again.
            const idx_t wish = s * R, first = max((idx_t)0, min(wish, size.s0 - R));
            const int begin = (int)(wish - first), end = (int)min((idx_t)R, size.s0 - first);
#ifdef COPIES
            __global float *slab = own + (share.s0 - depth * R - W);
            idx_t row[R];
            UNROLL for (int r = 0; r < R; r++) row[r] = min(first + r, size.s0 - 1) * stride.s0;
            copy_slab(a + k0 * stride.s1, row, stride.s1, end == R, depth, slab);
#else
            __global const STORAGE(T_A) *slab[R];
            UNROLL for (int r = 0; r < R; r++) slab[r] = a + (min(first + r, size.s0 - 1) * stride.s0 + k0 * stride.s1);
#endif
            idx_t panel = first_panel;
            for (; panel + NB <= end_panel; panel += NB)
                DO_TILE(accumulate, NB);
#if NB > 1
            for (; panel < end_panel; panel++)
                DO_TILE(accumulate_1, 1);
#endif
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemm_panel(GEMM_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    multiply_share(PASS_GEMM, (idx_t)get_global_id(0), (idx_t)get_global_id(1), (idx_t)get_global_id(2));
    TEAM_LEAVE
}
