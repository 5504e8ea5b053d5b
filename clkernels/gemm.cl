// SPDX-License-Identifier: Apache-2.0
// dst = alpha * a * b + beta * c: matrices with any strides, in batches.
//
// Defines:
//   T        type of c and dst, and of a and b unless T_A or T_B are defined
//   KIND     COLUMNS: b's columns are neighbours; vectors lie over the columns of dst
//            DOT: a's and b's elements along k are neighbours; vectors lie over k
//            ANY: any strides and types, one element a work-item
//   R        rows of dst that a work-item computes (not for ANY)
//   W        elements of a vector: 4, 8 or 16 (not for ANY). COLUMNS: n >= W * NB
//   NB       COLUMNS: vectors of columns that a work-item computes; DOT: columns
//   PANELS   COLUMNS: b is in gemm_pack.cl's panels, and its column stride is a panel's; any n
//   INDEX64  see common.clh
//   STAGES … a chain at the end: see chain.clh; LANES: COLUMNS applies it to single elements
// check: -DT=F32 -DKIND=COLUMNS -DR=4 -DW=16 -DNB=2
// check: -DT=F16 -DKIND=DOT -DR=2 -DW=8 -DNB=2
// check: -DT=BF16 -DKIND=COLUMNS -DR=8 -DW=4 -DNB=1 -DINDEX64
// check: -DT=F32 -DKIND=COLUMNS -DR=1 -DW=8 -DNB=2 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=F32 -DKIND=COLUMNS -DR=1 -DW=8 -DNB=2 -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
// check: -DT=F16 -DT_A=F32 -DT_B=F32 -DKIND=COLUMNS -DR=7 -DW=16 -DNB=2 -DPANELS
// check: -DT=F16 -DKIND=ANY -DSTAGES=1 -DS1=OP_MAX(v0,y0) -DOPERANDS=1 -DT_Y0=BF16 -DY0_STEP=0
// check: -DT=I32 -DKIND=ANY
// check: -DT=U64 -DKIND=ANY -DINDEX64
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#define COLUMNS 1
#define DOT 2
#define ANY 3
#if !defined(T) || !defined(KIND)
#error "gemm.cl needs T and KIND"
#endif
#if KIND != ANY && (!defined(R) || !defined(W) || !defined(NB))
#error "gemm.cl needs R, W and NB"
#endif
#if KIND == COLUMNS && !defined(LANES)
#define V W
#else
#define V 1
#endif
#ifndef T_A
#define T_A T
#endif
#ifndef T_B
#define T_B T
#endif
#define STRIDES_T idx8_t // of the batch dimensions, the last one first; s6: of a row; s7: of a column
#ifdef STAGES
#include "map_ops.clh"
#define FLOATV value_t
#endif
#include "chain.clh"

#define VALUE COMPUTE(T)
#if IS_FLOAT(T)
#define SCALAR float
#else
#define SCALAR VALUE
#endif

// size is (m, n, k, batches); stride is (a: m, k; b: k, n; c: m, n; dst: m, n); batch has the sizes of up to 8 batch
// dimensions, the last one first, and x_batch the strides. flags: there is c; the grid's first dimension are rows
// instead of columns.
#define GEMM_ARGUMENTS                                                                                                 \
    __global const STORAGE(T_A) *a, idx_t a_offset, __global const STORAGE(T_B) *b, idx_t b_offset,                    \
        __global const STORAGE(T) * c, idx_t c_offset, __global STORAGE(T) * dst, idx_t dst_offset, idx4_t size,       \
        idx8_t stride, idx8_t batch, idx8_t a_batch, idx8_t b_batch, idx8_t c_batch, idx8_t dst_batch, SCALAR alpha,   \
        SCALAR beta, int2 flags CHAIN_ARGUMENTS

#define ADD_BATCH_DIMENSION(s)                                                                                         \
    do {                                                                                                               \
        const idx_t at_ = take_index(&rest, batch.s);                                                                  \
        a += at_ * a_batch.s;                                                                                          \
        b += at_ * b_batch.s;                                                                                          \
        c_offset += at_ * c_batch.s;                                                                                   \
        dst_offset += at_ * dst_batch.s;                                                                               \
        PASTE2_(MOVE_OPERANDS_, OPERANDS)(s)                                                                           \
    } while (0)
#define MOVE_OPERANDS_0(s)
#define MOVE_OPERANDS_1(s) base.s0 += at_ * stride_y0.s;
#define MOVE_OPERANDS_2(s) MOVE_OPERANDS_1(s) base.s1 += at_ * stride_y1.s;
#define MOVE_OPERANDS_3(s) MOVE_OPERANDS_2(s) base.s2 += at_ * stride_y2.s;
#define MOVE_OPERANDS_4(s) MOVE_OPERANDS_3(s) base.s3 += at_ * stride_y3.s;

