// SPDX-License-Identifier: Apache-2.0
// softmax(scale * query * key^T + bias) * value for CPUs; scores stay in private memory, times log2(e). A work-item, which is
// a work-group, takes NB vectors of W queries of one head: a lane is a query. So softmax runs along vectors, lane by lane,
// keys and values are read where they lie, one number at a time for all lanes, and only queries and results are turned.
// Keys are taken KEYS at a time; what was summed so far is scaled when a higher score appears.
//
// Defines:
//   D, E      elements of a query and key; of a value
//   W         floats of a vector: 4, 8 or 16
//   NB        vectors of queries: 1 or 2
//   R         elements of a value that are summed side by side in registers
//   KEY_ROWS  the same of keys
//   KEYS      a multiple of KEY_ROWS
//   BIAS      0: none; 1: the same for all queries of a head; 2: any
//   PAIRS     factors are rounded to bfloat16 and multiplied in pairs: of elements, and of keys. MODEL: see bf16_pairs.clh
//   TILES     with PAIRS: the products by matrix tiles; MODEL: see amx.clh, too
//   INDEX64   see common.clh
// check: -DD=32 -DE=32 -DW=16 -DNB=2 -DR=8 -DKEY_ROWS=8 -DKEYS=64 -DBIAS=1
// check: -DD=20 -DE=7 -DW=8 -DNB=1 -DR=4 -DKEY_ROWS=6 -DKEYS=66 -DBIAS=2 -DINDEX64
// check: -DD=32 -DE=32 -DW=16 -DNB=2 -DR=8 -DKEY_ROWS=8 -DKEYS=64 -DBIAS=1 -DPAIRS -DMODEL
// check: -DD=5 -DE=7 -DW=8 -DNB=2 -DR=4 -DKEY_ROWS=4 -DKEYS=64 -DBIAS=0 -DPAIRS -DMODEL
// check: -DD=32 -DE=32 -DW=16 -DNB=2 -DR=8 -DKEY_ROWS=8 -DKEYS=64 -DBIAS=1 -DPAIRS -DTILES -DMODEL
// check: -DD=37 -DE=50 -DW=16 -DNB=1 -DR=8 -DKEY_ROWS=8 -DKEYS=64 -DBIAS=2 -DPAIRS -DTILES -DMODEL
// check: -DD=3 -DE=64 -DW=4 -DNB=2 -DR=4 -DKEY_ROWS=4 -DKEYS=32 -DBIAS=0
#include "common.clh"
#define V W
#define T F32
#include "vectors.clh"
#define MATH_WIDTH W
#include "math.clh"
#if !defined(D) || !defined(E) || !defined(NB) || !defined(R) || !defined(KEY_ROWS) || !defined(KEYS) || !defined(BIAS)
#error "attention.cl needs D, E, W, NB, R, KEY_ROWS, KEYS and BIAS"
#endif
#define UNROLL _Pragma("unroll")
#define LOG2_E 1.44269504f
// Of the NB vectors that there is room for, nb are there, which the compiler knows where all is one function.
#define FOR_VECTORS UNROLL for (int j = 0; j < NB; j++) if (j < nb)
#define E_TILES ((E + R - 1) / R)
#define LINES __attribute__((aligned(64))) // of memory

typedef struct matrix {
    __global const float *data;
    idx_t step; // of its rows
} matrix;

// What is multiplied: the numbers themselves, as they lie, or pairs of them in a work-item's own memory.
#ifdef PAIRS
#include "attention_pairs.clh"
#else
typedef value_t factor_t;
typedef __global const float *factors_at;
typedef matrix factors;
#define SIZE D
#define QUERY_FACTOR(turned, d) turned[d]
#define MULTIPLY(sum, x, y) sum = fma(x, y, sum)
#endif

