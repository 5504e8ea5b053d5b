// SPDX-License-Identifier: Apache-2.0
// Linear attention: a state of keys x values for each head, that each token changes and reads.
//
// Defines:
//   T         type of queries, keys, values, decay, beta and dst: F32, F16, BF16. The state is F32
//   V         values that a work-item takes through all tokens: 1, 4, 8 or 16; divides a head's values
//   INDEX64   see common.clh
// check: -DT=F32 -DV=16
// check: -DT=F16 -DV=1 -DINDEX64
// check: -DT=BF16 -DV=4
#include "common.clh"
#include "math.clh"
#if !defined(T) || !defined(V)
#error "linear_attention.cl needs T and V"
#endif
#if V > 1
typedef PASTE2_(float, V) value_t;
#define VALUES(T, p, i) LOADV(T, V, p, i)
#define SET_VALUES(T, p, i, v) STOREV(T, V, p, i, v)
#else
typedef float value_t;
#define VALUES(T, p, i) LOAD(T, p, i)
#define SET_VALUES(T, p, i, v) STORE(T, p, i, v)
#endif

#define HAS_DECAY 1
#define HAS_BETA 2
#define DECAY_OF_KEYS 4 // one for each element of a key, not for each head
#define BETA_OF_HEADS 8 // one for each head, not for each token

// All but dst is dense: queries [B, tokens, query heads, keys], keys and values [B, tokens, heads, …], state [B, heads, keys,
// values]. sizes: (B, tokens, query heads, heads, keys, values). dst [B, tokens, query heads x values] has strides.
__kernel void linear_attention(__global STORAGE(T) *dst, const idx_t dst_offset, const idx2_t dst_stride,
                               __global const STORAGE(T) *query, const idx_t query_offset,
                               __global const STORAGE(T) *key, const idx_t key_offset,
                               __global const STORAGE(T) *value, const idx_t value_offset,
                               __global const STORAGE(T) *decay, const idx_t decay_offset,
                               __global const STORAGE(T) *beta, const idx_t beta_offset, __global float *state,
                               const idx_t state_offset, const idx8_t sizes, const int flags, const float scale)
{
    const idx_t j = (idx_t)get_global_id(0) * V, head = (idx_t)get_global_id(1), b = (idx_t)get_global_id(2);
    const idx_t tokens = sizes.s1, heads = sizes.s3, keys = sizes.s4, values = sizes.s5, readers = sizes.s2 / heads;
    if (j >= values || head >= heads || b >= sizes.s0)
        return;
    __global float *own = state + state_offset + (b * heads + head) * keys * values + j;
    for (idx_t t = 0; t < tokens; t++) {
        const idx_t token = b * tokens + t, at = token * heads + head;
        const idx_t k = key_offset + at * keys, q = query_offset + (token * heads + head) * readers * keys;
        const idx_t to = dst_offset + b * dst_stride.s0 + t * dst_stride.s1 + head * readers * values + j;
        const idx_t g = decay_offset + (flags & DECAY_OF_KEYS ? at * keys : at);
        const float all_keep = (flags & (HAS_DECAY | DECAY_OF_KEYS)) == HAS_DECAY ? FAST_EXP1(LOAD(T, decay, g)) : 1.0f;
        value_t written = VALUES(T, value, value_offset + at * values + j), result = (value_t)(0.0f);
        if (flags & HAS_DECAY)
            for (idx_t d = 0; d < keys; d++) {
                const float keep = flags & DECAY_OF_KEYS ? FAST_EXP1(LOAD(T, decay, g + d)) : all_keep;
                SET_VALUES(F32, own, d * values, VALUES(F32, own, d * values) * keep);
            }
        if (flags & HAS_BETA) {
            value_t found = (value_t)(0.0f);
            for (idx_t d = 0; d < keys; d++)
                found = fma((value_t)(LOAD(T, key, k + d)), VALUES(F32, own, d * values), found);
            written = (written - found) * LOAD(T, beta, beta_offset + (flags & BETA_OF_HEADS ? at : token));
        }
        for (idx_t d = 0; d < keys; d++) {
            const value_t now = fma((value_t)(LOAD(T, key, k + d)), written, VALUES(F32, own, d * values));
            SET_VALUES(F32, own, d * values, now);
            result = fma((value_t)(LOAD(T, query, q + d)), now, result);
        }
        SET_VALUES(T, dst, to, result * scale);
        for (idx_t reader = 1; reader < readers; reader++) {
            result = (value_t)(0.0f);
            for (idx_t d = 0; d < keys; d++)
                result = fma((value_t)(LOAD(T, query, q + reader * keys + d)), VALUES(F32, own, d * values), result);
            SET_VALUES(T, dst, to + reader * values, result * scale);
        }
    }
}
