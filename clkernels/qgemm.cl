// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers with any strides, in batches; one element a work-item.
//
// Defines: T_DST, INDEX64, STAGES …; see qgemm.clh
// check: -DT_DST=I32
// check: -DT_DST=U8 -DINDEX64
// check: -DT_DST=F32 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
#ifndef T_DST
#error "qgemm.cl needs T_DST"
#endif
#define V 1
#include "qgemm.clh"

__kernel void qgemm(QGEMM_ARGUMENTS(uchar))
{
    FIND_GRID;
    const idx_t row = grid_row, column = grid_column;
    if (row >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    a += row * stride.s0;
    b += column * stride.s3;
    const uint zero_a = ZERO_OF_A(row), zero_b = ZERO_OF_B(column);
    uint sum = BIAS_OF(column);
    for (idx_t k = 0; k < size.s2; k++) {
        const uint x = (uint)(a[k * stride.s1] ^ FLIP_A);
        const uint y = (uint)(int)as_char((uchar)(b[k * stride.s2] ^ FLIP_B));
        sum += (x - zero_a) * (y - zero_b);
    }
#if RESULT == RESULT_I32
    const float scale = 1.0f;
    const int lowest = 0, zero = 0;
#else
    const float scale = SCALE_OF_ALL * SCALE_OF_B(column) / SCALE_OF_DST;
    const int lowest = LOWEST, zero = ZERO_OF_DST;
#endif
    store_element(dst, dst_offset + row * stride.s4 + column * stride.s5, sum, scale, lowest, zero, row,
                  column PASS_CHAIN);
}
