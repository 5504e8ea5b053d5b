// SPDX-License-Identifier: Apache-2.0
// Max, average and Lp pooling. Spatial dimensions are (d, h, w); absent ones are 1.
//
// Defines:
//   T        type of src and dst
//   V        channels that a work-item computes: 1, or 4, 8 or 16 where the channel stride of src and dst is 1
//   AVERAGE  the mean instead of the maximum
//   LP       instead, the p-th root of the sum of p-th powers; the value is p
//   INDICES  also the position of the maximum; V is 1
//   INDEX64  see common.clh
// check: -DT=F32 -DV=4
// check: -DT=F16 -DV=16 -DAVERAGE
// check: -DT=U8 -DV=1
// check: -DT=F32 -DV=1 -DINDICES -DINDEX64
// check: -DT=F32 -DV=4 -DLP=2
// check: -DT=F16 -DV=1 -DLP=3
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#include "pool.clh"
#if !defined(T) || !defined(V)
#error "pool.cl needs T and V"
#endif

#if V == 1
#define VALUE COMPUTE(T)
#define LOAD_VALUE(p, i) LOAD(T, p, i)
#else
#define VALUE PASTE2_(float, V)
#define LOAD_VALUE(p, i) LOADV(T, V, p, i)
#endif

// What the maximum of an empty window is.
#if IS_FLOAT(T)
#define LOWEST -INFINITY
#elif IS_UNSIGNED(T)
#define LOWEST 0
#else
#define LOWEST -128
#endif

// A NaN in the window is the maximum; the first one, as of equal values.
#if IS_FLOAT(T)
#define IS_BETTER(x, best) (((x) > (best)) | (((x) != (x)) & ((best) == (best))))
#else
#define IS_BETTER(x, best) ((x) > (best))
#endif

// What a window starts with, and what it becomes with one more element.
#if defined(AVERAGE)
#define START 0
#define TAKE(value, x) ((value) + (x))
#elif defined(LP)
#define START 0
#define TAKE(value, x) ((value) + POWER(x))
#else
#define START LOWEST
#define TAKE(value, x) (IS_BETTER(x, value) ? (x) : (value))
#endif

#ifdef LP
#if LP == 1
#define POWER(x) fabs(x)
#define ROOT(x) (x)
#elif LP == 2
#define POWER(x) ((x) * (x))
#define ROOT(x) sqrt(x)
#else
#define POWER(x) pow(fabs(x), (VALUE)(LP))
#define ROOT(x) pow(x, (VALUE)(1) / (VALUE)(LP))
#endif
#endif

#ifdef INDICES
static inline long flat_index(int3 at, int4 size, bool column_major)
{
    return column_major ? ((long)at.z * size.y + at.y) * size.x + at.x : ((long)at.x * size.y + at.y) * size.z + at.z;
}
#endif

// Lanes before `begin` are another work-item's.
static inline void store_value(__global STORAGE(T) *dst, idx_t at, VALUE value, int begin)
{
#if V == 1
    STORE(T, dst, at, value);
#else
    if (begin == 0)
        STOREV(T, V, dst, at, value);
    else
        STORE_LANES(T, V, dst, at, value, begin, V);
#endif
}

// Sizes are (d, h, w, channels); strides are (n, c, d, h, w). flags: padding counts; indices are column-major; rows; the
// grid's first dimension are channels instead of columns.
__kernel void pool(__global const STORAGE(T) *src, idx_t src_offset, __global STORAGE(T) *dst, idx_t dst_offset,
#ifdef INDICES
                   __global long *indices, idx_t indices_offset, idx8_t indices_stride,
#endif
                   int4 src_size, int4 dst_size, int4 window, int4 stride, int4 dilation, int4 pad_begin, int4 pad_end,
                   idx8_t src_stride, idx8_t dst_stride, int4 flags)
{
    const int grid0 = (int)get_global_id(0), grid1 = (int)get_global_id(1);
    const int block = flags.w ? grid0 : grid1, w = flags.w ? grid1 : grid0;
    const int row = (int)get_global_id(2);
    if (block * V >= src_size.w || w >= dst_size.z || row >= flags.z)
        return;
    // The last vector is moved back to be full.
    const int c = min(block * V, src_size.w - V);
    idx_t n = row;
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    const int d0 = d * stride.x - pad_begin.x, h0 = h * stride.y - pad_begin.y, w0 = w * stride.z - pad_begin.z;
    int kd0, kd1, kh0, kh1, kw0, kw1;
    clip_taps(d0, window.x, dilation.x, 0, src_size.x, &kd0, &kd1);
    clip_taps(h0, window.y, dilation.y, 0, src_size.y, &kh0, &kh1);
    clip_taps(w0, window.z, dilation.z, 0, src_size.z, &kw0, &kw1);
    const idx_t image = src_offset + n * src_stride.s0 + c * src_stride.s1;

    VALUE value = START;
#ifdef INDICES
    int3 at = (int3)(-1);
#endif
    for (int kd = kd0; kd < kd1; kd++)
        for (int kh = kh0; kh < kh1; kh++)
            for (int kw = kw0; kw < kw1; kw++) {
                const int sd = d0 + kd * dilation.x, sh = h0 + kh * dilation.y, sw = w0 + kw * dilation.z;
                const VALUE x = LOAD_VALUE(src, image + sd * src_stride.s2 + sh * src_stride.s3 + sw * src_stride.s4);
#ifdef INDICES
                if (at.x < 0 || IS_BETTER(x, value))
                    at = (int3)(sd, sh, sw);
#endif
                value = TAKE(value, x);
            }
#ifdef AVERAGE
    if (flags.x) {
        clip_taps(d0, window.x, dilation.x, -pad_begin.x, src_size.x + pad_end.x, &kd0, &kd1);
        clip_taps(h0, window.y, dilation.y, -pad_begin.y, src_size.y + pad_end.y, &kh0, &kh1);
        clip_taps(w0, window.z, dilation.z, -pad_begin.z, src_size.z + pad_end.z, &kw0, &kw1);
    }
    value /= (COMPUTE(T))(kd1 - kd0) * (COMPUTE(T))(kh1 - kh0) * (COMPUTE(T))(kw1 - kw0);
#endif

#ifdef LP
    value = ROOT(value);
#endif
    const idx_t to = dst_offset + n * dst_stride.s0 + c * dst_stride.s1 + d * dst_stride.s2 + h * dst_stride.s3 +
                     w * dst_stride.s4;
    store_value(dst, to, value, block * V - c);
#ifdef INDICES
    const long plane = ((long)n * src_size.w + c) * src_size.x * src_size.y * src_size.z;
    indices[indices_offset + n * indices_stride.s0 + c * indices_stride.s1 + d * indices_stride.s2 +
            h * indices_stride.s3 + w * indices_stride.s4] = plane + flat_index(at, src_size, flags.y);
#endif
}
