/* SPDX-License-Identifier: Apache-2.0 */
/* Element values of every type, converted in float64; and the seeded numbers. */
#include "support/op_values.h"
#include "support/op_bench.h"
#include <math.h>
#include <string.h>

static uint64_t random_state = 1;

void op_seed(uint64_t seed)
{
    random_state = seed;
}

uint64_t op_random(void) /* splitmix64 */
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double op_random_between(double low, double high)
{
    return low + (high - low) * ((double)(op_random() >> 11) / 9007199254740992.0);
}

op_value op_float(double value)
{
    return (op_value){.f = value};
}

op_value op_int(int64_t value)
{
    return (op_value){.f = (double)value, .i = value};
}

/* Rounds to a 16-bit float with that many mantissa bits, to nearest even. */
static uint16_t small_float_bits(double value, int mantissa, int bias)
{
    const uint32_t sign = signbit(value) ? 0x8000u : 0, infinity = (2u * (uint32_t)bias + 1u) << mantissa;
    const double size = fabs(value);
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1u << (mantissa - 1));
    if (size == 0 || isinf(size))
        return (uint16_t)(sign | (size == 0 ? 0 : infinity));
    int exponent = 0;
    frexp(size, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    if (exponent > bias)
        return (uint16_t)(sign | infinity);
    const double units = nearbyint(ldexp(size, mantissa - exponent));
    /* A full mantissa carries into the exponent, up to infinity's bits. */
    return (uint16_t)(sign | (((uint32_t)(exponent + bias - 1) << mantissa) + (uint32_t)units));
}

static double small_float_value(uint16_t bits, int mantissa, int bias)
{
    const int exponent = (bits & 0x7fff) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
    double size = 0;
    if (exponent == 2 * bias + 1)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, 1 - bias - mantissa);
    else
        size = ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    return bits & 0x8000 ? -size : size;
}

#define LOAD_AS(type, at)                                                                                              \
    type value;                                                                                                        \
    memcpy(&value, at, sizeof value);

op_value op_decode(rnl_dtype dtype, const void *at)
{
    switch (dtype) {
#define INTEGER(name, type)                                                                                            \
    case RNL_##name: {                                                                                                 \
        LOAD_AS(type, at)                                                                                              \
        return (op_value){.f = (double)value, .i = (int64_t)value};                                                    \
    }
        OP_INTEGER_TYPES(INTEGER)
#undef INTEGER
    case RNL_BOOL: {
        LOAD_AS(uint8_t, at)
        return op_int(value != 0);
    }
    case RNL_F32: {
        LOAD_AS(float, at)
        return op_float(value);
    }
    case RNL_F64: {
        LOAD_AS(double, at)
        return op_float(value);
    }
    case RNL_F16: {
        LOAD_AS(uint16_t, at)
        return op_float(small_float_value(value, 10, 15));
    }
    case RNL_BF16: {
        LOAD_AS(uint16_t, at)
        return op_float(small_float_value(value, 7, 127));
    }
    default:
        break;
    }
    return op_float(NAN);
}

void op_encode(rnl_dtype dtype, op_value from, void *at)
{
    switch (dtype) {
#define INTEGER(name, type)                                                                                            \
    case RNL_##name: {                                                                                                 \
        const type value = (type)from.i;                                                                               \
        memcpy(at, &value, sizeof value);                                                                              \
        return;                                                                                                        \
    }
        OP_INTEGER_TYPES(INTEGER)
#undef INTEGER
    case RNL_BOOL:
        memcpy(at, &(uint8_t){from.i != 0}, 1);
        return;
    case RNL_F32:
        memcpy(at, &(float){(float)from.f}, 4);
        return;
    case RNL_F64:
        memcpy(at, &from.f, 8);
        return;
    case RNL_F16:
        memcpy(at, &(uint16_t){small_float_bits(from.f, 10, 15)}, 2);
        return;
    case RNL_BF16:
        memcpy(at, &(uint16_t){small_float_bits(from.f, 7, 127)}, 2);
        return;
    default:
        break;
    }
}

op_value op_round(rnl_dtype dtype, op_value value)
{
    unsigned char bytes[8] = {0};
    op_encode(dtype, value, bytes);
    return op_decode(dtype, bytes);
}

bool op_is_float(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F64 || dtype == RNL_F16 || dtype == RNL_BF16;
}

double op_largest(rnl_dtype dtype)
{
    switch (dtype) {
    case RNL_F16:
        return 65504;
    case RNL_BF16:
        return 0x1.fep127;
    case RNL_F64:
        return 0x1.fffffffffffffp1023;
    default:
        return 0x1.fffffep127;
    }
}

double op_smallest_normal(rnl_dtype dtype)
{
    return dtype == RNL_F16 ? 0x1p-14 : dtype == RNL_F64 ? 0x1p-1022 : 0x1p-126;
}

int64_t op_int_limit(rnl_dtype dtype, bool highest)
{
    switch (dtype) {
    case RNL_I8:
        return highest ? INT8_MAX : INT8_MIN;
    case RNL_I16:
        return highest ? INT16_MAX : INT16_MIN;
    case RNL_I32:
        return highest ? INT32_MAX : INT32_MIN;
    case RNL_I64:
        return highest ? INT64_MAX : INT64_MIN;
    case RNL_U8:
        return highest ? UINT8_MAX : 0;
    case RNL_U16:
        return highest ? UINT16_MAX : 0;
    case RNL_U32:
        return highest ? UINT32_MAX : 0;
    case RNL_U64:
        return highest ? -1 : 0;
    default:
        return highest;
    }
}
