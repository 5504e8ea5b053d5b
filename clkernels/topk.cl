// SPDX-License-Identifier: Apache-2.0
// The `count` largest or smallest elements of each line, in order, and their places (I64). Of equal elements the one that
// comes first is first; NaN is above all numbers.
//
// Defines:
//   T         type of src and values
//   LARGEST   1 or 0
//
// Entry points:
//   topk_items    a work-item for each line: a heap in the results' memory, whose root is the last of those kept
//   topk_groups   a work-group of GROUP work-items for each line finds one element after the other
// check: -DT=F32 -DLARGEST=1
// check: -DT=F16 -DLARGEST=0 -DINDEX64
// check: -DT=I64 -DLARGEST=1
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(LARGEST)
#error "topk.cl needs T and LARGEST"
#endif
#include "group.clh"
#if IS_FLOAT(T)
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif
#if LARGEST
#define IS_AHEAD(a, b) ((a) > (b) || (IS_NAN(a) && !IS_NAN(b)))
#else
#define IS_AHEAD(a, b) ((a) < (b) || (IS_NAN(b) && !IS_NAN(a)))
#endif

typedef COMPUTE(T) value_t;

#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *values, const idx_t values_offset, __global long *places, const idx_t places_offset,          \
        __global const STORAGE(T) *src, const idx_t src_offset, const idx_t lines, const int deep, const idx8_t shape, \
        const idx8_t values_stride, const idx8_t places_stride, const idx8_t src_stride, const idx_t length,           \
        const idx_t count, const idx_t value_step, const idx_t place_step, const idx_t src_step
#define FIND_LINE(number)                                                                                              \
    const idx_t line = (idx_t)(number);                                                                                \
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);                                      \
    const idx_t to = values_offset + element_index(line, deep, shape, values_stride);                                  \
    const idx_t place_to = places_offset + element_index(line, deep, shape, places_stride);                            \
    if (line >= lines)                                                                                                 \
        return;

static inline bool comes_first(const value_t a, const long at_a, const value_t b, const long at_b)
{
    return IS_AHEAD(a, b) || (!IS_AHEAD(b, a) && at_a < at_b);
}

#define VALUE(i) LOAD(T, values, to + (i) * value_step)
#define PLACE(i) places[place_to + (i) * place_step]
#define SET(i, x, at)                                                                                                  \
    {                                                                                                                  \
        STORE(T, values, to + (i) * value_step, x);                                                                    \
        PLACE(i) = at;                                                                                                 \
    }

// Puts (x, at) at the root of the first `size` elements and lets it sink below those that come after it.
static void sink(__global STORAGE(T) *values, const idx_t to, const idx_t value_step, __global long *places,
                 const idx_t place_to, const idx_t place_step, const idx_t root, const idx_t size, const value_t x,
                 const long at)
{
    idx_t hole = root;
    while (2 * hole + 1 < size) {
        idx_t child = 2 * hole + 1;
        if (child + 1 < size && comes_first(VALUE(child), PLACE(child), VALUE(child + 1), PLACE(child + 1)))
            ++child;
        if (!comes_first(x, at, VALUE(child), PLACE(child)))
            break;
        SET(hole, VALUE(child), PLACE(child))
        hole = child;
    }
    SET(hole, x, at)
}
#define SINK(root, size, x, at) sink(values, to, value_step, places, place_to, place_step, root, size, x, at);

__kernel void topk_items(ARGUMENTS)
{
    FIND_LINE(get_global_id(0))
    for (idx_t i = 0; i < count; ++i)
        SET(i, LOAD(T, src, from + i * src_step), (long)i)
    for (idx_t i = count / 2; i > 0; --i) {
        const value_t x = VALUE(i - 1);
        const long at = PLACE(i - 1);
        SINK(i - 1, count, x, at)
    }
    value_t last = VALUE(0);
    for (idx_t i = count; i < length; ++i) {
        const value_t x = LOAD(T, src, from + i * src_step);
        if (IS_AHEAD(x, last)) {
            SINK(0, count, x, (long)i)
            last = VALUE(0);
        }
    }
    for (idx_t i = count - 1; i > 0; --i) { // the last of those left goes behind them
        const value_t x = VALUE(i), root = VALUE(0);
        const long at = PLACE(i), root_at = PLACE(0);
        SET(i, root, root_at)
        SINK(0, i, x, at)
    }
}

__kernel void topk_groups(ARGUMENTS)
{
    __local value_t best[GROUP];
    __local idx_t where[GROUP]; // -1: none
    const int lane = (int)get_local_id(0);
    FIND_LINE(get_group_id(0))
    value_t last = 0;
    idx_t last_at = -1;
    for (idx_t found = 0; found < count; ++found) {
        value_t own = 0;
        idx_t own_at = -1;
        for (idx_t i = lane; i < length; i += GROUP) {
            const value_t x = LOAD(T, src, from + i * src_step);
            const bool is_left = last_at < 0 || comes_first(last, last_at, x, i);
            if (is_left && (own_at < 0 || IS_AHEAD(x, own))) {
                own = x;
                own_at = i;
            }
        }
        best[lane] = own;
        where[lane] = own_at;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
            const int other = lane + half_group;
            if (lane < half_group && where[other] >= 0 &&
                (where[lane] < 0 || comes_first(best[other], where[other], best[lane], where[lane]))) {
                best[lane] = best[other];
                where[lane] = where[other];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        last = best[0];
        last_at = where[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0)
            SET(found, last, (long)last_at)
    }
}
