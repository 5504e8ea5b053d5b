// SPDX-License-Identifier: Apache-2.0
// Convolution with one channel in and one out of each group: vectors lie over the groups, of which there are at least V.
//
// Defines: those of conv.clh
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=4
// check: -DT_SRC=BF16 -DT_BIAS=F32 -DT_DST=F16 -DV=8 -DP=1 -DINDEX64 -DSTAGES=1 -DS1=OP_MUL(v0,y0) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=0
#include "conv.clh"

#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);
__kernel void conv_depthwise(CONV_ARGUMENTS)
{
    FIND_GRID;
    const pixel_run run = get_run(run_index, dst_size.z, stride.z);
    if (block * V >= taps.w || row >= flags.z || run.begin >= run.end)
        return;
    // The last block is moved back to be full.
    const int c = min(block * V, taps.w - V);
    idx_t n = row;
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    const idx_t image = src_offset + n * src_stride.x + c;

    FLOATV acc[P];
#pragma unroll
    for (int p = 0; p < P; p++)
        acc[p] = flags.y ? load_bias(bias + (bias_offset + c), V) : (FLOATV)(0.0f);
    for (int tap = 0; tap < taps.x * taps.y * taps.z; tap++) {
        idx_t kd = tap;
        const int kw = (int)take_index(&kd, taps.z), kh = (int)take_index(&kd, taps.y);
        const int sd = source_coordinate(d, (int)kd, stride.x, dilation.x, pad.x, src_size.x);
        const int sh = source_coordinate(h, kh, stride.y, dilation.y, pad.y, src_size.y);
        int column, step;
        if (sd < 0 || sh < 0 || !get_columns(run, kw, stride.z, dilation.z, pad.z, &column, &step))
            continue;
        const idx_t line = image + sd * src_stride.y + sh * src_stride.z;
        const FLOATV w = LOADV(T_SRC, V, weight, weight_offset + tap * weight_stride.x + c);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int i = column + p * step;
            if (i >= 0 && i < src_size.z)
                acc[p] = fma(LOADV(T_SRC, V, src, line + i * src_stride.w), w, acc[p]);
        }
    }

#pragma unroll
    for (int p = 0; p < P; p++)
        if (p >= run.begin && p < run.end) {
            const int w = run.first + p * run.step;
            const idx_t at = dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;
            const FLOATV v0 = acc[p];
            FOR_OPERANDS(FIND_OPERAND)
            LOAD_OPERANDS
            CHAIN
            if (c == block * V)
                STOREV(T_DST, V, dst, at, CHAIN_RESULT);
            else
                STORE_LANES(T_DST, V, dst, at, CHAIN_RESULT, block * V - c, V);
        }
}
