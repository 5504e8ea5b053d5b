// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize of one or two axes, x and y, on CPUs: nearest, or linear without antialiasing.
//
// Defines:
//   T         type of src and dst; for MODE 0 the unsigned integer of its size
//   V         with MODE 1: lanes of a vector in resize_pixels, 4, 8 or 16; not more than channels
//   MODE      0 nearest, 1 linear
//   NEAREST   for MODE 0: as of resize.cl
//
// Entry points:
//   resize_pixels    `channels` neighbours in memory go together; a work-item makes `each` pixels of a line
//   resize_columns   any strides; a work-item makes `each` columns of a line, of `batches_each` batches
//
// out: columns (x) and lines (y) of dst, and their strides; in: the same of src. The other dimensions number batches.
// check: -DT=F32 -DV=16 -DMODE=1
// check: -DT=BF16 -DV=4 -DMODE=1 -DINDEX64
// check: -DT=U32 -DMODE=0 -DNEAREST=2
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(MODE) || (MODE == 0 ? !defined(NEAREST) : !defined(V))
#error "resize_vectors.cl needs T and MODE, and NEAREST or V"
#endif
#include "resize.clh"
#if MODE == 0
#include "rows.clh"
#else
#include "vectors.clh"
#endif

#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx4_t out, const idx4_t in, const float8 map_x, const float8 map_y, const idx_t each, const int deep,   \
        const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride
#define FIND_LINE(batch)                                                                                               \
    __global STORAGE(T) *to = dst + dst_offset + element_index(batch, deep, shape, dst_stride) + y * out.s3;           \
    __global const STORAGE(T) *from = src + src_offset + element_index(batch, deep, shape, src_stride)

#if MODE == 1
// The samples at and after a position, and the weight of the latter.
static inline void find_samples(const float position, const idx_t size, idx_t *low, idx_t *high, float *weight)
{
    const float place = clamp_float(position, -3.0f, (float)size + 2.0f);
    const idx_t whole = floor_index(place);
    *weight = place - (float)whole;
    *low = clamp_index(whole, size);
    *high = clamp_index(whole + 1, size);
}

// A sample without weight does not count, even if it is not finite.
#define MIX(a, b, weight) ((weight) == 0.0f ? (a) : (1.0f - (weight)) * (a) + (weight) * (b))

// Vectors go up to the end of the row; the last one is moved back to be full.
#define FOR_VECTORS(count, VALUE_AT)                                                                                   \
    for (idx_t next = 0; next < count; next += V) {                                                                    \
        const idx_t i = min(next, count - V);                                                                          \
        const value_t value = VALUE_AT;                                                                                \
        STOREV(T, V, to, i, value);                                                                                    \
    }
#define AT(p) LOADV(T, V, p, i)

static inline void mix_two(__global STORAGE(T) *to, __global const STORAGE(T) *a, __global const STORAGE(T) *b,
                           const float weight, const idx_t count)
{
    const float rest = 1.0f - weight;
    if (weight == 0.0f)
        FOR_VECTORS(count, AT(a))
    else
        FOR_VECTORS(count, AT(a) * rest + AT(b) * weight)
}

static inline void mix_four(__global STORAGE(T) *to, __global const STORAGE(T) *line0,
                            __global const STORAGE(T) *line1, const idx_t low, const idx_t high, const float weight_x,
                            const float weight_y, const idx_t count)
{
    __global const STORAGE(T) *a = line0 + low, *b = line0 + high, *c = line1 + low, *d = line1 + high;
    const float w11 = weight_x * weight_y, w10 = (1.0f - weight_x) * weight_y;
    const float w01 = weight_x * (1.0f - weight_y), w00 = (1.0f - weight_x) * (1.0f - weight_y);
    FOR_VECTORS(count, AT(a) * w00 + AT(b) * w01 + (AT(c) * w10 + AT(d) * w11))
}
#endif

__kernel void resize_pixels(ARGUMENTS, const idx_t channels TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t y = (idx_t)get_global_id(1), first = (idx_t)get_global_id(0) * each, end = min(out.s0, first + each);
    FIND_LINE((idx_t)get_global_id(2));
#if MODE == 0
    from += nearest_index(position_of(y, map_y), in.s1) * in.s3;
    for (idx_t x = first; x < end; ++x)
        copy_row(to + x * out.s2, from + nearest_index(position_of(x, map_x), in.s0) * in.s2, channels);
#else
    idx_t top, bottom, low, high;
    float weight_x, weight_y;
    find_samples(position_of(y, map_y), in.s1, &top, &bottom, &weight_y);
    __global const STORAGE(T) *line0 = from + top * in.s3, *line1 = from + bottom * in.s3;
    for (idx_t x = first; x < end; ++x) {
        find_samples(position_of(x, map_x), in.s0, &low, &high, &weight_x);
        low *= in.s2;
        high *= in.s2;
        if (weight_y == 0.0f)
            mix_two(to + x * out.s2, line0 + low, line0 + high, weight_x, channels);
        else if (weight_x == 0.0f)
            mix_two(to + x * out.s2, line0 + low, line1 + low, weight_y, channels);
        else
            mix_four(to + x * out.s2, line0, line1, low, high, weight_x, weight_y, channels);
    }
#endif
    TEAM_LEAVE
}

// Positions are found for a few columns at once, and serve all batches.
#define COLUMNS 16
__kernel void resize_columns(ARGUMENTS, const idx_t batches, const idx_t batches_each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t y = (idx_t)get_global_id(1), first = (idx_t)get_global_id(0) * each, end = min(out.s0, first + each);
    const idx_t first_batch = (idx_t)get_global_id(2) * batches_each;
    const idx_t end_batch = min(batches, first_batch + batches_each);
    idx_t low[COLUMNS];
#if MODE == 0
    const idx_t line = nearest_index(position_of(y, map_y), in.s1) * in.s3;
#else
    idx_t top, bottom, high[COLUMNS];
    float weight[COLUMNS], weight_y;
    find_samples(position_of(y, map_y), in.s1, &top, &bottom, &weight_y);
#endif
    for (idx_t x = first; x < end; x += COLUMNS) {
        const int count = (int)min((idx_t)COLUMNS, end - x);
        for (int i = 0; i < COLUMNS; ++i) {
#if MODE == 0
            low[i] = line + nearest_index(position_of(x + i, map_x), in.s0) * in.s2;
#else
            idx_t left, right;
            find_samples(position_of(x + i, map_x), in.s0, &left, &right, &weight[i]);
            low[i] = left * in.s2;
            high[i] = right * in.s2;
#endif
        }
        for (idx_t batch = first_batch; batch < end_batch; ++batch) {
            FIND_LINE(batch);
#if MODE == 0
            for (int i = 0; i < count; ++i)
                to[(x + i) * out.s2] = from[low[i]];
#else
            __global const STORAGE(T) *line0 = from + top * in.s3, *line1 = from + bottom * in.s3;
            for (int i = 0; i < count; ++i) {
                const float w = weight[i];
                const float a = LOAD(T, line0, low[i]), b = LOAD(T, line0, high[i]), above = MIX(a, b, w);
                const float c = LOAD(T, line1, low[i]), d = LOAD(T, line1, high[i]), below = MIX(c, d, w);
                STORE(T, to, (x + i) * out.s2, MIX(above, below, weight_y));
            }
#endif
        }
    }
    TEAM_LEAVE
}
