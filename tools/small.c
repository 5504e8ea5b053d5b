/* SPDX-License-Identifier: Apache-2.0 */
#include "small.h"

#include <math.h>

typedef struct format {
    rnl_dtype dtype;
    int exponent_bits, mantissa_bits, bias;
    int first_special; /* the least code without sign that is no finite number; without one: a code too many */
} format;

static const format formats[] = {
    {RNL_F8E4M3FN, 4, 3, 7, 0x7f},    {RNL_F8E4M3FNUZ, 4, 3, 8, 0x80}, {RNL_F8E5M2, 5, 2, 15, 0x7c},
    {RNL_F8E5M2FNUZ, 5, 2, 16, 0x80}, {RNL_F4E2M1, 2, 1, 1, 0x8},
};

static const format *find(rnl_dtype dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype)
            return &formats[i];
    return NULL;
}

bool rnl_small_is(rnl_dtype dtype)
{
    return dtype >= RNL_F8E4M3FN && rnl_dtype_bytes(dtype) == 1;
}

bool rnl_small_is_float(rnl_dtype dtype)
{
    return dtype == RNL_F8E8M0 || find(dtype);
}

static double float_value(const format *f, int code)
{
    int sign = 1 << (f->exponent_bits + f->mantissa_bits), magnitude = code & (sign - 1);
    int exponent = magnitude >> f->mantissa_bits, mantissa = magnitude & ((1 << f->mantissa_bits) - 1);
    bool negative = (code & sign) != 0;
    if (f->first_special == 0x80 && code == 0x80) /* these have no -0 */
        return (double)NAN;
    if (magnitude >= f->first_special && f->first_special != sign)
        return f->dtype == RNL_F8E5M2 && mantissa == 0 ? (negative ? -(double)INFINITY : (double)INFINITY)
                                                       : (double)NAN;
    double value = exponent ? ldexp(mantissa + (1 << f->mantissa_bits), exponent - f->bias - f->mantissa_bits)
                            : ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return negative ? -value : value;
}

double rnl_small_to_double(rnl_dtype dtype, uint8_t byte)
{
    const format *f = find(dtype);
    if (f)
        return float_value(f, byte);
    switch (dtype) {
    case RNL_F8E8M0:
        return byte == 0xff ? (double)NAN : ldexp(1, byte - 127);
    case RNL_U4:
        return byte & 15;
    case RNL_I4:
        return (byte & 15) - (byte & 8 ? 16 : 0);
    case RNL_U2:
        return byte & 3;
    case RNL_I2:
        return (byte & 3) - (byte & 2 ? 4 : 0);
    default:
        return 0;
    }
}

uint8_t rnl_small_one(rnl_dtype dtype)
{
    const format *f = find(dtype);
    return (uint8_t)(f ? f->bias << f->mantissa_bits : dtype == RNL_F8E8M0 ? 127 : 1);
}
