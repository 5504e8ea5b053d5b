// SPDX-License-Identifier: Apache-2.0
// Regions of images as results of one size: ONNX's RoiAlign and MaxRoiPool.
//
// Defines:
//   T        float type of src, rois and dst
//   MODE     0 RoiAlign's average, 1 RoiAlign's maximum, 2 MaxRoiPool
//   INDEX64  see common.clh
// check: -DT=F32 -DMODE=0
// check: -DT=F16 -DMODE=1 -DINDEX64
// check: -DT=BF16 -DMODE=2
#include "common.clh"
#include "index.clh"
#if !defined(T) || !defined(MODE)
#error "roi.cl needs T and MODE"
#endif
#define VALUE COMPUTE(T)

#if MODE > 0
// A NaN is greater than everything.
static inline VALUE greater(const VALUE a, const VALUE b)
{
    return b > a || b != b ? b : a;
}
#endif

#if MODE < 2
// A region along one axis.
typedef struct {
    VALUE first;  // position of the bin's first sample
    VALUE step;   // from sample to sample
    VALUE count;  // samples in the bin
    int begin, end; // those that can lie in the image
} samples;

static inline samples find_samples(const VALUE start, const VALUE size, const int bins, const int bin, const int ratio,
                                   const int pixels)
{
    samples found;
    const VALUE each = size / bins;
    found.count = ratio > 0 ? (VALUE)ratio : fmax(ceil(each), (VALUE)0);
    found.step = each / found.count;
    found.first = start + bin * each + found.step / 2;
    // Regions reach far out of images; nothing is to be found there. One more at each end for the roundings.
    const VALUE low = (-1 - found.first) / found.step - 1, high = (pixels - found.first) / found.step + 2;
    const VALUE begin = fmin(low, high), end = fmax(low, high);
    const bool spread = found.step != 0 && found.count > 0 && fabs(begin) < INFINITY && fabs(end) < INFINITY;
    // What counts further than an int does is no region that anyone meant.
    const VALUE most = fmin(found.count, (VALUE)1048576);
    found.begin = spread ? (int)fmax(fmin(begin, most), (VALUE)0) : 0;
    found.end = spread ? (int)fmax(fmin(end + 1, most), (VALUE)0) : (int)fmax(most, (VALUE)0);
    return found;
}

// The pixels left and right of a position that lies in the image, and the weight of the right one.
static inline int find_pixels(VALUE x, const int pixels, int *right, VALUE *weight)
{
    x = fmax(x, (VALUE)0);
    int left = (int)x;
    *right = left + 1;
    if (left >= pixels - 1) {
        left = *right = pixels - 1;
        x = (VALUE)left;
    }
    *weight = x - (VALUE)left;
    return left;
}

static inline VALUE align_bin(__global const STORAGE(T) *src, const idx_t image, const idx2_t stride, const int2 size,
                              const samples y, const samples x)
{
#if MODE == 0
    VALUE sum = 0;
#else
    VALUE most = -INFINITY, inside = 0;
#endif
    for (int i = y.begin; i < y.end; i++)
        for (int j = x.begin; j < x.end; j++) {
            const VALUE at_y = y.first + (VALUE)i * y.step, at_x = x.first + (VALUE)j * x.step;
            if (!(at_y >= -1 && at_y <= size.y && at_x >= -1 && at_x <= size.x))
                continue;
            int right, below;
            VALUE part_x, part_y;
            const int left = find_pixels(at_x, size.x, &right, &part_x);
            const int above = find_pixels(at_y, size.y, &below, &part_y);
            const VALUE a = (1 - part_y) * (1 - part_x) * LOAD(T, src, image + above * stride.y + left * stride.x);
            const VALUE b = (1 - part_y) * part_x * LOAD(T, src, image + above * stride.y + right * stride.x);
            const VALUE c = part_y * (1 - part_x) * LOAD(T, src, image + below * stride.y + left * stride.x);
            const VALUE d = part_y * part_x * LOAD(T, src, image + below * stride.y + right * stride.x);
#if MODE == 0
            sum += a + b + c + d;
#else
            most = greater(most, greater(greater(a, b), greater(c, d)));
            inside += 1;
#endif
        }
    const VALUE all = y.count * x.count;
#if MODE == 0
    return sum / fmax(all, (VALUE)1);
#else
    return inside < all || inside == 0 ? greater(0, inside == 0 ? 0 : most) : most; // a sample outside is a zero
#endif
}
#endif

