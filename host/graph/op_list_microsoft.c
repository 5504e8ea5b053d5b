/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of com.microsoft, which onnxruntime's tools put into models: sorted by name. */
#include "graph/op_list.h"

static const rnl_op_schema *const rows[] = {
    ROW("DynamicQuantizeMatMul", 1, 1, 3, 5, 1, BIT(F32), 0, rnl_infer_dynamic_quantize_matmul, NULL, ""),
    ROW("Gelu", 1, 1, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("MatMulIntegerToFloat", 1, 1, 4, 7, 1, BYTES, 0, rnl_infer_matmul_integer_to_float, NULL, ""),
    ROW("MatMulNBits", 1, 1, 3, 6, 1, RNL_TYPES_FLOAT, 0, rnl_infer_matmul_nbits, NULL,
        " K N accuracy_level bits block_size weight_prepacked "),
    ROW("QGemm", 1, 1, 6, 9, 1, BYTES, 0, rnl_infer_qgemm, NULL, " alpha transA transB "),
    /* Zero points may be left out in the middle: infer counts the inputs of these. */
    ROW("QLinearAdd", 1, 1, 2, 8, 1, BYTES, 0, rnl_infer_qlinear_binary, NULL, ""),
    ROW("QLinearAveragePool", 1, 1, 2, 5, 1, BYTES, 0, rnl_infer_qlinear_pool, NULL,
        WINDOW "ceil_mode channels_last count_include_pad "),
    ROW("QLinearConcat", 1, 1, 1, MANY, 1, BIT(F32), 0, rnl_infer_qlinear_concat, NULL, " axis "),
    ROW("QLinearGlobalAveragePool", 1, 1, 2, 5, 1, BYTES, 0, rnl_infer_qlinear_global_pool, NULL, " channels_last "),
    ROW("QLinearLeakyRelu", 1, 1, 2, 5, 1, BYTES, 0, rnl_infer_qlinear_unary, NULL, " alpha "),
    ROW("QLinearMul", 1, 1, 2, 8, 1, BYTES, 0, rnl_infer_qlinear_binary, NULL, ""),
    ROW("QLinearSigmoid", 1, 1, 2, 5, 1, BYTES, 0, rnl_infer_qlinear_unary, NULL, ""),
    ROW("QLinearSoftmax", 1, 1, 2, 5, 1, BYTES, 0, rnl_infer_qlinear_unary, NULL, " axis opset "),
};

const rnl_op_domain rnl_op_domain_microsoft = {"com.microsoft", rows, sizeof rows / sizeof *rows};
