/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <math.h>
#include <string.h>

float rnl_half_to_float(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    int mantissa = bits & 1023;
    float magnitude;
    if (exponent == 31)
        magnitude = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)mantissa, -24);
    else
        magnitude = ldexpf((float)(mantissa + 1024), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t rnl_half_from_float(float value)
{
    int exponent;
    unsigned sign = signbit(value) ? 0x8000 : 0;
    float magnitude = fabsf(value);
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 65520.0f) /* the midpoint between the largest half and 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude == 0)
        return (uint16_t)sign;
    (void)frexpf(magnitude, &exponent);
    /* The step between neighbours is 2^(exponent - 11), and never less than a subnormal's 2^-24. */
    int step = exponent - 11 < -24 ? -24 : exponent - 11;
    unsigned units = (unsigned)lrintf(ldexpf(magnitude, -step));
    /* The implied bit and a rounding carry add themselves into the exponent. */
    return (uint16_t)(sign | (((unsigned)(step + 24) << 10) + units));
}

float rnl_bfloat_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t rnl_bfloat_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
