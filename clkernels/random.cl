// SPDX-License-Identifier: Apache-2.0
// Random numbers: the elements of dst in row-major order, whatever its strides are. A work-item makes as many as one
// counter gives: four, of F64 two.
//
// Defines:
//   T       type of dst: F32, F16, BF16 or F64
//   NORMAL  1: mean a and standard deviation b; 0: uniform from a on, below b
// check: -DT=F32 -DNORMAL=0
// check: -DT=F16 -DNORMAL=1
// check: -DT=F64 -DUSE_F64 -DNORMAL=1 -DINDEX64
#include "common.clh"
#include "philox.clh"
#include "walk.clh"
#if !defined(T) || !defined(NORMAL)
#error "random.cl needs T and NORMAL"
#endif
typedef COMPUTE(T) value_t;

// Uniform in [0, 1), or Box and Muller's pairs. Small radicands keep all bits of their word.
#ifdef USE_F64
#define EACH 2
static inline double bits(const uint high, const uint low)
{
    return (double)((((ulong)high << 32) | low) >> 11);
}

static inline void numbers(const uint4 words, double *out)
{
    const double first = bits(words.s0, words.s1), second = bits(words.s2, words.s3);
#if NORMAL
    const double radius = sqrt(-2.0 * log((first + 0.5) * 0x1p-53));
    out[0] = radius * cospi(second * 0x1p-52);
    out[1] = radius * sinpi(second * 0x1p-52);
#else
    out[0] = first * 0x1p-53;
    out[1] = second * 0x1p-53;
#endif
}
#else
#define EACH 4
static inline void numbers(const uint4 words, float *out)
{
#if NORMAL
    const float2 radius = sqrt(-2.0f * log((convert_float2(words.s02) + 0.5f) * 0x1p-32f));
    const float2 turn = convert_float2(words.s13 >> 8) * 0x1p-23f;
    const float2 cosines = radius * cospi(turn), sines = radius * sinpi(turn);
    out[0] = cosines.s0; // one by one: oclgrind crashes where a vector of four is stored or made of two
    out[1] = cosines.s1;
    out[2] = sines.s0;
    out[3] = sines.s1;
#else
    const float4 values = convert_float4(words >> 8) * 0x1p-24f;
    out[0] = values.s0;
    out[1] = values.s1;
    out[2] = values.s2;
    out[3] = values.s3;
#endif
}
#endif

// state: the number of this run's first draw, low word first, and the session's key. seeded: the key is (seed, 0).
__kernel void random(__global STORAGE(T) *dst, const idx_t dst_offset, __global const uint *state,
                     const idx_t state_offset, const idx_t count, const int deep, const idx8_t shape,
                     const idx8_t dst_stride, const int ordinal, const int seeded, const int seed, const float a,
                     const float b)
{
    const idx_t item = (idx_t)get_global_id(0), first = item * EACH;
    __global const uint *now = state + state_offset;
    const ulong draw = (((ulong)now[1] << 32) | now[0]) + (ulong)(uint)ordinal;
    const uint2 key = seeded ? (uint2)((uint)seed, 0) : (uint2)(now[2], now[3]);
    const uint4 counter = (uint4)((uint)item, (uint)((ulong)item >> 32), (uint)draw, (uint)(draw >> 32));
    value_t values[EACH];
    if (first >= count)
        return;
    numbers(philox(counter, key), values);
    for (int i = 0; i < EACH && first + i < count; i++) {
        const idx_t to = dst_offset + element_index(first + i, deep, shape, dst_stride);
#if NORMAL
        STORE(T, dst, to, values[i] * (value_t)b + (value_t)a);
#else
        const value_t value = (value_t)a + values[i] * ((value_t)b - (value_t)a);
        STORE(T, dst, to, value >= (value_t)b && a < b ? (value_t)a : value); // it was rounded up
#endif
    }
}
