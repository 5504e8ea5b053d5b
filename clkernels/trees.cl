// SPDX-License-Identifier: Apache-2.0
// An ensemble of decision trees: each leads a row's features to a leaf, whose weights go to targets.
//
// Defines:
//   T         type of features, thresholds, weights and dst: F32 or F64
//   INDEX64, USE_F64  see common.clh
// check: -DT=F32
// check: -DT=F64 -DUSE_F64 -DINDEX64
#include "common.clh"
#ifndef T
#error "trees.cl needs T"
#endif
typedef COMPUTE(T) value_t;

enum { AVERAGE, SUM, LEAST, MOST };
#define NODE 6 // ints of a node: mode, feature, where to go when it holds and when not, first member, members
#define MISSING_HOLDS 256 // bit of a mode

static inline bool is_member(const value_t x, __global const STORAGE(T) *members, const int count)
{
    for (int i = 0; i < count; i++)
        if (x == LOAD(T, members, i))
            return true;
    return false;
}

static inline bool holds(const int mode, const value_t x, const value_t split, __global const STORAGE(T) *members,
                         const int count)
{
    switch (mode) {
    case 0:
        return x <= split;
    case 1:
        return x < split;
    case 2:
        return x >= split;
    case 3:
        return x > split;
    case 4:
        return x == split;
    case 5:
        return x != split;
    default:
        return is_member(x, members, count);
    }
}

// The first weight takes the place of a NaN.
static inline value_t combined(const int aggregate, const value_t before, const value_t weight)
{
    if (before != before)
        return weight;
    if (aggregate == LEAST)
        return weight < before ? weight : before;
    if (aggregate == MOST)
        return weight > before ? weight : before;
    return before + weight;
}

// Roots and children are nodes, or, below 0, -1 - a leaf; the leaf's weights are those from begins[leaf] on. sizes: (rows,
// trees, nodes, targets). dst and src: strides of rows and columns.
__kernel void trees(__global STORAGE(T) *dst, const idx_t dst_offset, const idx2_t dst_stride,
                    __global const STORAGE(T) *src, const idx_t src_offset, const idx2_t src_stride,
                    __global const int *nodes, const idx_t nodes_offset, __global const STORAGE(T) *splits,
                    const idx_t splits_offset, __global const STORAGE(T) *members, const idx_t members_offset,
                    __global const int *roots, const idx_t roots_offset, __global const int *begins,
                    const idx_t begins_offset, __global const int *targets, const idx_t targets_offset,
                    __global const STORAGE(T) *weights, const idx_t weights_offset, const idx4_t sizes,
                    const int aggregate, const float nothing)
{
    const idx_t row = (idx_t)get_global_id(0);
    if (row >= sizes.s0)
        return;
    const idx_t to = dst_offset + row * dst_stride.s0, from = src_offset + row * src_stride.s0;
    for (idx_t i = 0; i < sizes.s3; i++)
        STORE(T, dst, to + i * dst_stride.s1, (value_t)NAN);
    for (idx_t tree = 0; tree < sizes.s1; tree++) {
        int at = roots[roots_offset + tree];
        for (idx_t step = 0; at >= 0 && step < sizes.s2; step++) { // never more than there are: nodes may form a ring
            __global const int *node = nodes + nodes_offset + (idx_t)at * NODE;
            const value_t x = LOAD(T, src, from + (idx_t)node[1] * src_stride.s1);
            const bool missing = x != x && (node[0] & MISSING_HOLDS) != 0;
            const bool goes = missing || holds(node[0] & 255, x, LOAD(T, splits, splits_offset + at),
                                               members + members_offset + node[4], node[5]);
            at = goes ? node[2] : node[3];
        }
        if (at >= 0)
            continue;
        const int leaf = -1 - at, end = begins[begins_offset + leaf + 1];
        for (int i = begins[begins_offset + leaf]; i < end; i++) {
            const idx_t target = to + (idx_t)targets[targets_offset + i] * dst_stride.s1;
            STORE(T, dst, target, combined(aggregate, LOAD(T, dst, target), LOAD(T, weights, weights_offset + i)));
        }
    }
    for (idx_t i = 0; i < sizes.s3; i++) {
        const value_t sum = LOAD(T, dst, to + i * dst_stride.s1);
        const value_t result = aggregate == AVERAGE ? sum / (value_t)sizes.s1 : sum;
        STORE(T, dst, to + i * dst_stride.s1, sum != sum ? (value_t)nothing : result);
    }
}