// Row i of a square of W vectors becomes lane i. Each round interleaves the first half of the rows with the second;
// log2(W) rounds turn all.
static inline void turn(value_t v[W])
{
    value_t next[W];
    UNROLL for (int round = 1; round < W; round *= 2)
    {
        UNROLL for (int i = 0; i < W / 2; i++)
        {
            next[2 * i].even = v[i].lo;
            next[2 * i].odd = v[i + W / 2].lo;
            next[2 * i + 1].even = v[i].hi;
            next[2 * i + 1].odd = v[i + W / 2].hi;
        }
        UNROLL for (int i = 0; i < W; i++) v[i] = next[i];
    }
}

// Element d of W rows' queries, scaled, is turned[d].
static inline void turn_queries(__global const float *q, const idx_t step, const idx_t last,
                                const float scale, value_t *turned)
{
    int d = 0;
    for (; d + W <= D; d += W) {
        value_t v[W];
        UNROLL for (int i = 0; i < W; i++) v[i] = PASTE2_(vload, W)(0, q + min((idx_t)i, last) * step + d) * scale;
        turn(v);
        UNROLL for (int i = 0; i < W; i++) turned[d + i] = v[i];
    }
    for (; d < D; d++) {
        float lanes[W];
        for (int i = 0; i < W; i++)
            lanes[i] = q[min((idx_t)i, last) * step + d] * scale;
        turned[d] = PASTE2_(vload, W)(0, lanes);
    }
}

typedef struct mask {
    __global const float *data;
    idx_t query_step, key_step;
    idx_t start[NB], last[NB]; // of a vector's queries: the first one's number, and how many follow
} mask;

#if BIAS == 2
static inline value_t bias_of(__global const float *bias, const idx_t step, const idx_t last)
{
    float lanes[W];
    UNROLL for (int i = 0; i < W; i++) lanes[i] = bias[min((idx_t)i, last) * step];
    return PASTE2_(vload, W)(0, lanes);
}
#endif

#if BIAS == 1
#define ADD_BIAS(s, more, j) fma(VALUE((more)[0]), VALUE(LOG2_E), s)
#elif BIAS == 2
#define ADD_BIAS(s, more, j)                                                                                           \
    fma(bias_of((more) + bias->start[j] * bias->query_step, bias->query_step, bias->last[j]), VALUE(LOG2_E), s)
#else
#define ADD_BIAS(s, more, j) (s)
#endif

#ifdef TILES
#include "attention_tiles.clh"
#define RESULTS (E_ROWS * NB)
#else
#define TILES_BEGIN(rows, bytes)
#define TILES_END
#define TILES_PARAMETER
#define PASS_TILES
#define RESULTS (E_TILES * R * NB)

// Scores of `count` keys, KEY_ROWS rows more or less; the highest of each query, NaN left out.
INLINE void score(const int nb, const factor_t *turned, const factors k, const int count, const mask *bias,
                  value_t *scores, value_t highest[NB])
{
    for (int first = 0; first < count; first += KEY_ROWS) {
        factors_at key[KEY_ROWS];
        value_t sum[KEY_ROWS * NB];
        UNROLL for (int r = 0; r < KEY_ROWS; r++) key[r] = k.data + min(first + r, count - 1) * k.step;
        UNROLL for (int i = 0; i < KEY_ROWS * NB; i++) sum[i] = 0;
        for (int d = 0; d < SIZE; d++) {
            factor_t y[NB];
            FOR_VECTORS y[j] = turned[d * NB + j];
            UNROLL for (int r = 0; r < KEY_ROWS; r++)
            {
                const factor_t x = (factor_t)(key[r][d]);
                FOR_VECTORS MULTIPLY(sum[r * NB + j], x, y[j]);
            }
        }
        UNROLL for (int r = 0; r < KEY_ROWS; r++)
        {
            FOR_VECTORS
            {
                const value_t s = ADD_BIAS(sum[r * NB + j], bias->data + min(first + r, count - 1) * bias->key_step, j);
                scores[(first + r) * NB + j] = s;
                highest[j] = s > highest[j] ? s : highest[j];
            }
        }
    }
}

