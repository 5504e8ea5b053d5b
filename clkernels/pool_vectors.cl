// SPDX-License-Identifier: Apache-2.0
// Max and average pooling of floats, and max pooling of bytes, with channels last, for CPUs. Spatial dimensions are (d, h, w); absent ones are 1.
//
// Defines:
//   T         type of src and dst: F32, F16, BF16; U8, I8
//   V         lanes of a vector: 4, 8 or 16; not more than there are channels
//   AVERAGE   the mean instead of the maximum
//
// A work-item makes `each` columns of a row, with all their channels.
// check: -DT=F32 -DV=16
// check: -DT=F16 -DV=8 -DAVERAGE
// check: -DT=BF16 -DV=4 -DINDEX64
// check: -DT=U8 -DV=16
#include "common.clh"
#include "index.clh"
#if !defined(T) || !defined(V)
#error "pool_vectors.cl needs T and V"
#endif
#include "pool.clh"
#if IS_FLOAT(T)
#include "vectors.clh"
#define LOAD_TAP(p, i) LOADV(T, V, p, i)
#define STORE_RESULT(p, i, value) STOREV(T, V, p, i, value)
#else
typedef PASTE2_(STORAGE(T), V) value_t;
#define LOWEST (IS_UNSIGNED(T) ? 0 : -128)
#define LOAD_TAP(p, i) PASTE2_(vload, V)(0, (p) + (i))
#define STORE_RESULT(p, i, value) PASTE2_(vstore, V)(value, 0, (p) + (i))
#endif

// A maximum takes no NaN: what is largest of all bit patterns without their signs tells whether there was one.
static inline value_t pool_taps(__global const STORAGE(T) *p, const idx_t step_d, const idx_t step_h,
                                const idx_t step_w, const int count_d, const int count_h, const int count_w)
{
#ifdef AVERAGE
    value_t value = 0.0f;
#elif IS_FLOAT(T)
    value_t value = -INFINITY;
    mask_t bits = 0;
#else
    value_t value = (value_t)(LOWEST);
#endif
    for (int d = 0; d < count_d; ++d)
        for (int h = 0; h < count_h; ++h) {
            __global const STORAGE(T) *line = p + d * step_d + h * step_h;
            for (int w = 0; w < count_w; ++w) {
                const value_t x = LOAD_TAP(line, w * step_w);
#ifdef AVERAGE
                value += x;
#elif !IS_FLOAT(T)
                value = max(value, x);
#else
                const mask_t own = PASTE2_(as_int, V)(x) & 0x7fffffff;
                value = x > value ? x : value;
                bits = own > bits ? own : bits;
#endif
            }
        }
#if !defined(AVERAGE) && IS_FLOAT(T)
    value = bits > 0x7f800000 ? VALUE(NAN) : value;
#endif
    return value;
}

// Arguments as of pool.cl.
__kernel void pool_columns(__global const STORAGE(T) *src, idx_t src_offset, __global STORAGE(T) *dst,
                           idx_t dst_offset, int4 src_size, int4 dst_size, int4 window, int4 stride, int4 dilation,
                           int4 pad_begin, int4 pad_end, idx8_t src_stride, idx8_t dst_stride, int4 flags, int each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const int first = (int)get_global_id(0) * each, end = min(first + each, dst_size.z);
    idx_t n = (idx_t)get_global_id(1);
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    const int d0 = d * stride.x - pad_begin.x, h0 = h * stride.y - pad_begin.y;
    int kd0, kd1, kh0, kh1, kw0, kw1;
    clip_taps(d0, window.x, dilation.x, 0, src_size.x, &kd0, &kd1);
    clip_taps(h0, window.y, dilation.y, 0, src_size.y, &kh0, &kh1);
    const idx_t image = src_offset + n * src_stride.s0 + (d0 + kd0 * dilation.x) * src_stride.s2 +
                        (h0 + kh0 * dilation.y) * src_stride.s3;
    __global STORAGE(T) *line =
        dst + dst_offset + n * dst_stride.s0 + d * dst_stride.s2 + h * dst_stride.s3;
#ifdef AVERAGE
    int all_d0 = kd0, all_d1 = kd1, all_h0 = kh0, all_h1 = kh1;
    if (flags.x) {
        clip_taps(d0, window.x, dilation.x, -pad_begin.x, src_size.x + pad_end.x, &all_d0, &all_d1);
        clip_taps(h0, window.y, dilation.y, -pad_begin.y, src_size.y + pad_end.y, &all_h0, &all_h1);
    }
    const float lines = (float)(all_d1 - all_d0) * (float)(all_h1 - all_h0);
#endif
    for (int w = first; w < end; ++w) {
        const int w0 = w * stride.z - pad_begin.z;
        clip_taps(w0, window.z, dilation.z, 0, src_size.z, &kw0, &kw1);
        __global const STORAGE(T) *p = src + image + (w0 + kw0 * dilation.z) * src_stride.s4;
#ifdef AVERAGE
        int all_w0 = kw0, all_w1 = kw1;
        if (flags.x)
            clip_taps(w0, window.z, dilation.z, -pad_begin.z, src_size.z + pad_end.z, &all_w0, &all_w1);
        const float count = lines * (float)(all_w1 - all_w0);
#endif
        for (int next = 0; next < src_size.w; next += V) {
            const int c = min(next, src_size.w - V); // the last vector is moved back to be full
            value_t value = pool_taps(p + c, dilation.x * src_stride.s2, dilation.y * src_stride.s3,
                                      dilation.z * src_stride.s4, kd1 - kd0, kh1 - kh0, kw1 - kw0);
#ifdef AVERAGE
            value /= count;
#endif
            STORE_RESULT(line, w * dst_stride.s4 + c, value);
        }
    }
    TEAM_LEAVE
}
