// SPDX-License-Identifier: Apache-2.0
// How fast a CPU multiplies and adds vectors of 16: rounds of twelve sums that do not wait for each other.
//
// Defines:
//   BF16  two products of bfloat16 a lane by x86's vdpbf16ps; else one of float32
// gpu: never
// check:
#include "assembly.clh"
#define PAIR_LANES 16
#include "bf16_pairs.clh"

#define SUMS 12

__kernel void rate(__global float *out, const float factor, const int rounds)
{
    MARK_ASSEMBLY;
    float16 sum[SUMS];
    const float16 x = (float16)factor;
    _Pragma("unroll") for (int i = 0; i < SUMS; i++)
        sum[i] = (float16)(float)i;
    for (int round = 0; round < rounds; round++) {
        _Pragma("unroll") for (int i = 0; i < SUMS; i++)
        {
#ifdef BF16
            ADD_PRODUCTS(sum[i], x, x);
#else
            sum[i] = fma(x, x, sum[i]);
#endif
        }
    }
    for (int i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    vstore16(sum[0], 0, out);
}
