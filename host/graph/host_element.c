/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/small_float.h"
#include <float.h>
#include <math.h>
#include <string.h>

rnl_number_kind rnl_dtype_kind(rnl_dtype dtype)
{
    if ((RNL_TYPES_FLOAT_64 | RNL_TYPES_SMALL_FLOAT) & RNL_TYPE_BIT(dtype))
        return RNL_NUMBER_FLOAT;
    return (RNL_TYPES_SIGNED | RNL_TYPES_SMALL_SIGNED) & RNL_TYPE_BIT(dtype) ? RNL_NUMBER_SIGNED : RNL_NUMBER_UNSIGNED;
}

/* IEEE-like formats of 16 bits, given by the bits of the mantissa: 10 for f16, 7 for bf16. */
static double decode_16(uint16_t bits, int mantissa_bits)
{
    int exponent_bits = 15 - mantissa_bits, exponent_max = (1 << exponent_bits) - 1;
    int exponent = (bits >> mantissa_bits) & exponent_max;
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    int bias = exponent_max / 2;
    double value;
    if (exponent == exponent_max)
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return bits & 0x8000 ? -value : value;
}

static uint16_t encode_16(double value, int mantissa_bits)
{
    int exponent_bits = 15 - mantissa_bits, exponent_max = (1 << exponent_bits) - 1, bias = exponent_max / 2;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)(exponent_max << mantissa_bits);
    double magnitude = fabs(value);
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1 << (mantissa_bits - 1));
    if (magnitude == 0 || isinf(magnitude))
        return (uint16_t)(sign | (magnitude == 0 ? 0 : infinity));
    int exponent = ilogb(magnitude);
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    /* In units of the last place; adding it to the exponent field carries a mantissa that rounds up. */
    long units = lrint(ldexp(magnitude, mantissa_bits - exponent));
    long bits = ((long)(exponent + bias - 1) << mantissa_bits) + units;
    return (uint16_t)(sign | (bits > infinity ? infinity : bits));
}

/* The low bits of a byte, as a float's code or an integer. */
static rnl_number load_small(uint8_t byte, rnl_dtype dtype)
{
    rnl_number number = {.u = 0};
    unsigned width = (unsigned)rnl_dtype_width(dtype), code = byte & (0xffu >> (8 - width));
    if (rnl_dtype_is_small_float(dtype))
        number.f = rnl_small_float_decode(dtype, (uint8_t)code);
    else if (rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED)
        number.i = (int64_t)code - (code >> (width - 1) ? INT64_C(1) << width : 0);
    else
        number.u = code;
    return number;
}

/* Integers wrap, and signed ones fill the byte with their sign. */
static uint8_t store_small(rnl_number number, rnl_dtype dtype)
{
    rnl_narrowing narrowing = RNL_NARROWING_DEFAULT;
    narrowing.saturate = !isinf(number.f); /* so that what was loaded is stored as it was */
    if (rnl_dtype_is_small_float(dtype))
        return rnl_small_float_encode(dtype, number.f, narrowing);
    number = load_small((uint8_t)number.u, dtype);
    return (uint8_t)number.u;
}

#define LOAD(type, field)                                                                                              \
    {                                                                                                                  \
        type value;                                                                                                    \
        memcpy(&value, (const char *)data + (size_t)index * sizeof value, sizeof value);                               \
        number.field = value;                                                                                          \
        return number;                                                                                                 \
    }

