/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <string.h>

typedef double (*float_fn)(double x, double p0, double p1);
typedef uint64_t (*integer_fn)(uint64_t x, bool is_signed);

static double f_neg(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return -x;
}

static double f_abs(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return fabs(x);
}

static double f_sign(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static double f_reciprocal(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return 1 / x;
}

static double f_sigmoid(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    double e = exp(-fabs(x)); /* never out of range, and small results keep their digits */
    return (x < 0 ? e : 1) / (1 + e);
}

static double f_relu(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return x < 0 ? 0 : x;
}

static double f_leaky_relu(double x, double p0, double p1)
{
    (void)p1;
    return x < 0 ? p0 * x : x;
}

static double f_elu(double x, double p0, double p1)
{
    (void)p1;
    return x < 0 ? p0 * expm1(x) : x;
}

static double f_selu(double x, double p0, double p1)
{
    return p1 * (x <= 0 ? p0 * expm1(x) : x);
}

static double f_softplus(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) + (isnan(x) ? x : 0);
}

static double f_softsign(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return x / (1 + fabs(x));
}

static double f_hard_sigmoid(double x, double p0, double p1)
{
    double y = p0 * x + p1;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double f_hard_swish(double x, double p0, double p1)
{
    (void)p0, (void)p1;
    return x * f_hard_sigmoid(x, 1.0 / 6, 0.5);
}

/* x / 2 * erfc(t), t = -x / sqrt(2): what rounding t lost is put back, since it is many units in the tail. */
static double erf_gelu(double x)
{
    const double root = -0.70710678118654757, rest = 4.8336466567264567e-17, t = x * root;
    const double lost = fma(x, root, -t) + x * rest, slope = -1.1283791670955126 * exp(-t * t);
    return 0.5 * x * (erfc(t) + (t > 1 && t < 30 ? slope * lost : 0));
}

/* Without the cancellation that 1 + tanh(…) has for negative x. */
static double f_gelu(double x, double p0, double p1)
{
    (void)p1;
    if (p0 != 0)
        return x * f_sigmoid(1.59576912160573071176 * (x + 0.044715 * x * x * x), 0, 0);
    return erf_gelu(x);
}

static double f_celu(double x, double p0, double p1)
{
    (void)p1;
    return x < 0 ? p0 * expm1(x / p0) : x;
}

static double f_mish(double x, double p0, double p1)
{
    return x * tanh(f_softplus(x, p0, p1));
}

static double f_swish(double x, double p0, double p1)
{
    return x * f_sigmoid(p0 * x, p0, p1);
}

static double f_thresholded_relu(double x, double p0, double p1)
{
    (void)p1;
    return x > p0 ? x : 0;
}

#define LIBRARY(function)                                                                                              \
    static double f_##function(double x, double p0, double p1)                                                         \
    {                                                                                                                  \
        (void)p0, (void)p1;                                                                                            \
        return function(x);                                                                                            \
    }
LIBRARY(sqrt)
LIBRARY(exp)
LIBRARY(log)
LIBRARY(tanh)
LIBRARY(erf)
LIBRARY(floor)
LIBRARY(ceil)
LIBRARY(rint)
LIBRARY(sin)
LIBRARY(cos)
LIBRARY(tan)
LIBRARY(asin)
LIBRARY(acos)
LIBRARY(atan)
LIBRARY(sinh)
LIBRARY(cosh)
LIBRARY(asinh)
LIBRARY(acosh)
LIBRARY(atanh)

static uint64_t i_neg(uint64_t x, bool is_signed)
{
    (void)is_signed;
    return 0 - x;
}

static uint64_t i_abs(uint64_t x, bool is_signed)
{
    return is_signed && (int64_t)x < 0 ? 0 - x : x;
}

static uint64_t i_sign(uint64_t x, bool is_signed)
{
    return is_signed && (int64_t)x < 0 ? UINT64_MAX : x != 0;
}

static uint64_t i_relu(uint64_t x, bool is_signed)
{
    return is_signed && (int64_t)x < 0 ? 0 : x;
}

static uint64_t i_not(uint64_t x, bool is_signed)
{
    (void)is_signed;
    return !x;
}

static uint64_t i_bit_not(uint64_t x, bool is_signed)
{
    (void)is_signed;
    return ~x;
}

typedef struct unary_row {
    const char *op_type;
    float_fn floats;
    integer_fn integers;
    const char *names[2]; /* float attributes for p0 and p1 */
    float defaults[2];
} unary_row;

static const unary_row rows[] = {
    {"Neg", f_neg, i_neg, {NULL}, {0}},
    {"Abs", f_abs, i_abs, {NULL}, {0}},
    {"Sign", f_sign, i_sign, {NULL}, {0}},
    {"Relu", f_relu, i_relu, {NULL}, {0}},
    {"Not", NULL, i_not, {NULL}, {0}},
    {"Sqrt", f_sqrt, NULL, {NULL}, {0}},
    {"Reciprocal", f_reciprocal, NULL, {NULL}, {0}},
    {"Exp", f_exp, NULL, {NULL}, {0}},
    {"Log", f_log, NULL, {NULL}, {0}},
    {"Tanh", f_tanh, NULL, {NULL}, {0}},
    {"Sigmoid", f_sigmoid, NULL, {NULL}, {0}},
    {"LeakyRelu", f_leaky_relu, NULL, {"alpha"}, {0.01f}},
    {"Elu", f_elu, NULL, {"alpha"}, {1}},
    {"Selu", f_selu, NULL, {"alpha", "gamma"}, {1.67326319217681884765625f, 1.05070102214813232421875f}},
    {"Softplus", f_softplus, NULL, {NULL}, {0}},
    {"Softsign", f_softsign, NULL, {NULL}, {0}},
    {"Erf", f_erf, NULL, {NULL}, {0}},
    {"Gelu", f_gelu, NULL, {NULL}, {0}},
    {"HardSigmoid", f_hard_sigmoid, NULL, {"alpha", "beta"}, {0.2f, 0.5f}},
    {"HardSwish", f_hard_swish, NULL, {NULL}, {0}},
    {"Floor", f_floor, NULL, {NULL}, {0}},
    {"Ceil", f_ceil, NULL, {NULL}, {0}},
    {"Round", f_rint, NULL, {NULL}, {0}},
    {"Sin", f_sin, NULL, {NULL}, {0}},
    {"Cos", f_cos, NULL, {NULL}, {0}},
    {"Tan", f_tan, NULL, {NULL}, {0}},
    {"Asin", f_asin, NULL, {NULL}, {0}},
    {"Acos", f_acos, NULL, {NULL}, {0}},
    {"Atan", f_atan, NULL, {NULL}, {0}},
    {"Sinh", f_sinh, NULL, {NULL}, {0}},
    {"Cosh", f_cosh, NULL, {NULL}, {0}},
    {"Asinh", f_asinh, NULL, {NULL}, {0}},
    {"Acosh", f_acosh, NULL, {NULL}, {0}},
    {"Atanh", f_atanh, NULL, {NULL}, {0}},
    {"Mish", f_mish, NULL, {NULL}, {0}},
    {"Celu", f_celu, NULL, {"alpha"}, {1}},
    {"Swish", f_swish, NULL, {"alpha"}, {1}},
    {"ThresholdedRelu", f_thresholded_relu, NULL, {"alpha"}, {1}},
    {"BitwiseNot", NULL, i_bit_not, {NULL}, {0}},
};

static const unary_row *find_row(const char *op_type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, op_type) == 0)
            return &rows[i];
    return NULL;
}

