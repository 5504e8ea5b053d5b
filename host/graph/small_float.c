/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/small_float.h"

#include <math.h>

#define E8M0_BIAS 127
#define E8M0_NAN 0xff

/* A sign, an exponent, a mantissa. Codes are without the sign. */
typedef struct format {
    int bits, mantissa_bits, bias;
    uint8_t highest, infinity; /* `infinity`: what lies beyond the highest; NaN in formats that have no infinity */
    uint8_t nan;
    bool unsigned_zero; /* the code of -0 is the only NaN */
} format;

static format format_of(rnl_dtype dtype)
{
    switch (dtype) {
    case RNL_F8E4M3FN:
        return (format){8, 3, 7, 0x7e, 0x7f, 0x7f, false};
    case RNL_F8E4M3FNUZ:
        return (format){8, 3, 8, 0x7f, 0x80, 0x80, true};
    case RNL_F8E5M2:
        return (format){8, 2, 15, 0x7b, 0x7c, 0x7e, false};
    case RNL_F8E5M2FNUZ:
        return (format){8, 2, 16, 0x7f, 0x80, 0x80, true};
    default: /* RNL_F4E2M1 has neither infinity nor NaN */
        return (format){4, 1, 1, 0x7, 0x7, 0x0, false};
    }
}

bool rnl_dtype_is_small_float(rnl_dtype dtype)
{
    return (RNL_TYPES_SMALL_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

uint8_t rnl_small_float_highest(rnl_dtype dtype)
{
    return dtype == RNL_F8E8M0 ? E8M0_NAN - 1 : format_of(dtype).highest;
}

static bool is_nan(rnl_dtype dtype, format f, unsigned magnitude, unsigned sign)
{
    if (f.unsigned_zero)
        return sign && magnitude == 0;
    return dtype == RNL_F8E4M3FN ? magnitude == f.nan : dtype == RNL_F8E5M2 && magnitude > f.infinity;
}

double rnl_small_float_decode(rnl_dtype dtype, uint8_t code)
{
    if (dtype == RNL_F8E8M0)
        return code == E8M0_NAN ? (double)NAN : ldexp(1, code - E8M0_BIAS);
    format f = format_of(dtype);
    unsigned sign = code >> (f.bits - 1) & 1, magnitude = code & ((1u << (f.bits - 1)) - 1);
    int exponent = (int)(magnitude >> f.mantissa_bits);
    int mantissa = (int)magnitude & ((1 << f.mantissa_bits) - 1);
    double value;
    if (is_nan(dtype, f, magnitude, sign))
        value = (double)NAN;
    else if (dtype == RNL_F8E5M2 && magnitude == f.infinity)
        value = (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    else
        value = ldexp(mantissa + (1 << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
    return sign ? -value : value;
}

/* Negative numbers, for which ONNX says nothing, as their magnitude. */
static uint8_t encode_power(double magnitude, rnl_narrowing narrowing)
{
    if (isnan(magnitude))
        return E8M0_NAN;
    if (magnitude < ldexp(1, -E8M0_BIAS))
        return narrowing.saturate ? 0 : E8M0_NAN;
    if (magnitude > ldexp(2, E8M0_BIAS)) /* infinity, too, has no exponent that could be counted up */
        return narrowing.saturate ? E8M0_NAN - 1 : E8M0_NAN;
    int exponent = ilogb(magnitude);
    double rest = ldexp(magnitude, -exponent); /* 1 or more, less than 2 */
    if (narrowing.mode == RNL_ROUND_UP ? rest > 1 : narrowing.mode == RNL_ROUND_NEAREST && rest >= 1.5)
        exponent++;
    if (exponent > E8M0_BIAS)
        return narrowing.saturate ? E8M0_NAN - 1 : E8M0_NAN;
    return (uint8_t)(exponent + E8M0_BIAS);
}

/* The magnitude's code, which may be beyond the highest. */
static long round_even(double magnitude, format f)
{
    if (magnitude == 0)
        return 0;
    int exponent = ilogb(magnitude);
    if (exponent < 1 - f.bias)
        exponent = 1 - f.bias;
    /* In units of the last place; adding it to the exponent field carries a mantissa that rounds up. */
    long units = lrint(ldexp(magnitude, f.mantissa_bits - exponent));
    return ((long)(exponent + f.bias - 1) << f.mantissa_bits) + units;
}

uint8_t rnl_small_float_encode(rnl_dtype dtype, double value, rnl_narrowing narrowing)
{
    if (dtype == RNL_F8E8M0)
        return encode_power(fabs(value), narrowing);
    format f = format_of(dtype);
    unsigned sign = signbit(value) ? 1u << (f.bits - 1) : 0;
    unsigned code;
    if (isnan(value)) {
        code = f.nan;
    } else {
        long rounded = isinf(value) ? 1 + (long)f.highest : round_even(fabs(value), f);
        code = rounded <= f.highest ? (unsigned)rounded : narrowing.saturate ? f.highest : f.infinity;
    }
    if (f.unsigned_zero && (code == 0 || code == f.nan))
        return (uint8_t)code;
    return (uint8_t)(code | sign);
}
