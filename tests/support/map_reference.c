/* SPDX-License-Identifier: Apache-2.0 */
#include "support/map_reference.h"
#include "support/op_values.h"
#include <math.h>

static double unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double sign_of(double x)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static double soft_plus(double x)
{
    return x > 30 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double reference_more(rnl_map_op op, double x, double p0, double p1)
{
    switch (op) {
    case RNL_MAP_TAN:
        return tan(x);
    case RNL_MAP_ASIN:
        return asin(x);
    case RNL_MAP_ACOS:
        return acos(x);
    case RNL_MAP_ATAN:
        return atan(x);
    case RNL_MAP_SINH:
        return sinh(x);
    case RNL_MAP_COSH:
        return cosh(x);
    case RNL_MAP_ASINH:
        return asinh(x);
    case RNL_MAP_ACOSH:
        return acosh(x);
    case RNL_MAP_ATANH:
        return atanh(x);
    case RNL_MAP_CELU:
        return x < 0 ? p0 * expm1(x / p0) : x;
    case RNL_MAP_MISH:
        return x * tanh(soft_plus(x));
    case RNL_MAP_SWISH:
        return x / (1 + exp(-p0 * x));
    case RNL_MAP_SHRINK:
        return x < -p1 ? x + p0 : x > p1 ? x - p0 : 0;
    case RNL_MAP_THRESHOLDED_RELU:
        return x > p0 ? x : 0;
    default:
        return x;
    }
}

static double reference_1(const map_launch *launch, double x)
{
    const double p0 = launch->p0, p1 = launch->p1;
    switch (launch->op) {
    case RNL_MAP_NEG:
        return -x;
    case RNL_MAP_ABS:
        return fabs(x);
    case RNL_MAP_SIGN:
        return sign_of(x);
    case RNL_MAP_SQRT:
        return sqrt(x);
    case RNL_MAP_RECIPROCAL:
        return 1 / x;
    case RNL_MAP_EXP:
        return exp(x);
    case RNL_MAP_LOG:
        return log(x);
    case RNL_MAP_TANH:
        return tanh(x);
    case RNL_MAP_SIGMOID:
        return 1 / (1 + exp(-x));
    case RNL_MAP_RELU:
        return x < 0 ? 0 : x;
    case RNL_MAP_LEAKY_RELU:
        return x < 0 ? p0 * x : x;
    case RNL_MAP_ELU:
        return x < 0 ? p0 * expm1(x) : x;
    case RNL_MAP_SELU:
        return x < 0 ? p1 * (p0 * exp(x) - p0) : p1 * x;
    case RNL_MAP_SOFTPLUS:
        return soft_plus(x);
    case RNL_MAP_SOFTSIGN:
        return x / (1 + fabs(x));
    case RNL_MAP_ERF:
        return erf(x);
    case RNL_MAP_GELU:
    case RNL_MAP_GELU_SUM:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case RNL_MAP_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case RNL_MAP_HARD_SIGMOID:
        return unit(p0 * x + p1);
    case RNL_MAP_HARD_SWISH:
        return x * unit(x / 6 + 0.5);
    case RNL_MAP_FLOOR:
        return floor(x);
    case RNL_MAP_CEIL:
        return ceil(x);
    case RNL_MAP_ROUND:
        return nearbyint(x);
    case RNL_MAP_SIN:
        return sin(x);
    case RNL_MAP_COS:
        return cos(x);
    default:
        return reference_more(launch->op, x, p0, p1);
    }
}

static double python_mod(double a, double b)
{
    const double rest = fmod(a, b);
    return rest != 0 && signbit(rest) != signbit(b) ? rest + b : rest;
}

static double reference_2(const map_launch *launch, double a, double b)
{
    switch (launch->op) {
    case RNL_MAP_ADD:
        return a + b;
    case RNL_MAP_SUB:
        return a - b;
    case RNL_MAP_MUL:
        return a * b;
    case RNL_MAP_DIV:
        return a / b;
    case RNL_MAP_POW:
        return pow(a, b);
    case RNL_MAP_MOD:
        return python_mod(a, b);
    case RNL_MAP_FMOD:
        return fmod(a, b);
    case RNL_MAP_MAX:
        return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case RNL_MAP_MIN:
        return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case RNL_MAP_PRELU:
        return a < 0 ? a * b : a;
    case RNL_MAP_SWIGLU:
        return a / (1 + exp(-(double)launch->p0 * a)) * b;
    default:
        return NAN;
    }
}

static op_value reference_float(const map_launch *launch, const op_value *v)
{
    const double x = v[0].f;
    switch (launch->op) {
    case RNL_MAP_ISNAN:
        return op_int(isnan(x) != 0);
    case RNL_MAP_ISINF:
        return op_int(isinf(x) && (x > 0 ? launch->p0 : launch->p1) != 0);
    case RNL_MAP_EQUAL:
        return op_int(x == v[1].f);
    case RNL_MAP_LESS:
        return op_int(x < v[1].f);
    case RNL_MAP_LESS_EQUAL:
        return op_int(x <= v[1].f);
    case RNL_MAP_GREATER:
        return op_int(x > v[1].f);
    case RNL_MAP_GREATER_EQUAL:
        return op_int(x >= v[1].f);
    case RNL_MAP_CLIP:
        return op_float(isnan(x) ? x : fmin(fmax(x, v[1].f), v[2].f));
    case RNL_MAP_NORMALIZE:
        return op_float((x - v[3].f) / sqrt(v[4].f + launch->p0) * v[1].f + v[2].f);
    default:
        return op_float(launch->count == 1 ? reference_1(launch, x) : reference_2(launch, x, v[1].f));
    }
}

double map_reference_float(rnl_map_op op, const double *sources, double p0, double p1)
{
    const map_launch launch = {.op = op, .p0 = (float)p0, .p1 = (float)p1, .count = rnl_map_sources(op)};
    op_value values[RNL_MAP_MAX_SOURCES] = {{0}};
    for (size_t i = 0; i < launch.count; ++i)
        values[i] = op_float(sources[i]);
    return reference_float(&launch, values).f;
}

__extension__ typedef __int128 wide;

static wide int_power(wide base, wide exponent)
{
    uint64_t result = 1; /* every type's wrapped result is this one's lower bits */
    if (exponent < 0)
        return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 ? -1 : 1;
    for (wide i = 0; i < exponent; ++i)
        result *= (uint64_t)base;
    return result;
}

static wide int_mod(wide a, wide b)
{
    const wide rest = b ? a % b : 0;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static wide int_shift(wide a, wide b, int bits, bool left)
{
    if (b < 0 || b >= bits)
        return left || a >= 0 ? 0 : -1;
    return left ? (wide)((uint64_t)a << b) : a >> b;
}

/* In parts of 2^30, of which float parameters are whole numbers. */
static wide int_shrink(wide x, double bias, double bound)
{
    const wide part = (wide)1 << 30, at = x * part;
    const wide added = (wide)(bias * 0x1p30), limit = (wide)(bound * 0x1p30);
    return at < -limit ? (at + added) / part : at > limit ? (at - added) / part : 0;
}

static wide reference_bits(rnl_map_op op, wide a, wide b)
{
    switch (op) {
    case RNL_MAP_BIT_NOT:
        return ~a;
    case RNL_MAP_BIT_AND:
        return a & b;
    case RNL_MAP_BIT_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* In 128 bits nothing overflows; the harness wraps to the type. */
static wide reference_int(rnl_map_op op, wide a, wide b, wide c)
{
    switch (op) {
    case RNL_MAP_NEG:
        return -a;
    case RNL_MAP_ABS:
        return a < 0 ? -a : a;
    case RNL_MAP_SIGN:
        return (a > 0) - (a < 0);
    case RNL_MAP_RELU:
        return a < 0 ? 0 : a;
    case RNL_MAP_NOT:
        return !a;
    case RNL_MAP_ADD:
        return a + b;
    case RNL_MAP_SUB:
        return a - b;
    case RNL_MAP_MUL:
        return (uint64_t)a * (uint64_t)b;
    case RNL_MAP_DIV:
        return b ? a / b : 0;
    case RNL_MAP_POW:
        return int_power(a, b);
    case RNL_MAP_MOD:
        return int_mod(a, b);
    case RNL_MAP_FMOD:
        return b ? a % b : 0;
    case RNL_MAP_MAX:
        return a > b ? a : b;
    case RNL_MAP_MIN:
        return a < b ? a : b;
    case RNL_MAP_PRELU:
        return a < 0 ? (wide)((uint64_t)a * (uint64_t)b) : a;
    case RNL_MAP_EQUAL:
        return a == b;
    case RNL_MAP_LESS:
        return a < b;
    case RNL_MAP_LESS_EQUAL:
        return a <= b;
    case RNL_MAP_GREATER:
        return a > b;
    case RNL_MAP_GREATER_EQUAL:
        return a >= b;
    case RNL_MAP_AND:
        return a && b;
    case RNL_MAP_OR:
        return a || b;
    case RNL_MAP_XOR:
        return !a != !b;
    case RNL_MAP_CLIP:
        return a < b ? (b > c ? c : b) : a > c ? c : a;
    default:
        return reference_bits(op, a, b);
    }
}

static op_value reference_cast(rnl_dtype from, rnl_dtype to, op_value v)
{
    if (!op_is_float(from))
        return from == RNL_U64 ? (op_value){.f = (double)(uint64_t)v.i, .i = to == RNL_BOOL ? v.i != 0 : v.i}
                               : (op_value){.f = (double)v.i, .i = to == RNL_BOOL ? v.i != 0 : v.i};
    if (to == RNL_BOOL)
        return op_int(!(v.f == 0));
    if (op_is_float(to))
        return v;
    if (to == RNL_U64)
        return op_int((int64_t)(isnan(v.f) || v.f <= 0 ? 0 : v.f >= 0x1p64 ? UINT64_MAX : (uint64_t)v.f));
    const double low = (double)op_int_limit(to, false), end = (double)op_int_limit(to, true) + 1;
    if (isnan(v.f))
        return op_int(0);
    if (to == RNL_I64)
        return op_int(v.f <= low ? INT64_MIN : v.f >= 0x1p63 ? INT64_MAX : (int64_t)v.f);
    return op_int((int64_t)(v.f <= low ? low : v.f >= end ? end - 1 : v.f));
}

static wide exact(const op_tensor *tensor, op_value value)
{
    return tensor->view.dtype == RNL_U64 ? (wide)(uint64_t)value.i : (wide)value.i;
}

op_value map_reference(void *user, const int64_t *at)
{
    const map_launch *launch = user;
    op_value v[RNL_MAP_MAX_SOURCES] = {{0}};
    wide whole[RNL_MAP_MAX_SOURCES] = {0};
    for (size_t i = 0; i < launch->count; ++i) {
        v[i] = op_get_broadcast(launch->src[i], launch->dst->view.rank, at);
        whole[i] = exact(launch->src[i], v[i]);
    }
    const rnl_dtype type = launch->src[0]->view.dtype;
    if (launch->op == RNL_MAP_COPY)
        return reference_cast(type, launch->dst->view.dtype, v[0]);
    if (launch->op == RNL_MAP_SELECT)
        return v[0].i ? v[1] : v[2];
    if (op_is_float(type))
        return reference_float(launch, v);
    if (launch->op == RNL_MAP_POW && op_is_float(launch->src[1]->view.dtype))
        return op_int((int64_t)pow(v[0].f, v[1].f));
    if (launch->op == RNL_MAP_SHIFT_LEFT || launch->op == RNL_MAP_SHIFT_RIGHT)
        return (op_value){.i = (int64_t)int_shift(whole[0], whole[1], (int)rnl_dtype_bytes(type) * 8,
                                                  launch->op == RNL_MAP_SHIFT_LEFT)};
    if (launch->op == RNL_MAP_SHRINK)
        return (op_value){.i = (int64_t)int_shrink(whole[0], launch->p0, launch->p1)};
    return (op_value){.i = (int64_t)reference_int(launch->op, whole[0], whole[1], whole[2])};
}