INLINE void add_values(const int nb, const factor_t *shares, const factors v, const int count, value_t *result)
{
    for (int tile = 0; tile < E_TILES; tile++) {
        factors_at value = v.data;
        value_t sum[R * NB];
        UNROLL for (int i = 0; i < R * NB; i++) sum[i] = result[tile * R * NB + i];
        for (int k = 0; k < count; k++) {
            factor_t y[NB];
            FOR_VECTORS y[j] = shares[k * NB + j];
            UNROLL for (int r = 0; r < R; r++)
            {
                const factor_t x = (factor_t)(value[E % R ? min(tile * R + r, E - 1) : tile * R + r]);
                FOR_VECTORS MULTIPLY(sum[r * NB + j], x, y[j]);
            }
            value += v.step;
        }
        UNROLL for (int i = 0; i < R * NB; i++) result[tile * R * NB + i] = sum[i];
    }
}
#endif

#ifndef PAIRS
// Scores become their powers of two; their sums.
INLINE void weigh(const int nb, value_t *scores, const int count, const value_t highest[NB], value_t total[NB])
{
    FOR_VECTORS total[j] = 0;
    for (int k = 0; k < count; k++)
        FOR_VECTORS
        {
            const value_t e = FAST_EXP2_DOWN(scores[k * NB + j] - highest[j]);
            scores[k * NB + j] = e;
            total[j] += e;
        }
}
#endif

// Element e of W rows is result[e * NB]; rows up to `last` exist.
static inline void store_rows(const value_t *result, __global float *dst, const idx_t step, const idx_t last)
{
    int e = 0;
    for (; e + W <= E; e += W) {
        value_t v[W];
        UNROLL for (int i = 0; i < W; i++) v[i] = result[(e + i) * NB];
        turn(v);
        for (int i = 0; i < W && i <= last; i++)
            PASTE2_(vstore, W)(v[i], 0, dst + i * step + e);
    }
    for (; e < E; e++) {
        float lanes[W];
        PASTE2_(vstore, W)(result[e * NB], 0, lanes);
        for (int i = 0; i < W; i++)
            if (i <= last)
                dst[i * step + e] = lanes[i];
    }
}

// `count` keys more: what was summed so far shrinks when the highest score grows.
INLINE void add_block(const int nb, const factor_t *turned, const matrix keys, const matrix values,
                      const int count, const mask *bias, const bool first, value_t highest[NB],
                      value_t total[NB], value_t *result TILES_PARAMETER)
{
    value_t scores[KEYS * NB], now[NB], sum[NB], safe[NB];
    FOR_VECTORS now[j] = highest[j];
#ifdef PAIRS
    uint own_keys[KEYS * SIZE] LINES;
#ifdef TILES
    score_tiles(nb, turned, pack_keys(keys, count, own_keys), count, bias, scores, now PASS_TILES);
#else
    score(nb, turned, pack_keys(keys, count, own_keys), count, bias, scores, now);
#endif
#else
    score(nb, turned, keys, count, bias, scores, now);
#endif
    FOR_VECTORS safe[j] = now[j] == -INFINITY ? VALUE(0.0f) : now[j];
#ifdef PAIRS
    factor_t shares[KEYS / 2 * NB];
    weigh_pairs(nb, scores, count, safe, sum, shares);
#else
    weigh(nb, scores, count, safe, sum);
#endif
    FOR_VECTORS
    {
        const value_t factor = FAST_EXP2_DOWN(highest[j] - safe[j]);
        total[j] = fma(total[j], factor, sum[j]);
        highest[j] = now[j];
        for (int e = first ? E : 0; e < E; e++)
            result[e * NB + j] *= factor;
    }
#ifdef TILES
    ushort own_values[E_ROWS * KEYS] LINES;
    turn_values(values, count, own_values);
    add_tiles(nb, shares, own_values, count, result PASS_TILES);
#elif defined(PAIRS)
    uint own_values[KEYS / 2 * E];
    add_values(nb, shares, pack_values(values, count, own_values), (count + 1) / 2, result);
#else
    add_values(nb, scores, values, count, result);
#endif
}

