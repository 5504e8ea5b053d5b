/* SPDX-License-Identifier: Apache-2.0 */
/* The lowering functions of all families; lower_list.c maps operators to them. */
#ifndef RUNNEL_MODEL_LOWER_LIST_H
#define RUNNEL_MODEL_LOWER_LIST_H

#include "model/lower.h"

/* The elementwise operator that a node is, and its parameters; false when it is none of the table's. */
bool rnl_map_of_node(const rnl_node *node, rnl_map_op *out_op, float *out_p0, float *out_p1);

rnl_status rnl_lower_map(rnl_lowering *lowering);      /* elementwise, by name */
rnl_status rnl_lower_variadic(rnl_lowering *lowering); /* Sum, Mean, Max, Min */
rnl_status rnl_lower_clip(rnl_lowering *lowering);
rnl_status rnl_lower_mod(rnl_lowering *lowering);

rnl_status rnl_lower_cast(rnl_lowering *lowering); /* Cast, CastLike */
rnl_status rnl_lower_bit_cast(rnl_lowering *lowering);
rnl_status rnl_lower_quantize(rnl_lowering *lowering);
rnl_status rnl_lower_dequantize(rnl_lowering *lowering);

rnl_status rnl_lower_ngrams(rnl_lowering *lowering); /* TfIdfVectorizer */
rnl_status rnl_lower_random(rnl_lowering *lowering); /* RandomNormal, RandomUniform, and their like */
rnl_status rnl_lower_bernoulli(rnl_lowering *lowering);
rnl_status rnl_lower_multinomial(rnl_lowering *lowering);

rnl_status rnl_lower_identity(rnl_lowering *lowering);
rnl_status rnl_lower_dropout(rnl_lowering *lowering);
rnl_status rnl_lower_reshape(rnl_lowering *lowering); /* Reshape, Flatten, Squeeze, Unsqueeze */
rnl_status rnl_lower_transpose(rnl_lowering *lowering);
rnl_status rnl_lower_slice(rnl_lowering *lowering);
rnl_status rnl_lower_split(rnl_lowering *lowering);
rnl_status rnl_lower_expand(rnl_lowering *lowering);
rnl_status rnl_lower_concat(rnl_lowering *lowering);
rnl_status rnl_lower_pad(rnl_lowering *lowering);
rnl_status rnl_lower_tile(rnl_lowering *lowering);
rnl_status rnl_lower_fill(rnl_lowering *lowering); /* ConstantOfShape */
rnl_status rnl_lower_depth_to_space(rnl_lowering *lowering);
rnl_status rnl_lower_space_to_depth(rnl_lowering *lowering);
rnl_status rnl_lower_gather(rnl_lowering *lowering);

rnl_status rnl_lower_gather_elements(rnl_lowering *lowering);
rnl_status rnl_lower_gather_nd(rnl_lowering *lowering);
rnl_status rnl_lower_scatter_elements(rnl_lowering *lowering);
rnl_status rnl_lower_scatter_nd(rnl_lowering *lowering);

rnl_status rnl_lower_arg(rnl_lowering *lowering);
rnl_status rnl_lower_hardmax(rnl_lowering *lowering);
rnl_status rnl_lower_scan(rnl_lowering *lowering);
rnl_status rnl_lower_topk(rnl_lowering *lowering);
rnl_status rnl_lower_trilu(rnl_lowering *lowering);
rnl_status rnl_lower_eye_like(rnl_lowering *lowering);
rnl_status rnl_lower_one_hot(rnl_lowering *lowering);
rnl_status rnl_lower_reverse_sequence(rnl_lowering *lowering);
rnl_status rnl_lower_tensor_scatter(rnl_lowering *lowering);

rnl_status rnl_lower_reduce(rnl_lowering *lowering);
rnl_status rnl_lower_global_pool(rnl_lowering *lowering);
rnl_status rnl_lower_softmax(rnl_lowering *lowering);
rnl_status rnl_lower_batch_norm(rnl_lowering *lowering);
rnl_status rnl_lower_instance_norm(rnl_lowering *lowering);
rnl_status rnl_lower_layer_norm(rnl_lowering *lowering);
rnl_status rnl_lower_attention(rnl_lowering *lowering);
rnl_status rnl_lower_flex_scores(rnl_lowering *lowering);
rnl_status rnl_lower_flex_values(rnl_lowering *lowering);
rnl_status rnl_lower_rotary_embedding(rnl_lowering *lowering);
rnl_status rnl_lower_bias_gelu(rnl_lowering *lowering); /* BiasGelu, FastGelu */
rnl_status rnl_lower_quick_gelu(rnl_lowering *lowering);
rnl_status rnl_lower_fused_matmul(rnl_lowering *lowering);
rnl_status rnl_lower_skip_normalization(rnl_lowering *lowering);
rnl_status rnl_lower_embed_layer_norm(rnl_lowering *lowering);
rnl_status rnl_lower_microsoft_rotary(rnl_lowering *lowering);
rnl_status rnl_lower_microsoft_attention(rnl_lowering *lowering);
rnl_status rnl_lower_group_query_attention(rnl_lowering *lowering);
rnl_status rnl_lower_multi_head_attention(rnl_lowering *lowering);
rnl_status rnl_lower_training_norm(rnl_lowering *lowering); /* BatchNormalization with its own statistics */
rnl_status rnl_lower_rms_norm(rnl_lowering *lowering);
rnl_status rnl_lower_group_norm(rnl_lowering *lowering);
rnl_status rnl_lower_mean_variance_norm(rnl_lowering *lowering);
rnl_status rnl_lower_lp_norm(rnl_lowering *lowering);
rnl_status rnl_lower_lrn(rnl_lowering *lowering);

