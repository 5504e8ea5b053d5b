/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the rows in op_list.c name. */
#ifndef RUNNEL_GRAPH_OP_ROWS_H
#define RUNNEL_GRAPH_OP_ROWS_H

#include "graph/op.h"

/* op_elementwise.c */
rnl_status rnl_infer_unary(rnl_op_context *context);
rnl_status rnl_infer_isnan(rnl_op_context *context);
rnl_status rnl_infer_gelu(rnl_op_context *context);
rnl_status rnl_infer_binary(rnl_op_context *context);
rnl_status rnl_infer_bit_shift(rnl_op_context *context);
rnl_status rnl_infer_swiglu(rnl_op_context *context);
rnl_status rnl_infer_mod(rnl_op_context *context);
rnl_status rnl_infer_pow(rnl_op_context *context);
rnl_status rnl_infer_compare(rnl_op_context *context);
rnl_status rnl_infer_prelu(rnl_op_context *context);
rnl_status rnl_infer_variadic(rnl_op_context *context);
rnl_status rnl_infer_where(rnl_op_context *context);
rnl_status rnl_infer_clip(rnl_op_context *context);
rnl_status rnl_infer_dropout(rnl_op_context *context);

/* op_cast.c, op_quantize.c */
rnl_status rnl_infer_cast(rnl_op_context *context);
rnl_status rnl_infer_cast_like(rnl_op_context *context);
rnl_status rnl_infer_bit_cast(rnl_op_context *context);
rnl_status rnl_evaluate_cast(rnl_op_context *context);
rnl_status rnl_infer_quantize(rnl_op_context *context);
rnl_status rnl_infer_dequantize(rnl_op_context *context);
rnl_status rnl_evaluate_quantize(rnl_op_context *context);
rnl_status rnl_evaluate_dequantize(rnl_op_context *context);

/* op_shape.c */
rnl_status rnl_infer_shape(rnl_op_context *context);
rnl_status rnl_infer_size(rnl_op_context *context);
rnl_status rnl_infer_reshape(rnl_op_context *context);
rnl_status rnl_infer_flatten(rnl_op_context *context);
rnl_status rnl_infer_squeeze(rnl_op_context *context);
rnl_status rnl_infer_unsqueeze(rnl_op_context *context);
rnl_status rnl_infer_transpose(rnl_op_context *context);
rnl_status rnl_infer_expand(rnl_op_context *context);
rnl_status rnl_infer_tile(rnl_op_context *context);
rnl_status rnl_infer_constant_of_shape(rnl_op_context *context);
rnl_status rnl_infer_depth_to_space(rnl_op_context *context);
rnl_status rnl_infer_space_to_depth(rnl_op_context *context);

/* op_nonzero.c, op_unique.c, op_suppress.c: they infer from contents */
rnl_status rnl_infer_nonzero(rnl_op_context *context);
rnl_status rnl_infer_compress(rnl_op_context *context);
rnl_status rnl_infer_unique(rnl_op_context *context);
rnl_status rnl_infer_suppress(rnl_op_context *context);
rnl_status rnl_evaluate_nonzero(rnl_op_context *context);
rnl_status rnl_evaluate_compress(rnl_op_context *context);
rnl_status rnl_evaluate_unique(rnl_op_context *context);
rnl_status rnl_evaluate_suppress(rnl_op_context *context);

/* op_late.c: what is known only when the node runs */
rnl_status rnl_infer_late(rnl_op_context *context);

/* op_ngrams.c */
rnl_status rnl_infer_ngrams(rnl_op_context *context);

/* op_random.c */
rnl_status rnl_infer_random(rnl_op_context *context);
rnl_status rnl_infer_random_like(rnl_op_context *context);
rnl_status rnl_infer_bernoulli(rnl_op_context *context);
rnl_status rnl_infer_multinomial(rnl_op_context *context);

/* op_range.c */
rnl_status rnl_infer_range(rnl_op_context *context);
rnl_status rnl_evaluate_range(rnl_op_context *context);

/* op_slice.c, op_split.c, op_pad.c */
rnl_status rnl_infer_slice(rnl_op_context *context);
rnl_status rnl_infer_gather(rnl_op_context *context);
rnl_status rnl_infer_split(rnl_op_context *context);
rnl_status rnl_infer_concat(rnl_op_context *context);
rnl_status rnl_infer_pad(rnl_op_context *context);