// nb vectors of queries from `first` on; strides of rows are those of dst and query.
INLINE void attend(const int nb, const idx_t first, const idx4_t sizes, __global float *dst,
                   const idx_t dst_step, __global const float *query, const idx_t query_step, const matrix keys,
                   const matrix values, mask *bias, const float scale TILES_PARAMETER)
{
    value_t elements[D], result[RESULTS], highest[NB], total[NB];
    factor_t turned[SIZE * NB];
    __global const float *bias_data = bias->data;
    FOR_VECTORS
    {
        // Vectors behind the last query repeat it.
        const idx_t from = min(first + j * W, sizes.s0 - 1);
        bias->start[j] = from;
        bias->last[j] = sizes.s0 - 1 - from;
        highest[j] = -INFINITY;
        total[j] = 0;
    }
    for (int j = 0; j < nb; j++) {
        const idx_t from = min(first + j * W, sizes.s0 - 1);
        turn_queries(query + from * query_step, query_step, sizes.s0 - 1 - from, scale, elements);
        for (int d = 0; d < SIZE; d++)
            turned[d * NB + j] = QUERY_FACTOR(elements, d);
    }
    for (int i = 0; i < RESULTS; i++)
        result[i] = 0;
    for (idx_t k = 0; k < sizes.s1; k += KEYS) {
        const matrix some_keys = {keys.data + k * keys.step, keys.step};
        const matrix some_values = {values.data + k * values.step, values.step};
        bias->data = bias_data + k * bias->key_step;
        add_block(nb, turned, some_keys, some_values, (int)min((idx_t)KEYS, sizes.s1 - k), bias, k == 0, highest, total,
                  result PASS_TILES);
    }
    FOR_VECTORS
    {
        total[j] = 1.0f / total[j];
        if (sizes.s3)
            total[j] = highest[j] == -INFINITY ? VALUE(0.0f) : total[j];
        for (int e = 0; e < E; e++)
            result[e * NB + j] *= total[j];
    }
    for (int j = 0; j < nb && first + j * W < sizes.s0; j++) {
        const idx_t row = first + j * W;
        store_rows(result + j, dst + row * dst_step, dst_step, sizes.s0 - 1 - row);
    }
}

// Strides of batches, heads and rows; a head's elements are neighbours. sizes: (queries, keys, query heads for each head of
// keys, 1 where a query without any key gives 0 instead of NaN). The first of a head's work-items takes what is left over: a
// driver may give half of all work-items to one thread at once.
#define ATTENTION_ARGUMENTS                                                                                            \
    __global float *dst, __global const float *query, __global const float *key, __global const float *value,          \
        const idx4_t offsets, const idx16_t strides, __global const float *bias, const idx_t bias_offset,              \
        const idx4_t bias_strides, const idx4_t sizes, const float scale
WORK attend_group(ATTENTION_ARGUMENTS, const idx_t group, const idx_t head, const idx_t b)
{
    const idx_t vectors = (sizes.s0 + W - 1) / W, end = vectors - ((vectors - 1) / NB - group) * NB;
    const idx_t owner = head / sizes.s2, first = max((idx_t)0, end - NB);
    const matrix keys = {key + offsets.s2 + b * strides.s6 + owner * strides.s7, strides.s8};
    const matrix values = {value + offsets.s3 + b * strides.s9 + owner * strides.sa, strides.sb};
    mask more = {bias + bias_offset + b * bias_strides.s0 + head * bias_strides.s1, bias_strides.s2, bias_strides.s3};
    dst += offsets.s0 + b * strides.s0 + head * strides.s1;
    query += offsets.s1 + b * strides.s3 + head * strides.s4;
#define ATTEND(nb)                                                                                                     \
    attend(nb, first * W, sizes, dst, strides.s2, query, strides.s5, keys, values, &more, scale * LOG2_E PASS_TILES)
    TILES_BEGIN(16, TILE_ROW_BYTES)
#if NB > 1
    if (end - first < NB)
        ATTEND(1);
    else
#endif
        ATTEND(NB);
    TILES_END
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention(ATTENTION_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    attend_group(dst, query, key, value, offsets, strides, bias, bias_offset, bias_strides, sizes, scale,
                 (idx_t)get_global_id(0), (idx_t)get_global_id(1), (idx_t)get_global_id(2));
    TEAM_LEAVE
}