rnl_status rnl_lower_recurrent(rnl_lowering *lowering); /* RNN, GRU, LSTM */
rnl_status rnl_lower_linear_attention(rnl_lowering *lowering);
rnl_status rnl_lower_causal_conv(rnl_lowering *lowering);
rnl_status rnl_lower_loss(rnl_lowering *lowering);

/* ai.onnx.ml */
rnl_status rnl_lower_feature_extractor(rnl_lowering *lowering);
rnl_status rnl_lower_binarizer(rnl_lowering *lowering);
rnl_status rnl_lower_scaler(rnl_lowering *lowering);
rnl_status rnl_lower_normalizer(rnl_lowering *lowering);
rnl_status rnl_lower_label_encoder(rnl_lowering *lowering);
rnl_status rnl_lower_linear_classifier(rnl_lowering *lowering);
rnl_status rnl_lower_linear_regressor(rnl_lowering *lowering);
rnl_status rnl_lower_trees(rnl_lowering *lowering);
rnl_status rnl_lower_tree_regressor(rnl_lowering *lowering);
/* Scores as they are (0), their softmax along each row (1) or their logistic function (2). */
rnl_status rnl_lower_post_transform(rnl_lowering *lowering, int transform, const rnl_view *scores,
                                    const rnl_view *target);

rnl_status rnl_lower_conv(rnl_lowering *lowering);
rnl_status rnl_lower_conv_transpose(rnl_lowering *lowering);
rnl_status rnl_lower_pool(rnl_lowering *lowering);
rnl_status rnl_lower_resize(rnl_lowering *lowering);
rnl_status rnl_lower_matmul(rnl_lowering *lowering);
rnl_status rnl_lower_grid_sample(rnl_lowering *lowering);
rnl_status rnl_lower_affine_grid(rnl_lowering *lowering);
rnl_status rnl_lower_roi(rnl_lowering *lowering); /* RoiAlign, MaxRoiPool */
rnl_status rnl_lower_col2im(rnl_lowering *lowering);
rnl_status rnl_lower_max_unpool(rnl_lowering *lowering);
rnl_status rnl_lower_deform_conv(rnl_lowering *lowering);
rnl_status rnl_lower_center_crop_pad(rnl_lowering *lowering);
rnl_status rnl_lower_global_lp_pool(rnl_lowering *lowering);
rnl_status rnl_lower_dft(rnl_lowering *lowering);
rnl_status rnl_lower_stft(rnl_lowering *lowering);
rnl_status rnl_lower_signal_table(rnl_lowering *lowering); /* windows, MelWeightMatrix */
rnl_status rnl_lower_det(rnl_lowering *lowering);
rnl_status rnl_lower_einsum(rnl_lowering *lowering);
rnl_status rnl_lower_gemm(rnl_lowering *lowering);

rnl_status rnl_lower_dynamic_quantize(rnl_lowering *lowering);
rnl_status rnl_lower_matmul_integer(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_matmul(rnl_lowering *lowering);
rnl_status rnl_lower_conv_integer(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_conv(rnl_lowering *lowering);
rnl_status rnl_lower_matmul_nbits(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_add(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_mul(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_sigmoid(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_leaky_relu(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_concat(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_pool(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_global_pool(rnl_lowering *lowering);
rnl_status rnl_lower_qlinear_softmax(rnl_lowering *lowering);
rnl_status rnl_lower_qgemm(rnl_lowering *lowering);
rnl_status rnl_lower_dynamic_quantize_matmul(rnl_lowering *lowering);
rnl_status rnl_lower_matmul_integer_to_float(rnl_lowering *lowering);
rnl_status rnl_lower_custom(rnl_lowering *lowering); /* of every operator of the caller's that has kernels */

#endif
