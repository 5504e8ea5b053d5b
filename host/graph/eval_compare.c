/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, and Pow, whose exponent has a type of its own. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <string.h>

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

/* 0 when a NaN is among them. */
static unsigned compare(rnl_number a, rnl_number b, rnl_number_kind kind)
{
    switch (kind) {
    case RNL_NUMBER_FLOAT:
        return (a.f < b.f ? LESS : 0u) | (a.f == b.f ? EQUAL : 0u) | (a.f > b.f ? GREATER : 0u);
    case RNL_NUMBER_SIGNED:
        return a.i < b.i ? LESS : a.i == b.i ? EQUAL : GREATER;
    case RNL_NUMBER_UNSIGNED:
        break;
    }
    return a.u < b.u ? LESS : a.u == b.u ? EQUAL : GREATER;
}

static unsigned true_when(const char *op_type)
{
    static const struct {
        const char *op_type;
        unsigned bits;
    } rows[] = {{"Equal", EQUAL},
                {"Less", LESS},
                {"LessOrEqual", LESS | EQUAL},
                {"Greater", GREATER},
                {"GreaterOrEqual", GREATER | EQUAL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, op_type) == 0)
            return rows[i].bits;
    return 0;
}

static void walk_two_inputs(const rnl_op_context *context, rnl_walk *walk)
{
    rnl_walk_init(walk, context->outputs[0].shape, context->outputs[0].rank);
    rnl_walk_add(walk, context->inputs[0].shape, context->inputs[0].rank);
    rnl_walk_add(walk, context->inputs[1].shape, context->inputs[1].rank);
}

rnl_status rnl_evaluate_compare(rnl_op_context *context)
{
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *a = &context->inputs[0], *b = &context->inputs[1];
    unsigned bits = true_when(context->node->op_type);
    walk_two_inputs(context, &walk);
    for (int64_t i = 0; walk.left > 0; i++, rnl_walk_next(&walk)) {
        rnl_number x = rnl_element_load(a->host, walk.at[0], a->dtype);
        rnl_number y = rnl_element_load(b->host, walk.at[1], a->dtype);
        rnl_number result = {.u = (compare(x, y, rnl_dtype_kind(a->dtype)) & bits) != 0};
        rnl_element_store(context->results[0], i, RNL_BOOL, result);
    }
    return RNL_OK;
}

/* Exact, wrapping. */
static uint64_t integer_power(uint64_t base, uint64_t exponent)
{
    uint64_t power = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            power *= base;
        base *= base;
    }
    return power;
}

/* Of integers. Negative exponents give 0 but for bases 1 and -1. */
static rnl_number whole_power(rnl_number base, bool is_signed, bool negative, uint64_t exponent)
{
    if (!negative)
        base.u = integer_power(base.u, exponent);
    else if (is_signed && base.i == -1)
        base.u = exponent & 1 ? base.u : 1;
    else
        base.u = base.u == 1;
    return base;
}

static rnl_number power(rnl_number base, rnl_dtype base_type, rnl_number exponent, rnl_dtype exponent_type)
{
    rnl_number_kind kind = rnl_dtype_kind(base_type), of = rnl_dtype_kind(exponent_type);
    rnl_number result;
    bool negative = of == RNL_NUMBER_FLOAT ? exponent.f < 0 : of == RNL_NUMBER_SIGNED && exponent.i < 0;
    if (kind != RNL_NUMBER_FLOAT && of != RNL_NUMBER_FLOAT)
        return whole_power(base, kind == RNL_NUMBER_SIGNED, negative, negative ? 0 - exponent.u : exponent.u);
    if (kind != RNL_NUMBER_FLOAT && exponent.f == rint(exponent.f) && fabs(exponent.f) < 0x1p31)
        return whole_power(base, kind == RNL_NUMBER_SIGNED, negative, (uint64_t)fabs(exponent.f));
    result.f = pow(rnl_number_double(base, base_type), rnl_number_double(exponent, exponent_type));
    return rnl_number_convert(result, RNL_F64, base_type);
}

rnl_status rnl_evaluate_pow(rnl_op_context *context)
{
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *base = &context->inputs[0], *exponent = &context->inputs[1];
    walk_two_inputs(context, &walk);
    for (int64_t i = 0; walk.left > 0; i++, rnl_walk_next(&walk)) {
        rnl_number x = rnl_element_load(base->host, walk.at[0], base->dtype);
        rnl_number y = rnl_element_load(exponent->host, walk.at[1], exponent->dtype);
        rnl_element_store(context->results[0], i, base->dtype, power(x, base->dtype, y, exponent->dtype));
    }
    return RNL_OK;
}