static void read_parameters(const rnl_node *node, const unary_row *row, double *out_parameters)
{
    for (size_t i = 0; i < 2; i++)
        out_parameters[i] =
            (double)(row->names[i] ? rnl_node_float(node, row->names[i], row->defaults[i]) : row->defaults[i]);
    if (row->floats == f_gelu)
        out_parameters[0] = strcmp(rnl_node_string(node, "approximate", "none"), "tanh") == 0;
}

rnl_status rnl_evaluate_unary(rnl_op_context *context)
{
    double p[2];
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    rnl_number_kind kind = rnl_dtype_kind(input->dtype);
    const unary_row *row = find_row(context->node->op_type);
    if (!row || (kind == RNL_NUMBER_FLOAT ? !row->floats : !row->integers))
        return FAIL(RNL_UNIMPLEMENTED, "%s of %s is not evaluated on the host", context->node->op_type,
                    rnl_dtype_name(input->dtype));
    read_parameters(context->node, row, p);
    for (int64_t i = 0, count = rnl_desc_elements(input); i < count; i++) {
        rnl_number x = rnl_element_load(input->host, i, input->dtype);
        if (kind == RNL_NUMBER_FLOAT)
            x.f = row->floats(x.f, p[0], p[1]);
        else
            x.u = row->integers(x.u, kind == RNL_NUMBER_SIGNED);
        rnl_element_store(context->results[0], i, input->dtype, x);
    }
    return RNL_OK;
}

rnl_status rnl_evaluate_isnan(rnl_op_context *context)
{
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    for (int64_t i = 0, count = rnl_desc_elements(input); i < count; i++) {
        rnl_number x = {.u = isnan(rnl_element_load(input->host, i, input->dtype).f)};
        rnl_element_store(context->results[0], i, RNL_BOOL, x);
    }
    return RNL_OK;
}

rnl_status rnl_evaluate_isinf(rnl_op_context *context)
{
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    const bool positive = rnl_node_int(context->node, "detect_positive", 1) != 0;
    const bool negative = rnl_node_int(context->node, "detect_negative", 1) != 0;
    for (int64_t i = 0, count = rnl_desc_elements(input); i < count; i++) {
        const double x = rnl_element_load(input->host, i, input->dtype).f;
        rnl_number found = {.u = isinf(x) && (x > 0 ? positive : negative)};
        rnl_element_store(context->results[0], i, RNL_BOOL, found);
    }
    return RNL_OK;
}