rnl_number rnl_element_load(const void *data, int64_t index, rnl_dtype dtype)
{
    rnl_number number = {.u = 0};
    uint16_t half;
    switch (dtype) {
    case RNL_F32:
        LOAD(float, f)
    case RNL_F64:
        LOAD(double, f)
    case RNL_F16:
    case RNL_BF16:
        memcpy(&half, (const char *)data + (size_t)index * sizeof half, sizeof half);
        number.f = decode_16(half, dtype == RNL_F16 ? 10 : 7);
        return number;
    case RNL_I8:
        LOAD(int8_t, i)
    case RNL_I16:
        LOAD(int16_t, i)
    case RNL_I32:
        LOAD(int32_t, i)
    case RNL_I64:
        LOAD(int64_t, i)
    case RNL_U8:
        LOAD(uint8_t, u)
    case RNL_U16:
        LOAD(uint16_t, u)
    case RNL_U32:
        LOAD(uint32_t, u)
    case RNL_U64:
        LOAD(uint64_t, u)
    case RNL_BOOL:
        number.u = ((const unsigned char *)data)[index] != 0;
        return number;
    case RNL_DTYPE_NONE:
        return number;
    default:
        return load_small(((const uint8_t *)data)[index], dtype);
    }
}

#define STORE(type, field)                                                                                             \
    {                                                                                                                  \
        type value = (type)number.field;                                                                               \
        memcpy((char *)data + (size_t)index * sizeof value, &value, sizeof value);                                     \
        return;                                                                                                        \
    }

/* An integer's low bytes are its wrapped value, signed or not. */
void rnl_element_store(void *data, int64_t index, rnl_dtype dtype, rnl_number number)
{
    uint16_t half;
    switch (dtype) {
    case RNL_F32:
        STORE(float, f)
    case RNL_F64:
        STORE(double, f)
    case RNL_F16:
    case RNL_BF16:
        half = encode_16(number.f, dtype == RNL_F16 ? 10 : 7);
        memcpy((char *)data + (size_t)index * sizeof half, &half, sizeof half);
        return;
    case RNL_I8:
    case RNL_U8:
        STORE(uint8_t, u)
    case RNL_I16:
    case RNL_U16:
        STORE(uint16_t, u)
    case RNL_I32:
    case RNL_U32:
        STORE(uint32_t, u)
    case RNL_I64:
    case RNL_U64:
        STORE(uint64_t, u)
    case RNL_BOOL:
        ((unsigned char *)data)[index] = number.u != 0;
        return;
    case RNL_DTYPE_NONE:
        return;
    default:
        ((uint8_t *)data)[index] = store_small(number, dtype);
    }
}

static int value_bits(rnl_dtype dtype)
{
    return (int)rnl_dtype_width(dtype) - (rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED);
}

rnl_number rnl_number_lowest(rnl_dtype dtype)
{
    rnl_number number = rnl_number_highest(dtype);
    if (rnl_dtype_kind(dtype) == RNL_NUMBER_FLOAT)
        number.f = -number.f;
    else if (rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED)
        number.i = -number.i - 1;
    else
        number.u = 0;
    return number;
}

rnl_number rnl_number_highest(rnl_dtype dtype)
{
    rnl_number number = {.u = 1};
    if (dtype == RNL_F64)
        number.f = DBL_MAX;
    else if (dtype == RNL_F32)
        number.f = (double)FLT_MAX;
    else if (dtype == RNL_F16 || dtype == RNL_BF16)
        number.f = decode_16(dtype == RNL_F16 ? 0x7bff : 0x7f7f, dtype == RNL_F16 ? 10 : 7);
    else if (rnl_dtype_is_small_float(dtype))
        number.f = rnl_small_float_decode(dtype, rnl_small_float_highest(dtype));
    else if (dtype != RNL_BOOL)
        number.u = UINT64_MAX >> (64 - value_bits(dtype));
    return number;
}

/* Integers of less than a byte wrap, as ONNX's reference does it, those of a byte and more saturate. */
static rnl_number float_to_integer(double value, rnl_dtype to)
{
    rnl_number number = {.u = 0};
    if (rnl_dtype_width(to) < 8)
        to = RNL_I32;
    double limit = ldexp(1, value_bits(to)); /* one past the greatest */
    if (to == RNL_BOOL)
        number.u = value != 0; /* NaN is true */
    else if (isnan(value))
        number.u = 0;
    else if (value >= limit)
        number = rnl_number_highest(to);
    else if (rnl_dtype_kind(to) == RNL_NUMBER_UNSIGNED)
        number.u = value <= 0 ? 0 : (uint64_t)value;
    else if (value <= -limit)
        number = rnl_number_lowest(to);
    else
        number.i = (int64_t)value;
    return number;
}