/* op_reduce.c, op_window.c, op_conv.c, op_resize.c, op_matrix.c, op_normalize.c */
rnl_status rnl_infer_reduce(rnl_op_context *context);
rnl_status rnl_infer_conv(rnl_op_context *context);
rnl_status rnl_infer_conv_integer(rnl_op_context *context);
rnl_status rnl_infer_qlinear_conv(rnl_op_context *context);
rnl_status rnl_infer_conv_transpose(rnl_op_context *context);
rnl_status rnl_infer_pool(rnl_op_context *context);
rnl_status rnl_infer_global_pool(rnl_op_context *context);
rnl_status rnl_infer_resize(rnl_op_context *context);
rnl_status rnl_infer_matmul(rnl_op_context *context);
rnl_status rnl_infer_gemm(rnl_op_context *context);
rnl_status rnl_infer_det(rnl_op_context *context);
rnl_status rnl_infer_grid_sample(rnl_op_context *context);
rnl_status rnl_infer_affine_grid(rnl_op_context *context);
rnl_status rnl_infer_roi_align(rnl_op_context *context);
rnl_status rnl_infer_max_roi_pool(rnl_op_context *context);
rnl_status rnl_infer_col2im(rnl_op_context *context);
rnl_status rnl_infer_max_unpool(rnl_op_context *context);
rnl_status rnl_infer_deform_conv(rnl_op_context *context);
rnl_status rnl_infer_center_crop_pad(rnl_op_context *context);
rnl_status rnl_infer_dft(rnl_op_context *context);
rnl_status rnl_infer_stft(rnl_op_context *context);
rnl_status rnl_infer_window(rnl_op_context *context);
rnl_status rnl_infer_mel(rnl_op_context *context);
rnl_status rnl_evaluate_signal_table(rnl_op_context *context);
rnl_status rnl_infer_einsum(rnl_op_context *context);
rnl_status rnl_infer_batch_normalization(rnl_op_context *context);
rnl_status rnl_infer_instance_normalization(rnl_op_context *context);
rnl_status rnl_infer_layer_normalization(rnl_op_context *context);
rnl_status rnl_infer_attention(rnl_op_context *context);
rnl_status rnl_infer_flex_scores(rnl_op_context *context);
rnl_status rnl_infer_flex_values(rnl_op_context *context);
rnl_status rnl_infer_rotary_embedding(rnl_op_context *context);
rnl_status rnl_infer_bias_gelu(rnl_op_context *context);
rnl_status rnl_infer_fused_matmul(rnl_op_context *context);
rnl_status rnl_infer_skip_normalization(rnl_op_context *context);
rnl_status rnl_infer_embed_layer_normalization(rnl_op_context *context);
rnl_status rnl_infer_microsoft_rotary(rnl_op_context *context);
rnl_status rnl_infer_microsoft_attention(rnl_op_context *context);
rnl_status rnl_infer_group_query_attention(rnl_op_context *context);
rnl_status rnl_infer_multi_head_attention(rnl_op_context *context);
rnl_status rnl_infer_rms_normalization(rnl_op_context *context);
rnl_status rnl_infer_group_normalization(rnl_op_context *context);
rnl_status rnl_infer_mean_variance_normalization(rnl_op_context *context);
rnl_status rnl_infer_lp_normalization(rnl_op_context *context);
rnl_status rnl_infer_lrn(rnl_op_context *context);
rnl_status rnl_infer_softmax(rnl_op_context *context);

/* op_nbits.c */
rnl_status rnl_infer_matmul_nbits(rnl_op_context *context);

/* op_qlinear.c */
rnl_status rnl_infer_qlinear_unary(rnl_op_context *context);
rnl_status rnl_infer_qlinear_binary(rnl_op_context *context);
rnl_status rnl_infer_qlinear_global_pool(rnl_op_context *context);
rnl_status rnl_infer_qlinear_pool(rnl_op_context *context);
rnl_status rnl_infer_qlinear_concat(rnl_op_context *context);