#define BASE_OF_OPERAND(i) base.s##i = offset_y##i;
// Moves the arguments to this work-item's matrices; base: where the chain's operands begin. c may be NULL, so its offset
// moves instead.
#define FIND_MATRICES                                                                                                  \
    idx4_t base = 0;                                                                                                   \
    FOR_OPERANDS(BASE_OF_OPERAND)                                                                                      \
    do {                                                                                                               \
        idx_t rest = grid2;                                                                                            \
        a += a_offset;                                                                                                 \
        b += b_offset;                                                                                                 \
        ADD_BATCH_DIMENSION(s0);                                                                                       \
        if (rest) {                                                                                                    \
            ADD_BATCH_DIMENSION(s1);                                                                                   \
            ADD_BATCH_DIMENSION(s2);                                                                                   \
            ADD_BATCH_DIMENSION(s3);                                                                                   \
            ADD_BATCH_DIMENSION(s4);                                                                                   \
            ADD_BATCH_DIMENSION(s5);                                                                                   \
        }                                                                                                              \
    } while (0)

// Read unconditionally: pocl fails on a get_global_id in one branch of a condition.
#define FIND_GRID                                                                                                      \
    const idx_t grid0 = (idx_t)get_global_id(0), grid1 = (idx_t)get_global_id(1), grid2 = (idx_t)get_global_id(2);     \
    const idx_t grid_row = flags.y ? grid0 : grid1, grid_column = flags.y ? grid1 : grid0

// A function's arguments for CHAIN_ARGUMENTS, in the kernel and in a function that got them.
#define PASS_OPERAND(i) , operand##i, base.s##i, stride_y##i
#define PASS_BASE(i) , operand##i, offset_y##i, stride_y##i
#if STAGES > 0
#define PASS_CHAIN , chain_scalars FOR_OPERANDS(PASS_OPERAND)
#define PASS_BASES , chain_scalars FOR_OPERANDS(PASS_BASE)
#else
#define PASS_CHAIN
#define PASS_BASES
#endif
#define AT(i) const idx_t at##i = offset_y##i + m * stride_y##i.s6 + n * stride_y##i.s7;

#if V == 1 || STAGES == 0
static inline void store_element(__global STORAGE(T) *dst, idx_t at, __global const STORAGE(T) *c, idx_t c_at,
                                 VALUE sum, SCALAR alpha, SCALAR beta, bool has_c, idx_t m, idx_t n CHAIN_ARGUMENTS)
{
    VALUE v0 = (VALUE)alpha * sum;
    if (has_c)
        v0 += (VALUE)beta * LOAD(T, c, c_at);
    FOR_OPERANDS(AT)
    LOAD_OPERANDS
    CHAIN
    STORE(T, dst, at, CHAIN_RESULT);
}
#endif

#if KIND == ANY
__kernel void gemm(GEMM_ARGUMENTS)
{
    FIND_GRID;
    const idx_t row = grid_row, column = grid_column;
    if (row >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    a += row * stride.s0;
    b += column * stride.s3;
    VALUE sum = 0;
    for (idx_t k = 0; k < size.s2; k++)
        sum += LOAD(T_A, a, k * stride.s1) * LOAD(T_B, b, k * stride.s2);
    store_element(dst, dst_offset + row * stride.s6 + column * stride.s7, c,
                  c_offset + row * stride.s4 + column * stride.s5, sum, alpha, beta, flags.x, row, column PASS_CHAIN);
}
#endif

#if KIND != ANY
#define VECTOR PASTE2_(VALUE, W)

// Rows first … first + R - 1; those from begin on are this work-item's. Rows beyond the last one repeat it, and are not
// stored.
#define FIND_ROWS                                                                                                      \
    const idx_t wish = grid_row * R;                                                                                   \
    const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);                                                      \
    const int begin = (int)(wish - first);                                                                             \
    __global const STORAGE(T_A) *rows[R];                                                                                \
    for (int r = 0; r < R; r++)                                                                                        \
        rows[r] = a + min(first + r, size.s0 - 1) * stride.s0
// A copy, for a last loop that need not be unrolled: it compiles much faster.
#define COPY_SUMS                                                                                                      \
    VECTOR sums[R * NB];                                                                                               \
    for (int i = 0; i < R * NB; i++)                                                                                   \
    sums[i] = sum[i]
#endif

#if KIND == COLUMNS
#if V > 1
#define VALUE_OF(addend)                                                                                               \
    VECTOR v0 = (VECTOR)((VALUE)alpha) * sum;                                                                          \
    if (has_c)                                                                                                         \
    v0 += (VECTOR)((VALUE)beta) * (addend)

static inline VECTOR load_addend(__global const STORAGE(T) *c, idx_t at, idx_t step, int count)
{
    VECTOR v = 0;
    if (step == 0)
        v = (VECTOR)(LOAD(T, c, at));
    else if (count >= W)
        v = LOADV(T, W, c, at);
    else
        LOAD_FIRST(T, W, c, at, v, count);
    return v;
}
#endif

