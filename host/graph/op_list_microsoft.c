/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of com.microsoft, which onnxruntime's tools put into models: sorted by name. */
#include "graph/op_list.h"

static const rnl_op_schema *const rows[] = {
    ROW("Attention", 1, 1, 2, 6, 2, FLOATS, 0, rnl_infer_microsoft_attention, NULL,
        " do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
        "unidirectional "),
    ROW("BiasGelu", 1, 1, 2, 2, 1, FLOATS, 0, rnl_infer_bias_gelu, NULL, ""),
    ROW("DynamicQuantizeMatMul", 1, 1, 3, 5, 1, BIT(F32), 0, rnl_infer_dynamic_quantize_matmul, NULL, ""),
    ROW("EmbedLayerNormalization", 1, 1, 1, 9, 3, BIT(I32), 0, rnl_infer_embed_layer_normalization, NULL,
        " epsilon mask_index_type "),
    ROW("FastGelu", 1, 1, 1, 2, 1, FLOATS, 0, rnl_infer_bias_gelu, NULL, ""),
    ROW("FusedMatMul", 1, 1, 2, 2, 1, FLOATS, 0, rnl_infer_fused_matmul, NULL,
        " alpha transA transB transBatchA transBatchB "),
    ROW("Gelu", 1, 1, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("GroupQueryAttention", 1, 1, 1, 11, 3, FLOATS, INPUT(6), rnl_infer_group_query_attention, NULL,
        " causal do_rotary kv_num_heads local_window_size num_heads rotary_interleaved scale smooth_softmax softcap "),
    ROW("MatMulIntegerToFloat", 1, 1, 4, 7, 1, BYTES, 0, rnl_infer_matmul_integer_to_float, NULL, ""),
    ROW("MatMulNBits", 1, 1, 3, 6, 1, RNL_TYPES_FLOAT, 0, rnl_infer_matmul_nbits, NULL,
        " K N accuracy_level bits block_size weight_prepacked "),
    ROW("MultiHeadAttention", 1, 1, 1, 8, 3, FLOATS, 0, rnl_infer_multi_head_attention, NULL,
        " mask_filter_value num_heads scale unidirectional "),
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
    ROW("QuickGelu", 1, 1, 1, 1, 1, FLOATS, 0, rnl_infer_unary, NULL, " alpha "),
    ROW("RotaryEmbedding", 1, 1, 4, 4, 1, FLOATS, 0, rnl_infer_microsoft_rotary, NULL,
        " interleaved is_packed_batching num_heads rotary_embedding_dim "),
    ROW("SkipLayerNormalization", 1, 1, 3, 5, 4, FLOATS, 0, rnl_infer_skip_normalization, NULL, " epsilon "),
    ROW("SkipSimplifiedLayerNormalization", 1, 1, 3, 4, 4, FLOATS, 0, rnl_infer_skip_normalization, NULL, " epsilon "),
};

const rnl_op_domain rnl_op_domain_microsoft = {"com.microsoft", rows, sizeof rows / sizeof *rows};
