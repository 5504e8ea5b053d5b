/* SPDX-License-Identifier: Apache-2.0 */
/* Element types as far as the file tells them: of initialisers and inputs, and from there through the operators. */
#include "graph/check.h"

#include <string.h>

static const char *foreign_name(unsigned code)
{
    switch (code) {
    case 8:
        return "string";
    case 14:
        return "complex64";
    case 15:
        return "complex128";
    case 27:
        return "float6e2m3";
    case 28:
        return "float6e3m2";
    case RNL_NOT_A_TENSOR:
        return "not a dense tensor";
    default:
        return "of an unknown type";
    }
}

bool rnl_check_type_foreign(unsigned code)
{
    return code != 0 && rnl_dtype_bytes((rnl_dtype)code) == 0;
}

const char *rnl_check_type_name(unsigned code)
{
    return rnl_check_type_foreign(code) || code == 0 ? foreign_name(code) : rnl_dtype_name((rnl_dtype)code);
}

typedef struct type_rule_row {
    const char *op_types;
    rnl_type_rule rule;
} type_rule_row;

static rnl_type_rule find_rule(const type_rule_row *rules, size_t count, const char *op_type)
{
    for (size_t i = 0; i < count; i++)
        if (rnl_check_word(rules[i].op_types, op_type))
            return rules[i].rule;
    return RNL_TYPE_OF_FIRST;
}

rnl_type_rule rnl_check_type_rule(const char *domain, const char *op_type)
{
    static const type_rule_row others[] = {
        {" EmbedLayerNormalization FlexAttention.values ", RNL_TYPE_OF_THIRD},
        {" MatMulIntegerToFloat QLinearConcat ", RNL_TYPE_OF_THIRD},
        {" LinearClassifier ", RNL_TYPE_I64},
        {" FlexAttention.scores LabelEncoder QGemm Scaler Normalizer LinearRegressor TreeEnsembleRegressor ",
         RNL_TYPE_UNKNOWN},
    };
    static const type_rule_row onnx[] = {
        {" Where CastLike RMSNormalization SimplifiedLayerNormalization ", RNL_TYPE_OF_SECOND},
        {" OneHot ", RNL_TYPE_OF_THIRD},
        {" Shape Size ArgMax ArgMin NonZero NonMaxSuppression ", RNL_TYPE_I64},
        {" Equal Less LessOrEqual Greater GreaterOrEqual Not And Or Xor IsNaN IsInf ", RNL_TYPE_BOOL},
        {" Cast BitCast ", RNL_TYPE_OF_TO},
        {" ConstantOfShape ", RNL_TYPE_OF_VALUE},
        {" QuantizeLinear ", RNL_TYPE_QUANTIZED},
        {" DequantizeLinear ", RNL_TYPE_DEQUANTIZED},
        {" EyeLike RandomNormalLike RandomUniformLike Multinomial Bernoulli "
         "TfIdfVectorizer DynamicQuantizeLinear HannWindow HammingWindow BlackmanWindow MelWeightMatrix ConvInteger "
         "MatMulInteger "
         "QLinearConv QLinearMatMul If Loop Scan ",
         RNL_TYPE_UNKNOWN},
    };
    if (domain[0] != '\0')
        return find_rule(others, sizeof others / sizeof *others, op_type);
    return find_rule(onnx, sizeof onnx / sizeof *onnx, op_type);
}

static uint8_t input_type(const rnl_node *node, const uint8_t *types, uint32_t index)
{
    return index < node->input_count && node->inputs[index] != RNL_NO_VALUE ? types[node->inputs[index]] : 0;
}

/* The attribute's type, else that of an input, else `other`. */
static uint8_t quantized_type(const rnl_node *node, const uint8_t *types, uint32_t index, uint8_t other)
{
    int64_t code = rnl_node_int(node, "output_dtype", 0);
    if (code > 0 && code < RNL_NOT_A_TENSOR)
        return (uint8_t)code;
    return index < node->input_count && node->inputs[index] != RNL_NO_VALUE ? types[node->inputs[index]] : other;
}

static uint8_t output_type(const rnl_node *node, rnl_type_rule rule, const uint8_t *types)
{
    const rnl_attribute *value;
    uint8_t value_type;
    int64_t to;
    switch (rule) {
    case RNL_TYPE_OF_FIRST:
        return input_type(node, types, 0);
    case RNL_TYPE_OF_SECOND:
        return input_type(node, types, 1);
    case RNL_TYPE_OF_THIRD:
        return input_type(node, types, 2);
    case RNL_TYPE_I64:
        return RNL_I64;
    case RNL_TYPE_BOOL:
        return RNL_BOOL;
    case RNL_TYPE_OF_TO:
        to = rnl_node_int(node, "to", 0);
        return to > 0 && to < RNL_NOT_A_TENSOR ? (uint8_t)to : 0;
    case RNL_TYPE_OF_VALUE:
        value = rnl_node_attribute(node, "value");
        if (!value)
            return RNL_F32;
        return value->type == RNL_ATTRIBUTE_TENSOR ? (uint8_t)value->tensor->dtype : 0;
    case RNL_TYPE_QUANTIZED:
        return quantized_type(node, types, 2, RNL_U8);
    case RNL_TYPE_DEQUANTIZED:
        value_type = quantized_type(node, types, 1, 0);
        return value_type == RNL_F8E8M0 ? RNL_F32 : value_type;
    case RNL_TYPE_UNKNOWN:
        break;
    }
    return 0;
}

static uint8_t declared_type(const rnl_graph *graph, const rnl_value *value)
{
    if (value->constant)
        return (uint8_t)value->constant->dtype;
    if (value->input_index < 0)
        return 0;
    rnl_dtype dtype = graph->inputs[value->input_index].dtype;
    return dtype == RNL_DTYPE_NONE ? RNL_NOT_A_TENSOR : (uint8_t)dtype;
}

void rnl_check_declared_types(const rnl_graph *graph, uint8_t *out_types)
{
    for (size_t i = 0; i < graph->value_count; i++)
        out_types[i] = declared_type(graph, &graph->values[i]);
}

void rnl_check_output_types(const rnl_node *node, rnl_type_rule rule, uint8_t *types)
{
    if (!node->schema || node->output_count == 0)
        return;
    uint32_t count = strcmp(node->op_type, "Split") == 0 ? node->output_count : 1;
    uint8_t type = output_type(node, rule, types);
    for (uint32_t k = 0; k < count; k++)
        if (node->outputs[k] != RNL_NO_VALUE)
            types[node->outputs[k]] = type;
}
