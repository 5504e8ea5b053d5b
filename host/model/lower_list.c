/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower_list.h"

#include <stdlib.h>
#include <string.h>

typedef struct lower_row {
    const char *op_type;
    rnl_lower_fn lower;
} lower_row;

/* Sorted by name. */
static const lower_row onnx_rows[] = {
    {"Abs", rnl_lower_map},
    {"Acos", rnl_lower_map},
    {"Acosh", rnl_lower_map},
    {"Add", rnl_lower_map},
    {"And", rnl_lower_map},
    {"Asin", rnl_lower_map},
    {"Asinh", rnl_lower_map},
    {"Atan", rnl_lower_map},
    {"Atanh", rnl_lower_map},
    {"Attention", rnl_lower_attention},
    {"AveragePool", rnl_lower_pool},
    {"BatchNormalization", rnl_lower_batch_norm},
    {"BitShift", rnl_lower_map},
    {"BitwiseAnd", rnl_lower_map},
    {"BitwiseNot", rnl_lower_map},
    {"BitwiseOr", rnl_lower_map},
    {"BitwiseXor", rnl_lower_map},
    {"Cast", rnl_lower_cast},
    {"CastLike", rnl_lower_cast},
    {"CausalConvWithState", rnl_lower_causal_conv},
    {"Ceil", rnl_lower_map},
    {"Celu", rnl_lower_map},
    {"Clip", rnl_lower_clip},
    {"Concat", rnl_lower_concat},
    {"ConstantOfShape", rnl_lower_fill},
    {"Conv", rnl_lower_conv},
    {"ConvInteger", rnl_lower_conv_integer},
    {"ConvTranspose", rnl_lower_conv_transpose},
    {"Cos", rnl_lower_map},
    {"Cosh", rnl_lower_map},
    {"DepthToSpace", rnl_lower_depth_to_space},
    {"Div", rnl_lower_map},
    {"Dropout", rnl_lower_dropout},
    {"DynamicQuantizeLinear", rnl_lower_dynamic_quantize},
    {"Einsum", rnl_lower_einsum},
    {"Elu", rnl_lower_map},
    {"Equal", rnl_lower_map},
    {"Erf", rnl_lower_map},
    {"Exp", rnl_lower_map},
    {"Expand", rnl_lower_expand},
    {"Flatten", rnl_lower_reshape},
    {"Floor", rnl_lower_map},
    {"GRU", rnl_lower_recurrent},
    {"Gather", rnl_lower_gather},
    {"GatherElements", rnl_lower_gather_elements},
    {"GatherND", rnl_lower_gather_nd},
    {"Gelu", rnl_lower_map},
    {"Gemm", rnl_lower_gemm},
    {"GlobalAveragePool", rnl_lower_global_pool},
    {"GlobalMaxPool", rnl_lower_global_pool},
    {"Greater", rnl_lower_map},
    {"GreaterOrEqual", rnl_lower_map},
    {"GroupNormalization", rnl_lower_group_norm},
    {"HardSigmoid", rnl_lower_map},
    {"HardSwish", rnl_lower_map},
    {"Identity", rnl_lower_identity},
    {"InstanceNormalization", rnl_lower_instance_norm},
    {"IsInf", rnl_lower_map},
    {"IsNaN", rnl_lower_map},
    {"LRN", rnl_lower_lrn},
    {"LSTM", rnl_lower_recurrent},
    {"LayerNormalization", rnl_lower_layer_norm},
    {"LeakyRelu", rnl_lower_map},
    {"Less", rnl_lower_map},
    {"LessOrEqual", rnl_lower_map},
    {"LinearAttention", rnl_lower_linear_attention},
    {"Log", rnl_lower_map},
    {"LogSoftmax", rnl_lower_softmax},
    {"LpNormalization", rnl_lower_lp_norm},
    {"MatMul", rnl_lower_matmul},
    {"MatMulInteger", rnl_lower_matmul_integer},
    {"Max", rnl_lower_variadic},
    {"MaxPool", rnl_lower_pool},
    {"Mean", rnl_lower_variadic},
    {"MeanVarianceNormalization", rnl_lower_mean_variance_norm},
    {"Min", rnl_lower_variadic},
    {"Mish", rnl_lower_map},
    {"Mod", rnl_lower_mod},
    {"Mul", rnl_lower_map},
    {"Neg", rnl_lower_map},
    {"NegativeLogLikelihoodLoss", rnl_lower_loss},
    {"Not", rnl_lower_map},
    {"Or", rnl_lower_map},
    {"PRelu", rnl_lower_map},
    {"Pad", rnl_lower_pad},
    {"Pow", rnl_lower_map},
    {"QLinearConv", rnl_lower_qlinear_conv},
    {"QLinearMatMul", rnl_lower_qlinear_matmul},
    {"RMSNormalization", rnl_lower_rms_norm},
    {"RNN", rnl_lower_recurrent},
    {"Reciprocal", rnl_lower_map},
    {"ReduceL1", rnl_lower_reduce},
    {"ReduceL2", rnl_lower_reduce},
    {"ReduceLogSum", rnl_lower_reduce},
    {"ReduceLogSumExp", rnl_lower_reduce},
    {"ReduceMax", rnl_lower_reduce},
    {"ReduceMean", rnl_lower_reduce},
    {"ReduceMin", rnl_lower_reduce},
    {"ReduceProd", rnl_lower_reduce},
    {"ReduceSum", rnl_lower_reduce},
    {"ReduceSumSquare", rnl_lower_reduce},
    {"Relu", rnl_lower_map},
    {"Reshape", rnl_lower_reshape},
    {"Resize", rnl_lower_resize},
    {"RotaryEmbedding", rnl_lower_rotary_embedding},
    {"Round", rnl_lower_map},
    {"Scatter", rnl_lower_scatter_elements},
    {"ScatterElements", rnl_lower_scatter_elements},
    {"ScatterND", rnl_lower_scatter_nd},
    {"Selu", rnl_lower_map},
    {"Shrink", rnl_lower_map},
    {"Sigmoid", rnl_lower_map},
    {"Sign", rnl_lower_map},
    {"SimplifiedLayerNormalization", rnl_lower_rms_norm},
    {"Sin", rnl_lower_map},
    {"Sinh", rnl_lower_map},
    {"Slice", rnl_lower_slice},
    {"Softmax", rnl_lower_softmax},
    {"SoftmaxCrossEntropyLoss", rnl_lower_loss},
    {"Softplus", rnl_lower_map},
    {"Softsign", rnl_lower_map},
    {"SpaceToDepth", rnl_lower_space_to_depth},
    {"Split", rnl_lower_split},
    {"Sqrt", rnl_lower_map},
    {"Squeeze", rnl_lower_reshape},
    {"Sub", rnl_lower_map},
    {"Sum", rnl_lower_variadic},
    {"SwiGLU", rnl_lower_map},
    {"Swish", rnl_lower_map},
    {"Tan", rnl_lower_map},
    {"Tanh", rnl_lower_map},
    {"ThresholdedRelu", rnl_lower_map},
    {"Tile", rnl_lower_tile},
    {"Transpose", rnl_lower_transpose},
    {"Unsqueeze", rnl_lower_reshape},
    {"Upsample", rnl_lower_resize},
    {"Where", rnl_lower_map},
    {"Xor", rnl_lower_map},
};

