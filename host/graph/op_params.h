/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of the operators in resolved form, shared by shape inference and by what runs them. */
#ifndef RUNNEL_GRAPH_OP_PARAMS_H
#define RUNNEL_GRAPH_OP_PARAMS_H

#include "graph/host_element.h"
#include "graph/op.h"

/* Conv, ConvTranspose, MaxPool, AveragePool, LpPool: auto_pad, ceil_mode and defaults resolved for these shapes. */
typedef struct rnl_window {
    size_t spatial;
    int64_t kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    int64_t groups;
    int64_t output[3]; /* spatial output size */
} rnl_window;
RNL_NODISCARD rnl_status rnl_window_conv(const rnl_op_context *context, size_t weight_index, rnl_window *out_window);
RNL_NODISCARD rnl_status rnl_window_conv_transpose(const rnl_op_context *context, rnl_window *out_window);
RNL_NODISCARD rnl_status rnl_window_pool(const rnl_op_context *context, rnl_window *out_window);

/* MatMulNBits: its attributes, against the shapes of its inputs. */
typedef struct rnl_nbits_shape {
    int64_t n, k, block; /* each below 2^31 */
    int bits;
} rnl_nbits_shape;
RNL_NODISCARD rnl_status rnl_nbits_resolve(const rnl_op_context *context, rnl_nbits_shape *out_shape);

/* Slice: one entry an axis of the input, in its order; step may be negative. */
typedef struct rnl_slice {
    int64_t start[RNL_MAX_RANK], step[RNL_MAX_RANK], size[RNL_MAX_RANK];
} rnl_slice;
RNL_NODISCARD rnl_status rnl_slice_resolve(const rnl_op_context *context, rnl_slice *out_slice);

/* Reductions: attribute or input, empty sets, noop_with_empty_axes. Bit i = axis i; *out_noop: the operator is an
 * identity. */
RNL_NODISCARD rnl_status rnl_reduce_axes(const rnl_op_context *context, uint32_t *out_axes, bool *out_noop);

/* Resize and Upsample of all opsets. */
typedef struct rnl_resize {
    int mode;        /* 0 nearest, 1 linear, 2 cubic: the order of rnl_resize_mode */
    int coordinates; /* the order of rnl_resize_coordinates */
    int nearest;     /* the order of rnl_resize_nearest */
    float cubic_a, extrapolation_value;
    bool exclude_outside, antialias;
    float scale[RNL_MAX_RANK], roi_begin[RNL_MAX_RANK], roi_end[RNL_MAX_RANK];
    int64_t output[RNL_MAX_RANK];
} rnl_resize;
RNL_NODISCARD rnl_status rnl_resize_resolve(const rnl_op_context *context, rnl_resize *out_resize);

/* TfIdfVectorizer: its attributes' lists, in which every place is checked. */
typedef struct rnl_ngram_params {
    const int64_t *pool, *indexes, *counts;
    const float *weights; /* one a column, or none */
    size_t pool_count, index_count, count_count, weight_count;
    int64_t least, most, skips, columns;
    int mode; /* 0 how often, 1 whether, 2 how often, weighted: TF, IDF, TFIDF */
} rnl_ngram_params;
RNL_NODISCARD rnl_status rnl_ngram_resolve(const rnl_node *node, rnl_ngram_params *out_params);

/* LabelEncoder: what stands for what. */
typedef struct rnl_label_list {
    rnl_dtype dtype;
    size_t count;
    const void *data; /* may be unaligned */
} rnl_label_list;
typedef struct rnl_labels {
    rnl_label_list keys, values; /* as many */
    rnl_number absent;           /* of the values' type: for what is no key */
} rnl_labels;
RNL_NODISCARD rnl_status rnl_labels_resolve(const rnl_node *node, rnl_labels *out_labels);

/* Dropout: whether its input training_mode, known by then, is true. */
bool rnl_dropout_draws(const rnl_tensor_desc *mode);

/* CumSum and CumProd: the axis that input 1 names. */
RNL_NODISCARD rnl_status rnl_scan_axis(const rnl_op_context *context, size_t *out_axis);

/* Pad: one entry an axis; amounts may be negative (crop). */
typedef struct rnl_pad {
    int mode; /* 0 constant, 1 reflect, 2 edge, 3 wrap */
    int64_t begin[RNL_MAX_RANK], end[RNL_MAX_RANK];
} rnl_pad;
RNL_NODISCARD rnl_status rnl_pad_resolve(const rnl_op_context *context, rnl_pad *out_pad);