// Lanes begin … end - 1. With a chain on vectors, dst's columns are neighbours, and c's are or repeat. Only panels are
// cut at the end, and only what is not a panel at the beginning.
static inline void store_vector(__global STORAGE(T) *dst, idx_t at, idx_t step, __global const STORAGE(T) *c,
                                idx_t c_at, idx_t c_step, VECTOR sum, SCALAR alpha, SCALAR beta, bool has_c, int begin,
                                int end, idx_t m, idx_t n CHAIN_ARGUMENTS)
{
#if V > 1
    const bool vectors = STAGES > 0 || (step == 1 && (!has_c || c_step == 0 || c_step == 1));
    if (vectors && begin <= 0 && end >= W) {
        VALUE_OF(load_addend(c, c_at, c_step, W));
        FOR_OPERANDS(AT)
        LOAD_OPERANDS
        CHAIN
        STOREV(T, W, dst, at, CHAIN_RESULT);
        return;
    }
#ifdef PANELS
    if (vectors) {
        VALUE_OF(load_addend(c, c_at, c_step, end));
        FOR_OPERANDS(AT)
        LOAD_OPERANDS_PART(end)
        CHAIN
        STORE_FIRST(T, W, dst, at, CHAIN_RESULT, end);
        return;
    }
#elif STAGES > 0
    VALUE_OF(load_addend(c, c_at, c_step, W));
    FOR_OPERANDS(AT)
    LOAD_OPERANDS
    CHAIN
    STORE_LANES(T, W, dst, at, CHAIN_RESULT, begin, W);
#endif
#endif
#if V == 1 || STAGES == 0
    VALUE lanes[W];
    PASTE2_(vstore, W)(sum, 0, lanes);
    for (int i = max(begin, 0); i < min(end, W); i++)
        store_element(dst, at + i * step, c, c_at + i * c_step, lanes[i], alpha, beta, has_c, m,
                      n + i PASS_BASES);
#endif
}

__kernel void gemm(GEMM_ARGUMENTS)
{
    FIND_GRID;
    const idx_t column_wish = grid_column * (W * NB);
    if (grid_row * R >= size.s0 || column_wish >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    FIND_ROWS;
#ifdef PANELS
    const idx_t column = column_wish;
    b += grid_column * stride.s3;
#else
    const idx_t column = min(column_wish, size.s1 - W * NB);
    b += column;
#endif

    VECTOR sum[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
    idx_t a_at = 0;
    for (idx_t k = 0; k < size.s2; k++) {
        VECTOR y[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            y[j] = LOADV(T_B, W, b, j * W);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const VECTOR x = (VECTOR)(LOAD(T_A, rows[r], a_at));
#pragma unroll
            for (int j = 0; j < NB; j++)
                sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);
        }
        a_at += stride.s1;
        b += stride.s2;
    }

    COPY_SUMS;
    for (int r = begin; r < R && first + r < size.s0; r++)
        for (int j = 0; j < NB; j++) {
            const idx_t m = first + r, n = column + j * W;
            if (n >= size.s1)
                break;
            store_vector(dst, dst_offset + m * stride.s6 + n * stride.s7, stride.s7, c,
                         c_offset + m * stride.s4 + n * stride.s5, stride.s5, sums[r * NB + j], alpha, beta, flags.x,
                         (int)(column_wish - n), (int)min((idx_t)W, size.s1 - n), m, n PASS_CHAIN);
        }
}
#endif

#if KIND == DOT
static inline VALUE sum_of_lanes(VECTOR v)
{
#if W == 16
    const PASTE2_(VALUE, 8) v8 = v.lo + v.hi;
#elif W == 8
    const PASTE2_(VALUE, 8) v8 = v;
#endif
#if W == 4
    const PASTE2_(VALUE, 4) v4 = v;
#else
    const PASTE2_(VALUE, 4) v4 = v8.lo + v8.hi;
#endif
    return dot(v4, (PASTE2_(VALUE, 4))(1));
}

__kernel void gemm(GEMM_ARGUMENTS)
{
    FIND_GRID;
    const idx_t column = grid_column * NB;
    if (grid_row * R >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    FIND_ROWS;
    __global const STORAGE(T) *columns[NB];
    for (int j = 0; j < NB; j++)
        columns[j] = b + min(column + j, size.s1 - 1) * stride.s3;

    VECTOR sum[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
    idx_t k = 0;
    for (; k + W <= size.s2; k += W) {
        VECTOR y[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            y[j] = LOADV(T, W, columns[j], k);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const VECTOR x = LOADV(T, W, rows[r], k);
#pragma unroll
            for (int j = 0; j < NB; j++)
                sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);
        }
    }

    COPY_SUMS;
    for (int r = begin; r < R && first + r < size.s0; r++)
        for (int j = 0; j < NB && column + j < size.s1; j++) {
            const idx_t m = first + r, n = column + j;
            VALUE value = sum_of_lanes(sums[r * NB + j]);
            for (idx_t rest = k; rest < size.s2; rest++)
                value = fma(LOAD(T, a, m * stride.s0 + rest), LOAD(T, b, n * stride.s3 + rest), value);
            store_element(dst, dst_offset + m * stride.s6 + n * stride.s7, c, c_offset + m * stride.s4 + n * stride.s5,
                          value, alpha, beta, flags.x, m, n PASS_CHAIN);
        }
}
#endif
