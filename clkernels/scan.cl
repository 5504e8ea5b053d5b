// SPDX-License-Identifier: Apache-2.0
// Sums or products of each line's elements up to each element.
//
// Defines:
//   T         type of src and dst
//   PRODUCT   1: products, 0: sums
//
// Entry points:
//   scan_items    a work-item for each line
//   scan_groups   a work-group of GROUP work-items for each line, of which each takes a part
//
// Halves are summed in float, and sums of floats keep what rounding loses; integers wrap.
// check: -DT=F32 -DPRODUCT=0
// check: -DT=F16 -DPRODUCT=1
// check: -DT=I64 -DPRODUCT=0 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(PRODUCT)
#error "scan.cl needs T and PRODUCT"
#endif
#include "group.clh"

#if IS_FLOAT(T)
typedef COMPUTE(T) total_t;
#else
typedef ulong total_t; // every type's wrapped result is this one's lower bits
#endif

#if PRODUCT
#define NEUTRAL 1
#define COMBINE(total, lost, x) total *= x;
#elif IS_FLOAT(T)
#define NEUTRAL 0
#define COMBINE(total, lost, x)                                                                                        \
    {                                                                                                                  \
        const total_t more = (x) - lost, next = total + more, rounding = (next - total) - more;                        \
        lost = rounding - rounding == 0 ? rounding : 0;                                                                \
        total = next;                                                                                                  \
    }
#else
#define NEUTRAL 0
#define COMBINE(total, lost, x) total += x;
#endif

// exclusive: an element's own value comes after its result.
#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx_t lines, const int deep, const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride,       \
        const idx_t length, const idx_t dst_step, const idx_t src_step, const int exclusive
// One more element, at place i, when `inside`. Arguments are used outside of branches that work-items take each its own
// way: Mesa's compiler takes those for one way of all.
#define STEP(i, inside, writes)                                                                                        \
    {                                                                                                                  \
        const idx_t place = min((idx_t)(i), length - 1), target = to + place * dst_step;                               \
        const total_t loaded = (total_t)LOAD(T, src, from + place * src_step), x = (inside) ? loaded : NEUTRAL;        \
        const total_t before = total;                                                                                  \
        COMBINE(total, lost, x)                                                                                        \
        const total_t result = exclusive ? before : total;                                                             \
        if ((inside) && writes)                                                                                        \
            STORE(T, dst, target, result);                                                                             \
    }

__kernel void scan_items(ARGUMENTS)
{
    const idx_t line = (idx_t)get_global_id(0);
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);
    if (line >= lines)
        return;
    total_t total = NEUTRAL, lost = 0;
    (void)lost;
    for (idx_t i = 0; i < length; ++i)
        STEP(i, true, true)
}

__kernel void scan_groups(ARGUMENTS)
{
    __local total_t parts[GROUP];
    const idx_t line = (idx_t)get_group_id(0);
    const int lane = (int)get_local_id(0);
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);
    if (line >= lines)
        return;
    // All work-items take as many turns: pocl (3.1) goes wrong where the number of turns is each one's own.
    const idx_t part = (length + GROUP - 1) / GROUP, begin = lane * part;
    total_t total = NEUTRAL, lost = 0;
    (void)lost;
    for (idx_t i = 0; i < part; ++i)
        STEP(begin + i, begin + i < length, false)
    parts[lane] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) { // each part's sum gives way to that of those before it
        total_t before = NEUTRAL, before_lost = 0;
        (void)before_lost;
        for (int i = 0; i < GROUP; ++i) {
            const total_t x = parts[i];
            parts[i] = before;
            COMBINE(before, before_lost, x)
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    total = parts[lane];
    lost = 0;
    for (idx_t i = 0; i < part; ++i)
        STEP(begin + i, begin + i < length, true)
}
