// SPDX-License-Identifier: Apache-2.0
// ONNX's GridSample: each result is the source around a position that the grid gives.
//
// Defines:
//   T        type of src and dst; for MODE 0 the unsigned integer of the size
//   T_GRID   type of the grid, in which positions are computed
//   MODE     0 nearest, 1 linear, 2 cubic
//   DIMS     spatial dimensions: 1, 2 or 3; they are (d, h, w) here, absent ones have size 1
//   INDEX64  see common.clh
// check: -DT=F32 -DT_GRID=F32 -DMODE=1 -DDIMS=2
// check: -DT=F16 -DT_GRID=F32 -DMODE=2 -DDIMS=2 -DINDEX64
// check: -DT=U8 -DT_GRID=F16 -DMODE=0 -DDIMS=3
#include "common.clh"
#include "index.clh"
#if !defined(T) || !defined(T_GRID) || !defined(MODE) || !defined(DIMS)
#error "grid_sample.cl needs T, T_GRID, MODE and DIMS"
#endif
#define POSITION COMPUTE(T_GRID)
#define VALUE COMPUTE(T)
#define TAPS (MODE == 0 ? 1 : MODE == 1 ? 2 : 4)
#define ALPHA -0.75f

enum { ZEROS, BORDER, REFLECTION };

// From -1 … 1 to pixels.
static inline POSITION to_pixels(const POSITION x, const int size, const int align)
{
    return align ? (x + 1) / 2 * (POSITION)(size - 1) : ((x + 1) * (POSITION)size - 1) / 2;
}

// Back and forth between low and high.
static inline POSITION reflect(const POSITION x, const POSITION low, const POSITION high)
{
    const POSITION range = high - low;
    if (!(x < low || x > high))
        return x;
    if (range <= 0)
        return low;
    const POSITION far = x < low ? low - x : x - high, left = fmod(far, 2 * range);
    const POSITION inside = left < range ? left : 2 * range - left;
    return x < low ? low + inside : high - inside;
}

// Whole pixels outside: what the padding says; false: a zero. No index is outside the image, whatever comes in.
static inline bool pixel_at(const int wanted, const int size, const int padding, const int align, int *at)
{
    int inside = wanted;
    if (padding == REFLECTION)
        inside = (int)reflect((POSITION)wanted, align ? 0 : (POSITION)-0.5f, (POSITION)size - (align ? 1 : (POSITION)0.5f));
    *at = clamp(inside, 0, size - 1);
    return padding != ZEROS || *at == wanted;
}

// The weight of tap `tap` at this distance right of tap TAPS / 2 - 1.
static inline POSITION weight_of(const int tap, const POSITION x)
{
#if MODE == 0
    return 1;
#elif MODE == 1
    return tap == 0 ? 1 - x : x;
#else
    const POSITION a = ALPHA, t = tap == 0 ? x + 1 : tap == 1 ? x : tap == 2 ? 1 - x : 2 - x;
    return tap == 0 || tap == 3 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : ((a + 2) * t - (a + 3)) * t * t + 1;
#endif
}

// Indices, weights and presence of the taps along one dimension.
static inline void find_taps(const POSITION given, const int size, const int padding, const int align, int *at,
                             POSITION *weight, bool *there)
{
    const POSITION low = align ? 0 : (POSITION)-0.5f, high = (POSITION)size - (align ? 1 : (POSITION)0.5f);
    POSITION x = to_pixels(given, size, align);
#if MODE == 0
    x = rint(x);
#endif
    if (x < low || x > high)
        x = padding == BORDER       ? (x < low ? 0 : (POSITION)(size - 1))
            : padding == REFLECTION ? reflect(x, low, high)
                                    : x;
    // Of what is farther outside every tap is a zero; a NaN has to become some index.
    const POSITION whole = fmax(fmin(floor(x), (POSITION)size + 2), (POSITION)-4);
    const POSITION part = x < -4 || x > (POSITION)size + 2 ? 0 : x - whole;
    const int first = (int)whole - (TAPS == 4 ? 1 : 0);
    for (int i = 0; i < TAPS; i++) {
        there[i] = pixel_at(first + i, size, padding, align, &at[i]);
        weight[i] = weight_of(i, part);
    }
}

// A work-item: one position, `sizes.w` channels of them. The range: positions, parts of the channels, images.
__kernel void grid_sample(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                          const idx_t src_offset, __global const STORAGE(T_GRID) *grid, const idx_t grid_offset,
                          const int4 src_size, const int4 dst_size, const int4 flags, const idx8_t src_stride,
                          const idx8_t dst_stride, const idx8_t grid_stride)
{
    idx_t position = (idx_t)get_global_id(0);
    const int part = (int)get_global_id(1), image = (int)get_global_id(2), each = dst_size.w;
    const int channels = src_size.w, padding = flags.x, align = flags.y;
    if (position >= (idx_t)dst_size.x * dst_size.y * dst_size.z || part * each >= channels || image >= flags.z)
        return;
    const int w = (int)take_index(&position, dst_size.z), h = (int)take_index(&position, dst_size.y);
    const int d = (int)position;
    const idx_t where = grid_offset + image * grid_stride.s0 + d * grid_stride.s1 + h * grid_stride.s2 +
                        w * grid_stride.s3;
    int at_w[TAPS], at_h[TAPS], at_d[TAPS];
    POSITION weight_w[TAPS], weight_h[TAPS], weight_d[TAPS];
    bool there_w[TAPS], there_h[TAPS], there_d[TAPS];
    at_h[0] = at_d[0] = 0;
    weight_h[0] = weight_d[0] = 1;
    there_h[0] = there_d[0] = true;
    find_taps(LOAD(T_GRID, grid, where), src_size.z, padding, align, at_w, weight_w, there_w);
#if DIMS > 1
    find_taps(LOAD(T_GRID, grid, where + grid_stride.s4), src_size.y, padding, align, at_h, weight_h, there_h);
#endif
#if DIMS > 2
    find_taps(LOAD(T_GRID, grid, where + 2 * grid_stride.s4), src_size.x, padding, align, at_d, weight_d, there_d);
#endif
    const idx_t to = dst_offset + image * dst_stride.s0 + d * dst_stride.s2 + h * dst_stride.s3 + w * dst_stride.s4;
    const int end = min(channels, (part + 1) * each);
    for (int c = part * each; c < end; c++) {
        const idx_t from = src_offset + image * src_stride.s0 + c * src_stride.s1;
        VALUE sum = 0;
        for (int i = 0; i < (DIMS > 2 ? TAPS : 1); i++)
            for (int j = 0; j < (DIMS > 1 ? TAPS : 1); j++)
                for (int k = 0; k < TAPS; k++) {
                    const idx_t pixel = from + at_d[i] * src_stride.s2 + at_h[j] * src_stride.s3 +
                                        at_w[k] * src_stride.s4;
                    const bool there = there_d[i] && there_h[j] && there_w[k];
                    const VALUE value = there ? LOAD(T, src, pixel) : 0;
#if MODE == 0
                    sum = value;
#else
                    sum += (VALUE)(weight_d[i] * weight_h[j] * weight_w[k]) * value;
#endif
                }
        STORE(T, dst, to + c * dst_stride.s1, sum);
    }
}
