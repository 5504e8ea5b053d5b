/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators. */
#include "model/lower_list.h"

#include "graph/host_element.h"
#include <stdlib.h>
#include <string.h>

/* An operator's kernel and where its two parameters come from; NaN: there is no such attribute. */
typedef struct map_row {
    const char *op_type;
    rnl_map_op op;
    const char *p0, *p1;
    float p0_absent, p1_absent;
} map_row;

/* Sorted by name. */
static const map_row rows[] = {
    {"Abs", RNL_MAP_ABS, 0, 0, 0, 0},
    {"Acos", RNL_MAP_ACOS, 0, 0, 0, 0},
    {"Acosh", RNL_MAP_ACOSH, 0, 0, 0, 0},
    {"Add", RNL_MAP_ADD, 0, 0, 0, 0},
    {"And", RNL_MAP_AND, 0, 0, 0, 0},
    {"Asin", RNL_MAP_ASIN, 0, 0, 0, 0},
    {"Asinh", RNL_MAP_ASINH, 0, 0, 0, 0},
    {"Atan", RNL_MAP_ATAN, 0, 0, 0, 0},
    {"Atanh", RNL_MAP_ATANH, 0, 0, 0, 0},
    {"BitShift", RNL_MAP_SHIFT_LEFT, 0, 0, 0, 0},
    {"BitwiseAnd", RNL_MAP_BIT_AND, 0, 0, 0, 0},
    {"BitwiseNot", RNL_MAP_BIT_NOT, 0, 0, 0, 0},
    {"BitwiseOr", RNL_MAP_BIT_OR, 0, 0, 0, 0},
    {"BitwiseXor", RNL_MAP_BIT_XOR, 0, 0, 0, 0},
    {"Ceil", RNL_MAP_CEIL, 0, 0, 0, 0},
    {"Celu", RNL_MAP_CELU, "alpha", 0, 1, 0},
    {"Cos", RNL_MAP_COS, 0, 0, 0, 0},
    {"Cosh", RNL_MAP_COSH, 0, 0, 0, 0},
    {"Div", RNL_MAP_DIV, 0, 0, 0, 0},
    {"Elu", RNL_MAP_ELU, "alpha", 0, 1, 0},
    {"Equal", RNL_MAP_EQUAL, 0, 0, 0, 0},
    {"Erf", RNL_MAP_ERF, 0, 0, 0, 0},
    {"Exp", RNL_MAP_EXP, 0, 0, 0, 0},
    {"Floor", RNL_MAP_FLOOR, 0, 0, 0, 0},
    {"Gelu", RNL_MAP_GELU, 0, 0, 0, 0},
    {"Greater", RNL_MAP_GREATER, 0, 0, 0, 0},
    {"GreaterOrEqual", RNL_MAP_GREATER_EQUAL, 0, 0, 0, 0},
    {"HardSigmoid", RNL_MAP_HARD_SIGMOID, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", RNL_MAP_HARD_SWISH, 0, 0, 0, 0},
    {"IsInf", RNL_MAP_ISINF, 0, 0, 0, 0},
    {"IsNaN", RNL_MAP_ISNAN, 0, 0, 0, 0},
    {"LeakyRelu", RNL_MAP_LEAKY_RELU, "alpha", 0, 0.01f, 0},
    {"Less", RNL_MAP_LESS, 0, 0, 0, 0},
    {"LessOrEqual", RNL_MAP_LESS_EQUAL, 0, 0, 0, 0},
    {"Log", RNL_MAP_LOG, 0, 0, 0, 0},
    {"Max", RNL_MAP_MAX, 0, 0, 0, 0},
    {"Mean", RNL_MAP_ADD, 0, 0, 0, 0},
    {"Min", RNL_MAP_MIN, 0, 0, 0, 0},
    {"Mish", RNL_MAP_MISH, 0, 0, 0, 0},
    {"Mul", RNL_MAP_MUL, 0, 0, 0, 0},
    {"Neg", RNL_MAP_NEG, 0, 0, 0, 0},
    {"Not", RNL_MAP_NOT, 0, 0, 0, 0},
    {"Or", RNL_MAP_OR, 0, 0, 0, 0},
    {"PRelu", RNL_MAP_PRELU, 0, 0, 0, 0},
    {"Pow", RNL_MAP_POW, 0, 0, 0, 0},
    {"Reciprocal", RNL_MAP_RECIPROCAL, 0, 0, 0, 0},
    {"Relu", RNL_MAP_RELU, 0, 0, 0, 0},
    {"Round", RNL_MAP_ROUND, 0, 0, 0, 0},
    {"Selu", RNL_MAP_SELU, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Shrink", RNL_MAP_SHRINK, "bias", "lambd", 0, 0.5f},
    {"Sigmoid", RNL_MAP_SIGMOID, 0, 0, 0, 0},
    {"Sign", RNL_MAP_SIGN, 0, 0, 0, 0},
    {"Sin", RNL_MAP_SIN, 0, 0, 0, 0},
    {"Sinh", RNL_MAP_SINH, 0, 0, 0, 0},
    {"Softplus", RNL_MAP_SOFTPLUS, 0, 0, 0, 0},
    {"Softsign", RNL_MAP_SOFTSIGN, 0, 0, 0, 0},
    {"Sqrt", RNL_MAP_SQRT, 0, 0, 0, 0},
    {"Sub", RNL_MAP_SUB, 0, 0, 0, 0},
    {"Sum", RNL_MAP_ADD, 0, 0, 0, 0},
    {"SwiGLU", RNL_MAP_SWIGLU, "alpha", 0, 1, 0},
    {"Swish", RNL_MAP_SWISH, "alpha", 0, 1, 0},
    {"Tan", RNL_MAP_TAN, 0, 0, 0, 0},
    {"Tanh", RNL_MAP_TANH, 0, 0, 0, 0},
    {"ThresholdedRelu", RNL_MAP_THRESHOLDED_RELU, "alpha", 0, 1, 0},
    {"Where", RNL_MAP_SELECT, 0, 0, 0, 0},
    {"Xor", RNL_MAP_XOR, 0, 0, 0, 0},
};

static int compare(const void *key, const void *element)
{
    return strcmp(key, ((const map_row *)element)->op_type);
}

static const map_row *find(const rnl_node *node)
{
    return bsearch(node->op_type, rows, sizeof rows / sizeof *rows, sizeof *rows, compare);
}

bool rnl_map_of_node(const rnl_node *node, rnl_map_op *out_op, float *out_p0, float *out_p1)
{
    const map_row *row = find(node);
    if (!row)
        return false;
    *out_op = row->op;
    if (row->op == RNL_MAP_GELU && strcmp(rnl_node_string(node, "approximate", "none"), "tanh") == 0)
        *out_op = RNL_MAP_GELU_TANH;
    *out_p0 = row->p0 ? rnl_node_float(node, row->p0, row->p0_absent) : 0;
    *out_p1 = row->p1 ? rnl_node_float(node, row->p1, row->p1_absent) : 0;
    if (row->op == RNL_MAP_SHIFT_LEFT && strcmp(rnl_node_string(node, "direction", ""), "RIGHT") == 0)
        *out_op = RNL_MAP_SHIFT_RIGHT;
    if (row->op == RNL_MAP_ISINF) {
        *out_p0 = rnl_node_int(node, "detect_positive", 1) != 0;
        *out_p1 = rnl_node_int(node, "detect_negative", 1) != 0;
    }
    return true;
}

rnl_status rnl_lower_map(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_map_op op;
    float p0, p1;
    if (!rnl_map_of_node(node, &op, &p0, &p1))
        return FAIL(RNL_INTERNAL, "%s is not elementwise", node->op_type);
    rnl_view sources[RNL_MAP_MAX_SOURCES], target;
    size_t count = rnl_map_sources(op);
    for (size_t i = 0; i < count; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_map(lowering->list, op, p0, p1, sources, count, &target);
}

/* A chain of two-source steps; the partial results take the output's memory, each reading what the one before wrote. */
rnl_status rnl_lower_variadic(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_map_op op = find(node)->op;
    rnl_view sources[2], target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &sources[0]));
    if (node->input_count == 1) {
        rnl_lower_alias(lowering, 0, &sources[0]);
        return RNL_OK;
    }
    rnl_view inputs[2];
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &inputs[1])); /* placed before the output picks its layout */
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    for (size_t i = 1; i < node->input_count; i++) {
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[1]));
        TRY(rnl_op_map(lowering->list, op, 0, 0, sources, 2, &target));
        sources[0] = target;
    }
    if (strcmp(node->op_type, "Mean") != 0)
        return RNL_OK;
    TRY(rnl_lower_scalar(lowering, target.dtype, 1.0 / node->input_count, &sources[1]));
    return rnl_op_map(lowering->list, RNL_MAP_MUL, 0, 0, sources, 2, &target);
}