/* Losses: 0 mean, 1 sum, 2 none. */
RNL_NODISCARD rnl_status rnl_loss_reduction(const rnl_node *node, int *out_reduction);

/* Split: sizes along the axis, one an output. */
RNL_NODISCARD rnl_status rnl_split_resolve(const rnl_op_context *context, size_t *out_axis, int64_t *out_sizes);

/* Einsum: each dimension of each input has a label, a letter or one that an ellipsis stands for. */
#define RNL_EINSUM_OPERANDS 16
#define RNL_EINSUM_LETTERS 52
#define RNL_EINSUM_LABELS (RNL_EINSUM_LETTERS + RNL_MAX_RANK)
typedef struct rnl_einsum {
    size_t operands, rank[RNL_EINSUM_OPERANDS], output_rank;
    size_t hidden; /* the most dimensions that an ellipsis stands for; theirs are the last labels */
    uint8_t labels[RNL_EINSUM_OPERANDS][RNL_MAX_RANK], output[RNL_EINSUM_LABELS];
    int64_t size[RNL_EINSUM_LABELS]; /* of the label, after broadcasting; -1: in no input */
} rnl_einsum;
RNL_NODISCARD rnl_status rnl_einsum_resolve(const rnl_op_context *context, rnl_einsum *out_einsum);

/* DFT and STFT; `outputs` are the points that are kept. */
typedef struct rnl_dft_params {
    size_t axis;
    int64_t points, outputs;
    bool inverse;
    bool mirrored; /* the input is half a spectrum, the output real */
} rnl_dft_params;
RNL_NODISCARD rnl_status rnl_dft_resolve(const rnl_op_context *context, rnl_dft_params *out_dft);
typedef struct rnl_stft_params {
    int64_t points, outputs, step, frames;
    int64_t samples; /* of each frame that are transformed; the others are 0 */
} rnl_stft_params;
RNL_NODISCARD rnl_status rnl_stft_resolve(const rnl_op_context *context, rnl_stft_params *out_stft);
/* The elements of output 0 of HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix. */
RNL_NODISCARD rnl_status rnl_signal_table(const rnl_op_context *context, void *data);

/* GridSample: 0 nearest, 1 linear, 2 cubic; 0 zeros, 1 border, 2 reflection. */
RNL_NODISCARD rnl_status rnl_grid_sample_resolve(const rnl_op_context *context, int *out_mode, int *out_padding);

/* Col2Im: `blocks` along each axis, of `taps` elements each. */
typedef struct rnl_col2im {
    size_t spatial;
    int64_t taps;
    int64_t image[RNL_MAX_RANK - 2], block[RNL_MAX_RANK - 2], blocks[RNL_MAX_RANK - 2];
    int64_t stride[RNL_MAX_RANK - 2], dilation[RNL_MAX_RANK - 2], pad_begin[RNL_MAX_RANK - 2];
    int64_t pad_end[RNL_MAX_RANK - 2];
} rnl_col2im;
RNL_NODISCARD rnl_status rnl_col2im_resolve(const rnl_op_context *context, rnl_col2im *out_col2im);

/* What MaxUnpool's indices count the elements of: the output, or its beginning where output_shape asks for more. */
RNL_NODISCARD rnl_status rnl_max_unpool_shape(const rnl_op_context *context, int64_t out_shape[RNL_MAX_RANK]);
RNL_NODISCARD rnl_status rnl_window_deform(const rnl_op_context *context, rnl_window *out_window);

/* An attribute or input axis in 0 … rank-1, or a failure naming the node's attribute. */
RNL_NODISCARD rnl_status rnl_axis_resolve(int64_t axis, size_t rank, const char *what, size_t *out_axis);
/* Shape both broadcast to; INVALID_ARGUMENT naming both shapes. */
RNL_NODISCARD rnl_status rnl_broadcast_shapes(const int64_t *a, size_t a_rank, const int64_t *b, size_t b_rank,
                                              int64_t *out_shape, size_t *out_rank);
/* A host-known integer tensor (I32, I64, any alignment) as int64; FAILED_PRECONDITION when its contents are not known.
 */
RNL_NODISCARD rnl_status rnl_desc_ints(const rnl_tensor_desc *desc, const char *what, int64_t *out_values,
                                       size_t capacity, size_t *out_count);

#endif