/* op_quantized.c */
rnl_status rnl_infer_dynamic_quantize(rnl_op_context *context);
rnl_status rnl_infer_matmul_integer(rnl_op_context *context);
rnl_status rnl_infer_qlinear_matmul(rnl_op_context *context);
rnl_status rnl_infer_qgemm(rnl_op_context *context);
rnl_status rnl_infer_dynamic_quantize_matmul(rnl_op_context *context);
rnl_status rnl_infer_matmul_integer_to_float(rnl_op_context *context);

/* op_ml.c */
rnl_status rnl_infer_feature_extractor(rnl_op_context *context);
rnl_status rnl_infer_scaler(rnl_op_context *context);
rnl_status rnl_infer_normalizer(rnl_op_context *context);
rnl_status rnl_infer_label_encoder(rnl_op_context *context);
rnl_status rnl_infer_linear_classifier(rnl_op_context *context);
rnl_status rnl_infer_linear_regressor(rnl_op_context *context);
rnl_status rnl_infer_trees(rnl_op_context *context);
rnl_status rnl_infer_tree_regressor(rnl_op_context *context);

/* op_recurrent.c, op_linear_attention.c, op_loss.c */
rnl_status rnl_infer_recurrent(rnl_op_context *context);
rnl_status rnl_infer_linear_attention(rnl_op_context *context);
rnl_status rnl_infer_causal_conv(rnl_op_context *context);
rnl_status rnl_infer_loss(rnl_op_context *context);

/* op_indexing.c */
rnl_status rnl_infer_gather_elements(rnl_op_context *context);
rnl_status rnl_infer_gather_nd(rnl_op_context *context);
rnl_status rnl_infer_scatter_elements(rnl_op_context *context);
rnl_status rnl_infer_scatter_nd(rnl_op_context *context);

/* op_select.c */
rnl_status rnl_infer_arg(rnl_op_context *context);
rnl_status rnl_infer_hardmax(rnl_op_context *context);
rnl_status rnl_infer_scan(rnl_op_context *context);
rnl_status rnl_infer_topk(rnl_op_context *context);
rnl_status rnl_infer_trilu(rnl_op_context *context);
rnl_status rnl_infer_eye_like(rnl_op_context *context);
rnl_status rnl_infer_one_hot(rnl_op_context *context);
rnl_status rnl_infer_reverse_sequence(rnl_op_context *context);
rnl_status rnl_infer_tensor_scatter(rnl_op_context *context);

/* eval_unary.c, eval_binary.c */
rnl_status rnl_evaluate_unary(rnl_op_context *context);
rnl_status rnl_evaluate_isnan(rnl_op_context *context);
rnl_status rnl_evaluate_isinf(rnl_op_context *context);
rnl_status rnl_evaluate_binary(rnl_op_context *context);
rnl_status rnl_evaluate_pow(rnl_op_context *context);
rnl_status rnl_evaluate_compare(rnl_op_context *context);
rnl_status rnl_evaluate_variadic(rnl_op_context *context);

/* eval_select.c */
rnl_status rnl_evaluate_where(rnl_op_context *context);
rnl_status rnl_evaluate_clip(rnl_op_context *context);
rnl_status rnl_evaluate_dropout(rnl_op_context *context);

/* eval_shape.c: what only moves bytes. Shape and Size read no contents. */
rnl_status rnl_evaluate_copy(rnl_op_context *context);
rnl_status rnl_evaluate_shape(rnl_op_context *context);
rnl_status rnl_evaluate_size(rnl_op_context *context);
rnl_status rnl_evaluate_transpose(rnl_op_context *context);
rnl_status rnl_evaluate_expand(rnl_op_context *context);
rnl_status rnl_evaluate_tile(rnl_op_context *context);
rnl_status rnl_evaluate_constant_of_shape(rnl_op_context *context);

/* eval_slice.c */
rnl_status rnl_evaluate_slice(rnl_op_context *context);
rnl_status rnl_evaluate_gather(rnl_op_context *context);
rnl_status rnl_evaluate_split(rnl_op_context *context);
rnl_status rnl_evaluate_concat(rnl_op_context *context);
rnl_status rnl_evaluate_pad(rnl_op_context *context);

/* eval_reduce.c */
rnl_status rnl_evaluate_reduce(rnl_op_context *context);

#endif