/* Of com.microsoft; sorted by name. */
static const lower_row microsoft_rows[] = {
    {"DynamicQuantizeMatMul", rnl_lower_dynamic_quantize_matmul},
    {"Gelu", rnl_lower_map},
    {"MatMulIntegerToFloat", rnl_lower_matmul_integer_to_float},
    {"MatMulNBits", rnl_lower_matmul_nbits},
    {"QGemm", rnl_lower_qgemm},
    {"QLinearAdd", rnl_lower_qlinear_add},
    {"QLinearAveragePool", rnl_lower_qlinear_pool},
    {"QLinearConcat", rnl_lower_qlinear_concat},
    {"QLinearGlobalAveragePool", rnl_lower_qlinear_global_pool},
    {"QLinearLeakyRelu", rnl_lower_qlinear_leaky_relu},
    {"QLinearMul", rnl_lower_qlinear_mul},
    {"QLinearSigmoid", rnl_lower_qlinear_sigmoid},
    {"QLinearSoftmax", rnl_lower_qlinear_softmax},
};

static const struct {
    const char *domain;
    const lower_row *rows;
    size_t count;
} domains[] = {
    {"", onnx_rows, sizeof onnx_rows / sizeof *onnx_rows},
    {"com.microsoft", microsoft_rows, sizeof microsoft_rows / sizeof *microsoft_rows},
};

static int compare(const void *key, const void *element)
{
    return strcmp(key, ((const lower_row *)element)->op_type);
}

rnl_lower_fn rnl_lower_find(const rnl_node *node)
{
    const lower_row *found = NULL;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (strcmp(domains[i].domain, node->domain) == 0)
            found = bsearch(node->op_type, domains[i].rows, domains[i].count, sizeof *found, compare);
    return found ? found->lower : NULL;
}
