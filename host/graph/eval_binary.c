/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <string.h>

static double f_add(double a, double b)
{
    return a + b;
}

static double f_sub(double a, double b)
{
    return a - b;
}

static double f_mul(double a, double b)
{
    return a * b;
}

static double f_div(double a, double b)
{
    return a / b;
}

/* The result has the divisor's sign, zero included. */
static double f_mod(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double f_prelu(double x, double slope)
{
    return x < 0 ? slope * x : x;
}

static int64_t i_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t i_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t i_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Division by zero gives 0, as numpy's; the least number by -1 wraps. */
static int64_t i_div(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t i_fmod(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t i_mod(int64_t a, int64_t b)
{
    int64_t rest = i_fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t i_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t i_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t i_prelu(int64_t x, int64_t slope)
{
    return x < 0 ? i_mul(x, slope) : x;
}

static uint64_t u_add(uint64_t a, uint64_t b)
{
    return a + b;
}

static uint64_t u_sub(uint64_t a, uint64_t b)
{
    return a - b;
}

static uint64_t u_mul(uint64_t a, uint64_t b)
{
    return a * b;
}

static uint64_t u_div(uint64_t a, uint64_t b)
{
    return b ? a / b : 0;
}

static uint64_t u_mod(uint64_t a, uint64_t b)
{
    return b ? a % b : 0;
}

static uint64_t u_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t u_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t u_first(uint64_t x, uint64_t slope)
{
    (void)slope;
    return x;
}

static uint64_t u_and(uint64_t a, uint64_t b)
{
    return a && b;
}

static uint64_t u_or(uint64_t a, uint64_t b)
{
    return a || b;
}

static uint64_t u_xor(uint64_t a, uint64_t b)
{
    return !a != !b;
}

static int64_t i_bit_and(int64_t a, int64_t b)
{
    return a & b;
}

static int64_t i_bit_or(int64_t a, int64_t b)
{
    return a | b;
}

static int64_t i_bit_xor(int64_t a, int64_t b)
{
    return a ^ b;
}

static uint64_t u_bit_and(uint64_t a, uint64_t b)
{
    return a & b;
}

static uint64_t u_bit_or(uint64_t a, uint64_t b)
{
    return a | b;
}

static uint64_t u_bit_xor(uint64_t a, uint64_t b)
{
    return a ^ b;
}

/* What a narrower type loses, storing takes off. */
static int64_t i_left(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t i_right(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? -(a < 0) : a >> b;
}

static uint64_t u_left(uint64_t a, uint64_t b)
{
    return b > 63 ? 0 : a << b;
}

static uint64_t u_right(uint64_t a, uint64_t b)
{
    return b > 63 ? 0 : a >> b;
}

typedef struct binary_row {
    const char *op_type;
    double (*floats)(double a, double b);
    int64_t (*integers)(int64_t a, int64_t b);
    uint64_t (*naturals)(uint64_t a, uint64_t b);
} binary_row;

static const binary_row rows[] = {
    {"Add", f_add, i_add, u_add},
    {"Sum", f_add, NULL, NULL},
    {"Mean", f_add, NULL, NULL},
    {"Sub", f_sub, i_sub, u_sub},
    {"Mul", f_mul, i_mul, u_mul},
    {"Div", f_div, i_div, u_div},
    {"Mod", f_mod, i_mod, u_mod},
    {"Max", rnl_float_max, i_max, u_max},
    {"Min", rnl_float_min, i_min, u_min},
    {"PRelu", f_prelu, i_prelu, u_first},
    {"And", NULL, NULL, u_and},
    {"Or", NULL, NULL, u_or},
    {"Xor", NULL, NULL, u_xor},
    {"BitwiseAnd", NULL, i_bit_and, u_bit_and},
    {"BitwiseOr", NULL, i_bit_or, u_bit_or},
    {"BitwiseXor", NULL, i_bit_xor, u_bit_xor},
};
static const binary_row left_row = {"BitShift", NULL, i_left, u_left};
static const binary_row right_row = {"BitShift", NULL, i_right, u_right};
static const binary_row fmod_row = {"Mod", fmod, i_fmod, u_mod};

static rnl_status find_row(const rnl_op_context *context, const binary_row **out_row)
{
    const rnl_node *node = context->node;
    const binary_row *row = NULL;
    *out_row = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op_type, node->op_type) == 0)
            row = &rows[i];
    if (strcmp(node->op_type, "Mod") == 0 && rnl_node_int(node, "fmod", 0) != 0)
        row = &fmod_row;
    if (strcmp(node->op_type, "BitShift") == 0)
        row = strcmp(rnl_node_string(node, "direction", ""), "LEFT") == 0 ? &left_row : &right_row;
    rnl_number_kind kind = rnl_dtype_kind(context->inputs[0].dtype);
    if (!row || (kind == RNL_NUMBER_FLOAT && !row->floats) || (kind == RNL_NUMBER_SIGNED && !row->integers) ||
        (kind == RNL_NUMBER_UNSIGNED && !row->naturals))
        return FAIL(RNL_UNIMPLEMENTED, "%s of %s is not evaluated on the host", node->op_type,
                    rnl_dtype_name(context->inputs[0].dtype));
    *out_row = row;
    return RNL_OK;
}

static rnl_number apply(const binary_row *row, rnl_number_kind kind, rnl_number a, rnl_number b)
{
    switch (kind) {
    case RNL_NUMBER_FLOAT:
        a.f = row->floats(a.f, b.f);
        break;
    case RNL_NUMBER_SIGNED:
        a.i = row->integers(a.i, b.i);
        break;
    case RNL_NUMBER_UNSIGNED:
        a.u = row->naturals(a.u, b.u);
        break;
    }
    return a;
}

/* output = a op b; `a` may be the output's own memory when the shapes are equal. */
static void run(const binary_row *row, const rnl_tensor_desc *a, const rnl_tensor_desc *b,
                const rnl_tensor_desc *output, void *result)
{
    rnl_walk walk;
    rnl_walk_init(&walk, output->shape, output->rank);
    rnl_walk_add(&walk, a->shape, a->rank);
    rnl_walk_add(&walk, b->shape, b->rank);
    for (int64_t i = 0; walk.left > 0; i++, rnl_walk_next(&walk)) {
        rnl_number x = rnl_element_load(a->host, walk.at[0], a->dtype);
        rnl_number y = rnl_element_load(b->host, walk.at[1], a->dtype);
        rnl_element_store(result, i, output->dtype, apply(row, rnl_dtype_kind(a->dtype), x, y));
    }
}

rnl_status rnl_evaluate_binary(rnl_op_context *context)
{
    const binary_row *row;
    TRY(rnl_evaluate_begin(context));
    TRY(find_row(context, &row));
    run(row, &context->inputs[0], &context->inputs[1], &context->outputs[0], context->results[0]);
    return RNL_OK;
}

static void broadcast(const rnl_tensor_desc *input, const rnl_tensor_desc *output, void *result)
{
    rnl_walk walk;
    rnl_walk_init(&walk, output->shape, output->rank);
    rnl_walk_add(&walk, input->shape, input->rank);
    for (int64_t i = 0; walk.left > 0; i++, rnl_walk_next(&walk))
        rnl_element_store(result, i, output->dtype, rnl_element_load(input->host, walk.at[0], input->dtype));
}

/* Rounded to the type after each input, as a chain of two-input operators would be. */
rnl_status rnl_evaluate_variadic(rnl_op_context *context)
{
    const binary_row *row;
    TRY(rnl_evaluate_begin(context));
    TRY(find_row(context, &row));
    const rnl_tensor_desc *output = &context->outputs[0];
    rnl_tensor_desc sum = *output;
    sum.host = context->results[0];
    broadcast(&context->inputs[0], output, context->results[0]);
    for (size_t k = 1; k < context->input_count; k++)
        run(row, &sum, &context->inputs[k], output, context->results[0]);
    if (strcmp(context->node->op_type, "Mean") != 0)
        return RNL_OK;
    for (int64_t i = 0, count = rnl_desc_elements(output); i < count; i++) {
        rnl_number x = rnl_element_load(sum.host, i, output->dtype);
        x.f /= (double)context->input_count;
        rnl_element_store(context->results[0], i, output->dtype, x);
    }
    return RNL_OK;
}