#if MODE == 2
// A bin's edge: a whole pixel in the image. In floats, since regions may lie anywhere; a NaN becomes some pixel.
static inline int edge_of(const VALUE at, const int pixels)
{
    return (int)fmax(fmin(at, (VALUE)pixels), (VALUE)0);
}

static inline VALUE pool_bin(__global const STORAGE(T) *src, const idx_t image, const idx2_t stride, const int2 size,
                             const int2 bins, const int2 bin, const VALUE x1, const VALUE y1, const VALUE x2,
                             const VALUE y2)
{
    const VALUE width = fmax(x2 - x1 + 1, (VALUE)1) / bins.x, height = fmax(y2 - y1 + 1, (VALUE)1) / bins.y;
    const int left = edge_of(floor(bin.x * width) + x1, size.x), top = edge_of(floor(bin.y * height) + y1, size.y);
    const int right = edge_of(ceil((bin.x + 1) * width) + x1, size.x);
    const int bottom = edge_of(ceil((bin.y + 1) * height) + y1, size.y);
    if (right <= left || bottom <= top)
        return 0;
    VALUE most = -INFINITY;
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            most = greater(most, LOAD(T, src, image + y * stride.y + x * stride.x));
    return most;
}
#endif

// Strides: n, c, h, w. `src_size`: n, c, h, w. `dst_size`: the same of dst. `flags`: sampling ratio, half pixels, channels
// of a work-item. The range: bins, parts of the channels, regions.
__kernel void roi(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                  const idx_t src_offset, __global const STORAGE(T) *rois, const idx_t rois_offset,
#if MODE < 2
                  __global const long *images, const idx_t images_offset, const idx_t images_stride,
#endif
                  const int4 src_size, const int4 dst_size, const int4 flags, const float scale,
                  const idx4_t src_stride, const idx4_t dst_stride, const idx2_t rois_stride)
{
    idx_t rest = (idx_t)get_global_id(0);
    const int part = (int)get_global_id(1), region = (int)get_global_id(2), each = flags.z;
    if (rest >= (idx_t)dst_size.z * dst_size.w || part * each >= dst_size.y || region >= dst_size.x)
        return;
    const int2 size = (int2)(src_size.w, src_size.z), bins = (int2)(dst_size.w, dst_size.z);
    const int w = (int)take_index(&rest, bins.x), h = (int)rest;
    const idx_t at = rois_offset + region * rois_stride.x + (MODE < 2 ? 0 : rois_stride.y);
    const VALUE x1 = LOAD(T, rois, at) * scale, y1 = LOAD(T, rois, at + rois_stride.y) * scale;
    const VALUE x2 = LOAD(T, rois, at + 2 * rois_stride.y) * scale, y2 = LOAD(T, rois, at + 3 * rois_stride.y) * scale;
#if MODE < 2
    const long wanted = images[images_offset + region * images_stride];
    const int image = wanted < 0 ? 0 : wanted >= src_size.x ? src_size.x - 1 : (int)wanted;
    const VALUE shift = flags.y ? (VALUE)0.5f : 0, least = flags.y ? -INFINITY : (VALUE)1;
    const VALUE top = y1 - shift, left = x1 - shift, height = y2 - shift - top, width = x2 - shift - left;
    const samples y = find_samples(top, fmax(height, least), bins.y, h, flags.x, size.y);
    const samples x = find_samples(left, fmax(width, least), bins.x, w, flags.x, size.x);
#else
    const int image = edge_of(LOAD(T, rois, at - rois_stride.y), src_size.x - 1);
#endif
    const int end = min(dst_size.y, (part + 1) * each);
    for (int c = part * each; c < end; c++) {
        const idx_t from = src_offset + image * src_stride.x + c * src_stride.y;
        const idx_t to = dst_offset + region * dst_stride.x + c * dst_stride.y + h * dst_stride.z + w * dst_stride.w;
#if MODE < 2
        STORE(T, dst, to, align_bin(src, from, src_stride.wz, size, y, x));
#else
        STORE(T, dst, to,
              pool_bin(src, from, src_stride.wz, size, bins, (int2)(w, h), round(x1), round(y1), round(x2), round(y2)));
#endif
    }
}