/* The least or greatest finite value of a type, for the side of Clip that is left out: infinities become that. */
static double widest(rnl_dtype dtype, bool high)
{
    return rnl_number_double(high ? rnl_number_highest(dtype) : rnl_number_lowest(dtype), dtype);
}

static rnl_status clip_bound(rnl_lowering *lowering, size_t index, const char *attribute, rnl_dtype dtype,
                             rnl_view *out_view)
{
    const rnl_node *node = lowering->context.node;
    if (rnl_lower_has_input(lowering, index))
        return rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, out_view);
    const rnl_attribute *given = node->opset < 11 ? rnl_node_attribute(node, attribute) : NULL;
    const double bound = given ? (double)rnl_node_float(node, attribute, 0) : widest(dtype, index == 2);
    return rnl_lower_scalar(lowering, dtype, bound, out_view);
}

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(dtype)) != 0;
}

/* Of integers a side that is left out is a step less. */
static rnl_status clip_integer(rnl_lowering *lowering, rnl_view *sources)
{
    rnl_view target;
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (rnl_lower_has_input(lowering, 1)) {
        TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &sources[1]));
        TRY(rnl_op_map(lowering->list, RNL_MAP_MAX, 0, 0, sources, 2, &target));
        sources[0] = target;
    }
    if (rnl_lower_has_input(lowering, 2)) {
        TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &sources[1]));
        return rnl_op_map(lowering->list, RNL_MAP_MIN, 0, 0, sources, 2, &target);
    }
    return sources[0].slot == target.slot ? RNL_OK : rnl_lower_copy(lowering, &sources[0], &target);
}

rnl_status rnl_lower_clip(rnl_lowering *lowering)
{
    rnl_view sources[3], target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &sources[0]));
    rnl_dtype dtype = sources[0].dtype;
    if (!is_float(dtype))
        return clip_integer(lowering, sources);
    TRY(clip_bound(lowering, 1, "min", dtype, &sources[1]));
    TRY(clip_bound(lowering, 2, "max", dtype, &sources[2]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_map(lowering->list, RNL_MAP_CLIP, 0, 0, sources, 3, &target);
}

rnl_status rnl_lower_mod(rnl_lowering *lowering)
{
    rnl_view sources[2], target;
    rnl_map_op op = rnl_node_int(lowering->context.node, "fmod", 0) ? RNL_MAP_FMOD : RNL_MAP_MOD;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &sources[0]));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &sources[1]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_map(lowering->list, op, 0, 0, sources, 2, &target);
}
