// SPDX-License-Identifier: Apache-2.0
// Where along an axis the largest or smallest element is: an I64. The first NaN is found before any number.
//
// Defines:
//   T         type of src
//   LARGEST   1 or 0
//
// Of equal elements the first is found, or with `last` the last.
//
// Entry points:
//   arg_items    a work-item for each line
//   arg_groups   a work-group of GROUP work-items for each line
// check: -DT=F32 -DLARGEST=1
// check: -DT=F16 -DLARGEST=0
// check: -DT=U64 -DLARGEST=0 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(LARGEST)
#error "arg.cl needs T and LARGEST"
#endif
#include "group.clh"
#if IS_FLOAT(T)
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif
#if LARGEST
#define IS_BEYOND(a, b) ((a) > (b))
#else
#define IS_BEYOND(a, b) ((a) < (b))
#endif
#define IS_AHEAD(a, b) (IS_BEYOND(a, b) || (IS_NAN(a) && !IS_NAN(b)))

typedef COMPUTE(T) value_t;

#define ARGUMENTS                                                                                                      \
    __global long *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,                \
        const idx_t lines, const int deep, const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride,       \
        const idx_t length, const idx_t stride, const int last

// Without branches on `last`: Mesa's compiler goes wrong with an argument in those.
static inline int is_better(const value_t a, const idx_t at_a, const value_t b, const idx_t at_b, const int last)
{
    const int ahead = IS_AHEAD(a, b), behind = IS_AHEAD(b, a);
    const int earlier = at_a < at_b, later = at_a > at_b;
    return ahead | ((behind == 0) & ((earlier & (last == 0)) | (later & (last != 0))));
}

__kernel void arg_items(ARGUMENTS)
{
    const idx_t line = (idx_t)get_global_id(0);
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);
    if (line >= lines)
        return;
    value_t best = LOAD(T, src, from);
    idx_t place = 0;
    for (idx_t i = 1; i < length; ++i) {
        const value_t x = LOAD(T, src, from + i * stride);
        const int take = is_better(x, i, best, place, last);
        best = take ? x : best;
        place = take ? i : place;
    }
    dst[to] = (long)place;
}

__kernel void arg_groups(ARGUMENTS)
{
    __local value_t values[GROUP];
    __local idx_t places[GROUP];
    const idx_t line = (idx_t)get_group_id(0);
    const int lane = (int)get_local_id(0);
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);
    if (line >= lines)
        return;
    value_t best = LOAD(T, src, from); // lines have an element for each work-item at least; lane 0 counts this one
    idx_t place = 0;
    for (idx_t i = lane; i < length; i += GROUP) {
        const value_t x = LOAD(T, src, from + i * stride);
        const int take = is_better(x, i, best, place, last);
        best = take ? x : best;
        place = take ? i : place;
    }
    values[lane] = best;
    places[lane] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
        const int other = lane + half_group;
        if (lane < half_group && is_better(values[other], places[other], values[lane], places[lane], last)) {
            values[lane] = values[other];
            places[lane] = places[other];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        dst[to] = (long)places[0];
}
