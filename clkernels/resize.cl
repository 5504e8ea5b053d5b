// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize.
//
// Defines:
//   T                type of src and dst
//   AXES             how many axes are resized, 1 to 3
//   MODE             0 nearest, 1 linear, 2 cubic
//   CROP             1: positions outside src give `outside`
//   EXCLUDE_OUTSIDE  1: samples outside src have no weight (else they repeat the edge)
//   NEAREST          for MODE 0: 0 half goes down, 1 half goes up, 2 floor, 3 ceil
//
// Per resized axis, in the components of vectors: `size` and `stride` of src, `stretch` of the filter (1, or more for
// antialiasing), and the position in src of coordinate x: (x * map.s0 + map.s1) / map.s2 + map.s3 - map.s4.
// check: -DT=F32 -DAXES=2 -DMODE=1 -DCROP=0 -DEXCLUDE_OUTSIDE=0 -DNEAREST=0
// check: -DT=F16 -DAXES=3 -DMODE=2 -DCROP=1 -DEXCLUDE_OUTSIDE=1 -DNEAREST=0 -DINDEX64
// check: -DT=U8 -DAXES=1 -DMODE=0 -DCROP=0 -DEXCLUDE_OUTSIDE=0 -DNEAREST=2
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(AXES) || !defined(MODE) || !defined(CROP) || !defined(EXCLUDE_OUTSIDE) || !defined(NEAREST)
#error "resize.cl needs T, AXES, MODE, CROP, EXCLUDE_OUTSIDE, NEAREST"
#endif
typedef COMPUTE(T) value_t;

#include "resize.clh"

#if MODE != 0
#if MODE == 1
#define RADIUS 1
#define WEIGHT(distance) fmax(1.0f - fabs(distance), 0.0f)
#else
#define RADIUS 2
#define WEIGHT(distance) cubic_weight(fabs(distance), cubic_a)
static inline float cubic_weight(const float x, const float a)
{
    const float near = ((a + 2) * x - (a + 3)) * x * x + 1, far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return x <= 1.0f ? near : x < 2.0f ? far : 0.0f;
}
#endif

// The weighted mean over one axis of `inner`, which is given the index that it starts from.
#define DEFINE_MEAN(name, axis, inner)                                                                                 \
    static inline value_t name(__global const STORAGE(T) *src, const idx_t from, const float4 position,                \
                               const idx4_t size, const idx4_t stride, const float4 stretch, const float cubic_a)      \
    {                                                                                                                  \
        /* Positions far outside see the edge alone, as do those next to it. */                                        \
        const float reach = RADIUS * stretch.axis;                                                                     \
        const float place = clamp_float(position.axis, -reach - 2.0f, (float)size.axis + reach + 1.0f);                \
        const idx_t first = floor_index(place - reach) + 1, end = ceil_index(place + reach);                           \
        value_t sum = 0, weights = 0;                                                                                  \
        for (idx_t sample = first; sample < end; ++sample) {                                                           \
            const int inside = !EXCLUDE_OUTSIDE || (sample >= 0 && sample < size.axis);                                \
            const float weight = inside ? WEIGHT(((float)sample - place) / stretch.axis) : 0.0f;                       \
            const idx_t at = from + clamp_index(sample, size.axis) * stride.axis;                                      \
            sum += weight * inner(src, at, position, size, stride, stretch, cubic_a);                                  \
            weights += weight;                                                                                         \
        }                                                                                                              \
        return weights == 0 ? sum : sum / weights;                                                                     \
    }
#define READ(src, at, position, size, stride, stretch, cubic_a) LOAD(T, src, at)
#if AXES == 1
DEFINE_MEAN(mean, s0, READ)
#elif AXES == 2
DEFINE_MEAN(mean_1, s1, READ)
DEFINE_MEAN(mean, s0, mean_1)
#else
DEFINE_MEAN(mean_2, s2, READ)
DEFINE_MEAN(mean_1, s1, mean_2)
DEFINE_MEAN(mean, s0, mean_1)
#endif
#endif

// Dimensions are dst's; src has stride 0 in the resized ones, and coordinate0 … have stride 1 in their own, else 0.
__kernel void resize(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                     const idx_t src_offset, const idx4_t size, const idx4_t stride, const float4 stretch,
                     const float8 map0, const float8 map1, const float8 map2, const float cubic_a,
                     const float outside, const idx_t rows, const int deep, const idx8_t shape,
                     const idx8_t dst_stride, const idx8_t src_stride, const idx8_t coordinate0,
                     const idx8_t coordinate1, const idx8_t coordinate2)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    // Before the guard, so that a compiler which makes a loop of a work-group moves the divisions out of it.
#define WALK(strides) (row_index(row, deep, shape, strides) + column * strides.s7)
    const idx_t to = dst_offset + WALK(dst_stride), from = src_offset + WALK(src_stride);
    float4 position = (float4)(0.0f);
    position.s0 = position_of(WALK(coordinate0), map0);
#if AXES > 1
    position.s1 = position_of(WALK(coordinate1), map1);
#endif
#if AXES > 2
    position.s2 = position_of(WALK(coordinate2), map2);
#endif
    if (column >= shape.s7 || row >= rows)
        return;
#if CROP
    int outside_of_src = position.s0 < 0.0f || position.s0 > (float)(size.s0 - 1);
#if AXES > 1
    outside_of_src |= position.s1 < 0.0f || position.s1 > (float)(size.s1 - 1);
#endif
#if AXES > 2
    outside_of_src |= position.s2 < 0.0f || position.s2 > (float)(size.s2 - 1);
#endif
    if (outside_of_src) {
        STORE(T, dst, to, (value_t)outside);
        return;
    }
#endif
#if MODE == 0
    idx_t nearest = nearest_index(position.s0, size.s0) * stride.s0;
#if AXES > 1
    nearest += nearest_index(position.s1, size.s1) * stride.s1;
#endif
#if AXES > 2
    nearest += nearest_index(position.s2, size.s2) * stride.s2;
#endif
    STORE(T, dst, to, LOAD(T, src, from + nearest));
#else
    STORE(T, dst, to, mean(src, from, position, size, stride, stretch, cubic_a));
#endif
}
