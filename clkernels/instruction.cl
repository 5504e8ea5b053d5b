// SPDX-License-Identifier: Apache-2.0
// Runs one instruction once: of 16 lanes each, data has x, y, addends, and room for the sums.
//
// Defines, one of:
//   VNNI     vpdpbusd of x86: sum + four products of unsigned bytes of x and signed bytes of y; and vpdpwssd, of words, which
//            comes to the same
//   MADD     8 or 16 lanes of vpmaddwd of x86: as VNNI, in two steps of 16-bit integers; with FOURS vpdpbusd of AVX-VNNI
//   BF16     vdpbf16ps of x86: sum + two products of bfloat16
//   AMX_BF16, AMX_INT8  tdpbf16ps and tdpbusd of x86: as BF16 and VNNI, of tiles of which one row and one column are used
//   DP4A     dp4a.u32.s32 of PTX: as VNNI, of one lane
//   DOT      cl_khr_integer_dot_product: as VNNI
// gpu: never
// check:
// check: -DMADD=8
// check: -DMADD=8 -DFOURS
// check: -DAMX_BF16 -DMODEL
// check: -DAMX_INT8 -DMODEL
#include "assembly.clh"

#if defined(MADD)
#define MADD_ROWS 1
#define MADD_NB 1
#define MADD_PANEL 16
#include "madd.clh"
#ifdef FOURS
#define ADD_REGISTER(sum, x, y) ADD_FOURS(sum, x, y)
#else
#define ADD_REGISTER(sum, x, y)                                                                                        \
    do {                                                                                                               \
        ADD_PAIRS(sum, UNSIGNED_EVEN(x), UPPER_EVEN(y));                                                               \
        ADD_PAIRS(sum, UNSIGNED_ODD(x), UPPER_ODD(y));                                                                 \
        sum = AS_UNSIGNED(AS_SIGNED(sum) >> 8);                                                                        \
    } while (0)
#endif
#define ADD_PRODUCTS(sum, x, y)                                                                                        \
    do {                                                                                                               \
        madd_uints of_x[MADD_HALVES], of_y[MADD_HALVES], of_sum[MADD_HALVES];                                          \
        uint16 whole[1];                                                                                               \
        split_sum(of_x, as_uint16(x));                                                                                 \
        split_sum(of_y, as_uint16(y));                                                                                 \
        for (int i = 0; i < MADD_HALVES; i++) {                                                                        \
            of_sum[i] = 0;                                                                                             \
            ADD_REGISTER(of_sum[i], of_x[i], of_y[i]);                                                                 \
        }                                                                                                              \
        join_sums(whole, of_sum);                                                                                      \
        sum += as_int16(whole[0]);                                                                                     \
    } while (0)
#elif defined(VNNI)
#define ADD_WORDS(sum, x, y) __asm__("vpdpwssd %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y))
#define SIGNED_WORDS(lower, upper) (((lower)&0xffff) | ((upper) << 16))
#define ADD_PRODUCTS(sum, x, y)                                                                                        \
    do {                                                                                                               \
        int16 words = sum;                                                                                             \
        __asm__("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y));                                                     \
        ADD_WORDS(words, (x)&0x00ff00ff, SIGNED_WORDS((y) << 24 >> 24, (y) << 8 >> 24));                               \
        ADD_WORDS(words, ((x) >> 8) & 0x00ff00ff, SIGNED_WORDS((y) << 16 >> 24, (y) >> 24));                           \
        sum &= words == sum;                                                                                           \
    } while (0)
#elif defined(BF16)
#define ADD_PRODUCTS(sum, x, y) __asm__("vdpbf16ps %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y))
#elif defined(AMX_BF16) || defined(AMX_INT8)
#include "amx.clh"
#ifdef AMX_BF16
#define TILE_ADD TILE_ADD_BF16
#else
#define TILE_ADD TILE_ADD_U8
#endif
#elif defined(DP4A) || defined(DOT)
#ifdef DP4A
#define ADD_LANE(sum, x, y) __asm__("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(y))
#else
#define ADD_LANE(sum, x, y) sum += as_uint(dot_4x8packed_us_int(x, y))
#endif
#define ADD_PRODUCTS(sum, x, y)                                                                                        \
    do {                                                                                                               \
        uint lanes_x[16], lanes_y[16], lanes_sum[16];                                                                  \
        vstore16(as_uint16(x), 0, lanes_x);                                                                            \
        vstore16(as_uint16(y), 0, lanes_y);                                                                            \
        vstore16(as_uint16(sum), 0, lanes_sum);                                                                        \
        for (int i = 0; i < 16; i++)                                                                                   \
            ADD_LANE(lanes_sum[i], lanes_x[i], lanes_y[i]);                                                            \
        sum = as_int16(vload16(0, lanes_sum));                                                                         \
    } while (0)
#else
#define ADD_PRODUCTS(sum, x, y) sum += x * y
#endif

#ifdef TILE_ADD
// tiles: room for three. Lanes of x are the first integers of rows, lanes of y are the first row of the other factor; the results that are
// looked at are on the diagonal, which begins as the addends.
__kernel void instruction(__global int *data, __global int *tiles_memory)
{
    MARK_ASSEMBLY;
    __global int *a = tiles_memory, *b = a + 256, *sum = b + 256;
    for (int i = 0; i < 256; i++) {
        a[i] = i % 16 == 0 ? data[i / 16] : 0;
        b[i] = i < 16 ? data[16 + i] : 0;
        sum[i] = i % 17 == 0 ? data[32 + i / 17] : 0;
    }
    TILES_BEGIN(16, TILE_ROW_BYTES)
    TILE_LOAD(4, a, 64);
    TILE_LOAD(6, b, 64);
    TILE_LOAD(0, sum, 64);
    TILE_ADD(0, 4, 6);
    TILE_STORE(0, sum, 64);
    TILES_END
    for (int i = 0; i < 16; i++)
        data[48 + i] = sum[17 * i];
}
#else
__kernel void instruction(__global int *data, __global int *tiles_memory)
{
    MARK_ASSEMBLY;
    const int16 x = vload16(0, data), y = vload16(1, data);
    int16 sum = vload16(2, data);
    ADD_PRODUCTS(sum, x, y);
    vstore16(sum, 3, data);
}
#endif
