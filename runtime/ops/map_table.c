/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/map_table.h"

enum {
#define X(name, sources) SOURCES_##name = sources,
    RNL_MAP_LIST(X)
#undef X
};

#define ROW(op, name, types) [RNL_MAP_##op] = {name, "OP=OP_" #op, SOURCES_##op, 0, RNL_MAP_##types, false}
#define WITH(op, name, types, parameters)                                                                              \
    [RNL_MAP_##op] = {name, "OP=OP_" #op, SOURCES_##op, parameters, RNL_MAP_##types, false}
#define TEST(op, name, types) TEST_WITH(op, name, types, 0)
#define TEST_WITH(op, name, types, parameters)                                                                         \
    [RNL_MAP_##op] = {name, "OP=OP_" #op, SOURCES_##op, parameters, RNL_MAP_##types, true}

static const rnl_map_row rows[RNL_MAP_COUNT] = {
    ROW(COPY, "Copy", EVERY),
    ROW(NEG, "Neg", NUMBERS),
    ROW(ABS, "Abs", NUMBERS),
    ROW(SIGN, "Sign", NUMBERS),
    ROW(SQRT, "Sqrt", FLOATS),
    ROW(RECIPROCAL, "Reciprocal", FLOATS),
    ROW(EXP, "Exp", FLOATS),
    ROW(LOG, "Log", FLOATS),
    ROW(TANH, "Tanh", FLOATS),
    ROW(SIGMOID, "Sigmoid", FLOATS),
    ROW(RELU, "Relu", NUMBERS),
    WITH(LEAKY_RELU, "LeakyRelu", FLOATS, 1),
    WITH(ELU, "Elu", FLOATS, 1),
    WITH(SELU, "Selu", FLOATS, 2),
    ROW(SOFTPLUS, "Softplus", FLOATS),
    ROW(SOFTSIGN, "Softsign", FLOATS),
    ROW(ERF, "Erf", FLOATS),
    ROW(GELU, "Gelu", FLOATS),
    ROW(GELU_TANH, "Gelu (tanh)", FLOATS),
    ROW(GELU_SUM, "Gelu (sum)", FLOATS),
    WITH(HARD_SIGMOID, "HardSigmoid", FLOATS, 2),
    ROW(HARD_SWISH, "HardSwish", FLOATS),
    ROW(FLOOR, "Floor", FLOATS),
    ROW(CEIL, "Ceil", FLOATS),
    ROW(ROUND, "Round", FLOATS),
    ROW(SIN, "Sin", FLOATS),
    ROW(COS, "Cos", FLOATS),
    ROW(TAN, "Tan", FLOATS),
    ROW(ASIN, "Asin", FLOATS),
    ROW(ACOS, "Acos", FLOATS),
    ROW(ATAN, "Atan", FLOATS),
    ROW(SINH, "Sinh", FLOATS),
    ROW(COSH, "Cosh", FLOATS),
    ROW(ASINH, "Asinh", FLOATS),
    ROW(ACOSH, "Acosh", FLOATS),
    ROW(ATANH, "Atanh", FLOATS),
    WITH(CELU, "Celu", FLOATS, 1),
    ROW(MISH, "Mish", FLOATS),
    WITH(SWISH, "Swish", FLOATS, 1),
    WITH(SHRINK, "Shrink", NUMBERS, 2),
    WITH(THRESHOLDED_RELU, "ThresholdedRelu", FLOATS, 1),
    TEST(NOT, "Not", BOOLS),
    TEST(ISNAN, "IsNaN", FLOATS),
    TEST_WITH(ISINF, "IsInf", FLOATS, 2),
    ROW(BIT_NOT, "BitwiseNot", INTEGERS),
    ROW(ADD, "Add", NUMBERS),
    ROW(SUB, "Sub", NUMBERS),
    ROW(MUL, "Mul", NUMBERS),
    ROW(DIV, "Div", NUMBERS),
    ROW(POW, "Pow", NUMBERS),
    ROW(MOD, "Mod", NUMBERS),
    ROW(FMOD, "Fmod", NUMBERS),
    ROW(MAX, "Max", NUMBERS),
    ROW(MIN, "Min", NUMBERS),
    ROW(PRELU, "PRelu", NUMBERS),
    TEST(EQUAL, "Equal", ALL),
    TEST(LESS, "Less", NUMBERS),
    TEST(LESS_EQUAL, "LessOrEqual", NUMBERS),
    TEST(GREATER, "Greater", NUMBERS),
    TEST(GREATER_EQUAL, "GreaterOrEqual", NUMBERS),
    TEST(AND, "And", BOOLS),
    TEST(OR, "Or", BOOLS),
    TEST(XOR, "Xor", BOOLS),
    ROW(BIT_AND, "BitwiseAnd", INTEGERS),
    ROW(BIT_OR, "BitwiseOr", INTEGERS),
    ROW(BIT_XOR, "BitwiseXor", INTEGERS),
    ROW(SHIFT_LEFT, "BitShift (left)", INTEGERS),
    ROW(SHIFT_RIGHT, "BitShift (right)", INTEGERS),
    WITH(SWIGLU, "SwiGLU", FLOATS, 1),
    ROW(SELECT, "Where", EVERY),
    ROW(CLIP, "Clip", NUMBERS),
    WITH(NORMALIZE, "BatchNormalization", FLOATS, 1),
};

const rnl_map_row *rnl_map_row_of(rnl_map_op op)
{
    return (unsigned)op < RNL_MAP_COUNT && rows[op].name ? &rows[op] : NULL;
}

const char *rnl_map_name(rnl_map_op op)
{
    const rnl_map_row *row = rnl_map_row_of(op);
    return row ? row->name : "unknown operator";
}

size_t rnl_map_sources(rnl_map_op op)
{
    const rnl_map_row *row = rnl_map_row_of(op);
    return row ? row->sources : 0;
}

size_t rnl_map_parameters(rnl_map_op op)
{
    const rnl_map_row *row = rnl_map_row_of(op);
    return row ? row->parameters : 0;
}
