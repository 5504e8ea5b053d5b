// SPDX-License-Identifier: Apache-2.0
// The scale and zero point with which values between two bounds, and 0, become U8.
// check:
// check: -DINDEX64
#include "common.clh"

__kernel void qbounds(__global float *scale, const idx_t scale_offset, __global uchar *zero_point,
                      const idx_t zero_point_offset, __global const float *least, const idx_t least_offset,
                      __global const float *greatest, const idx_t greatest_offset)
{
    if (get_global_id(0) > 0)
        return;
    const float a = least[least_offset], b = greatest[greatest_offset];
    // Written so that what is not a number stays that.
    const float low = a > 0.0f ? 0.0f : a, high = b < 0.0f ? 0.0f : b;
    const float step = (high == low ? 1.0f : high - low) / 255.0f;
    scale[scale_offset] = step;
    zero_point[zero_point_offset] = convert_uchar_sat_rte(fmin(fmax(0.0f - low / step, 0.0f), 255.0f));
}