double rnl_number_double(rnl_number number, rnl_dtype dtype)
{
    switch (rnl_dtype_kind(dtype)) {
    case RNL_NUMBER_SIGNED:
        return (double)number.i;
    case RNL_NUMBER_UNSIGNED:
        return (double)number.u;
    case RNL_NUMBER_FLOAT:
        break;
    }
    return number.f;
}

/* The lowest bits as one, so that a double holds the number and rounds on to the type as the number itself would. */
static double sticky(rnl_number number, bool is_signed)
{
    bool negative = is_signed && number.i < 0;
    uint64_t magnitude = negative ? 0 - number.u : number.u;
    if (magnitude >> 53)
        magnitude = (magnitude & ~UINT64_C(0xfff)) | (magnitude & 0xfff ? 0x800 : 0);
    return negative ? -(double)magnitude : (double)magnitude;
}

rnl_number rnl_number_convert(rnl_number number, rnl_dtype from, rnl_dtype to)
{
    if (rnl_dtype_kind(from) == RNL_NUMBER_FLOAT)
        return rnl_dtype_kind(to) == RNL_NUMBER_FLOAT ? number : float_to_integer(number.f, to);
    if (rnl_dtype_kind(to) != RNL_NUMBER_FLOAT)
        return number; /* the store wraps */
    bool is_signed = rnl_dtype_kind(from) == RNL_NUMBER_SIGNED;
    if (rnl_dtype_is_small_float(to))
        return (rnl_number){.f = sticky(number, is_signed)};
    if (to == RNL_F32) /* rounded once, not first to a double */
        return (rnl_number){.f = (double)(is_signed ? (float)number.i : (float)number.u)};
    return (rnl_number){.f = rnl_number_double(number, from)};
}

double rnl_float_max(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

double rnl_float_min(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

void rnl_dense_strides(const int64_t *shape, size_t rank, int64_t *out_stride)
{
    uint64_t stride = 1; /* may wrap where another dimension is 0; it is not used then */
    for (size_t i = rank; i-- > 0;) {
        out_stride[i] = (int64_t)stride;
        stride *= (uint64_t)shape[i];
    }
}

void rnl_walk_init(rnl_walk *walk, const int64_t *shape, size_t rank)
{
    *walk = (rnl_walk){.rank = rank};
    for (size_t i = 0; i < rank; i++)
        walk->shape[i] = shape[i];
    if (!rnl_shape_elements(shape, rank, &walk->left))
        walk->left = 0;
}

void rnl_walk_add(rnl_walk *walk, const int64_t *shape, size_t rank)
{
    int64_t dense[RNL_MAX_RANK];
    rnl_dense_strides(shape, rank, dense);
    int64_t *stride = walk->stride[walk->operands++];
    for (size_t i = 0; i < rank; i++)
        stride[walk->rank - rank + i] = shape[i] == 1 ? 0 : dense[i];
}

void rnl_walk_next(rnl_walk *walk)
{
    walk->left--;
    for (size_t axis = walk->rank; axis-- > 0;) {
        bool carry = ++walk->index[axis] == walk->shape[axis];
        for (size_t i = 0; i < walk->operands; i++)
            walk->at[i] += walk->stride[i][axis] * (carry ? 1 - walk->shape[axis] : 1);
        if (!carry)
            return;
        walk->index[axis] = 0;
    }
}

rnl_status rnl_evaluate_begin(const rnl_op_context *context)
{
    for (size_t i = 0; i < context->input_count; i++)
        if (rnl_input_exists(context, i) && !rnl_desc_known(&context->inputs[i]))
            return FAIL(RNL_FAILED_PRECONDITION, "the contents of input %zu of %s are not known while planning", i,
                        context->node->op_type);
    return RNL_OK;
}
