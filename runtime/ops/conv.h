/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution and transposed convolution, 1 to 3 spatial dimensions, groups, strides, dilations. */
#ifndef RUNNEL_OPS_CONV_H
#define RUNNEL_OPS_CONV_H

#include "ops/chain.h"

#define RNL_MAX_SPATIAL 3

typedef struct rnl_conv_params {
    size_t spatial; /* 1, 2 or 3 */
    int64_t stride[RNL_MAX_SPATIAL], dilation[RNL_MAX_SPATIAL];
    int64_t pad_begin[RNL_MAX_SPATIAL]; /* the end padding follows from dst's shape */
    int64_t groups;
    const rnl_chain *chain; /* what is done to each result before it is stored; NULL: nothing */
    const rnl_view
        *scratch;     /* memory that rnl_conv_scratch asked for; NULL: none, and a slower way where one is wanted */
    int64_t winograd; /* 4 or 2: weights are as rnl_conv_winograd_layout says for this side, scratch is there:
                         rnl_conv_prefers_winograd; else 0 */
    bool pairs;       /* weights are as rnl_conv_pairs_layout says, src is bfloat16: rnl_conv_prefers_pairs */
    bool fip;         /* the same by rnl_conv_fip_layout and rnl_conv_prefers_fip */
    bool strassen;    /* the same by rnl_conv_strassen_layout and rnl_conv_prefers_strassen */
    int64_t amx; /* parts of a number, where weights are as rnl_conv_amx_layout says: rnl_conv_prefers_amx; else 0 */
} rnl_conv_params;

/*
 * The layout that the kernels want weights in: panels of RNL_CONV_PANEL output channels of one group, [group][panel]
 * [tap][input channel][RNL_CONV_PANEL], so that a panel is read from its first to its last element. A group's last
 * panel is filled with zeros. Where each group has one channel in and out, and there are 4 of them or more:
 * [tap][group], a row padded with zeros to whole panels.
 *
 * Behind the weights lie zeros, as many as a group has input channels and at least RNL_CONV_ZEROS: the taps that fall
 * into padding read them in place of src, and the last vector read may reach into them.
 *
 * No strides describe that, so the view of packed weights has the shape of the tensor (M x C/g x k…, for a transposed
 * convolution C x M/g x k…), and strides of 0. Writes that view (offset 0, the slot given) and the elements to
 * allocate, INT64_MAX where that overflows.
 */
#define RNL_CONV_PANEL 16
#define RNL_CONV_ZEROS 64
RNL_API void rnl_conv_weight_layout(bool transposed, int64_t groups, uint32_t slot, rnl_dtype dtype, size_t rank,
                                    const int64_t *shape, rnl_view *out_view, int64_t *out_elements);
/*
 * Packs a row-major tensor into memory for all the layout's elements. `factors` (NULL: none; F32 only) are one for each
 * output channel, multiplied in.
 */
RNL_API void rnl_conv_pack(bool transposed, int64_t groups, rnl_dtype dtype, size_t rank, const int64_t *shape,
                           const void *source, const double *factors, void *target);
/*
 * For 3x3 taps with stride 1 in one group, another layout, of float32 alone: transformed for Winograd's way in tiles of
 * side x side pixels. With side 4 it is four times as large and takes a quarter of the multiplications, with 2 it is
 * 16/9 as large and takes four ninths. What is added up on the way is up to 84 times as large as the direct sums of
 * absolute products (2: 7 times). With side 4 and 64 channels errors are twice those of direct sums, with 512 a little
 * smaller (measured against float64 for normal data: 7e-7 of the results' standard deviation, at most 5e-6 of it), and
 * sums beyond 1e36 overflow. A NaN or an infinity makes NaN of all of a tile when it is among the pixels, two more in
 * each direction, that the tile reads.
 */
RNL_API void rnl_conv_winograd_layout(int64_t side, uint32_t slot, const int64_t shape[4], rnl_view *out_view,
                                      int64_t *out_elements);
/* As rnl_conv_pack. */
RNL_API void rnl_conv_winograd_pack(int64_t side, const int64_t shape[4], const float *source, const double *factors,
                                    float *target);
/*
 * For bfloat16 on processors that multiply pairs of it, with 3 channels in a group or more: integers of two channels
 * each, the first in the lower half, in rnl_conv_weight_layout's order. Of an odd number of channels the last pair has
 * a zero, and the view has one channel more. Source and factors are float32 and float64; their products are rounded to
 * the nearest even bfloat16. `turned`: the source is C x M x ….
 */
RNL_API void rnl_conv_pairs_layout(int64_t groups, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                                   int64_t *out_elements);
RNL_API void rnl_conv_pairs_pack(bool turned, int64_t groups, size_t rank, const int64_t *shape, const void *source,
                                 const double *factors, uint32_t *target);
/*
 * For single pixels in one group, with a multiple of 32 channels and float32 weights, a layout that is 7/4 as large:
 * for one level of Strassen's algorithm in Winograd's variant, with 7/8 of the multiplications. Errors are within a
 * bound of the whole product's size, not of each element's: where a channel, a pixel or a filter is a thousand times
 * larger than its neighbours, these get errors of its size. A NaN or an infinity in a pixel makes NaN of all of its
 * results, and of those of the pixel that it is paired with. `transposed`: channels come first, as in a matrix K x N.
 */
RNL_API void rnl_conv_strassen_layout(bool transposed, uint32_t slot, size_t rank, const int64_t *shape,
                                      rnl_view *out_view, int64_t *out_elements);
/* As rnl_conv_pack. */
RNL_API void rnl_conv_strassen_pack(bool transposed, const int64_t *shape, const float *source, const double *factors,
                                    float *target);
/*
 * For one group, with a multiple of 16 channels and float32 weights: Winograd's inner product (1968), with two thirds
 * of the multiplications. Rows of pixels and filters are scaled by powers of two, so that the error of a result is
 * within a bound of plain sums whose terms are all as large as the largest of its pixels times the largest of its
 * weights. Pixels that are not finite are multiplied plainly; a weight that is not finite makes NaN of its filter's
 * results. `transposed`: channels come first, in a matrix K x N, and there are no taps.
 */
RNL_API void rnl_conv_fip_layout(bool transposed, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                                 int64_t *out_elements);
/* As rnl_conv_pack. */
RNL_API void rnl_conv_fip_pack(bool transposed, size_t rank, const int64_t *shape, const float *source,
                               const double *factors, float *target);
/*
 * For x86's matrix tiles (AMX), in one group of up to two spatial dimensions: bfloat16, in one part of each number, or
 * in three that are float32's 24 bits. With three the largest six of nine products of parts are added up in float32, so
 * errors are those of float32 sums, as in Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence
 * Datatype For Higher-Precision Computations" (2019). Numbers below 1e-33 lose bits, since parts below 1.2e-38 are
 * zeros; NaN, an infinity or more than 3.38e38 in a pixel or a weight makes NaN of all results that read it, and in a
 * pixel also of what its products with zeros are added to. Source and factors are float32 and float64.
 */
RNL_API void rnl_conv_amx_layout(int64_t parts, bool transposed, uint32_t slot, size_t rank, const int64_t *shape,
                                 rnl_view *out_view, int64_t *out_elements);
RNL_API void rnl_conv_amx_pack(int64_t parts, bool transposed, size_t rank, const int64_t *shape, const void *source,
                               const double *factors, uint32_t *target);
/* rnl_conv_pack on the device: `weight` in any strides into dense memory of the layout's elements. */
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_pack(rnl_step_list *list, bool transposed, int64_t groups,
                                                  const rnl_view *weight, const rnl_view *dst);

/*
 * src N x C x spatial…, weight as rnl_conv_weight_layout says and of src's type, bias [M] or RNL_NO_SLOT, dst N x M x
 * spatial…. The channel stride of src and dst is 1, the others are free. f32, f16, bf16 storage, f32 accumulation.
 * Implementations, best first: conv:bf16, conv:amx, conv:winograd, conv:fip, conv:strassen (CPUs; their own
 * weights), conv:depthwise, conv:tiled (GPUs; scratch for sums in parts), conv:panel, conv:portable;
 * conv-transpose:panel (CPUs, a step for each phase), conv-transpose:portable.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_conv(rnl_step_list *list, const rnl_conv_params *params, const rnl_view *src,
                                             const rnl_view *weight, const rnl_view *bias, const rnl_view *dst);
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_transpose(rnl_step_list *list, const rnl_conv_params *params,
                                                       const rnl_view *src, const rnl_view *weight,
                                                       const rnl_view *bias, const rnl_view *dst);

/*
 * True where that is faster on the device than direct sums (with params.pairs, than those of pairs), and the user has
 * not forced another implementation: for constant weights, of which only `weight`'s shape and type are looked at.
 * params.winograd, .chain and .scratch are not. out_side: of Winograd's tiles, 0 for false.
 */
RNL_API RNL_NODISCARD rnl_status rnl_conv_prefers_winograd(const rnl_device *device, const rnl_conv_params *params,
                                                           const rnl_view *src, const rnl_view *weight,
                                                           const rnl_view *dst, int64_t *out_side);
RNL_API RNL_NODISCARD rnl_status rnl_conv_prefers_fip(const rnl_device *device, const rnl_conv_params *params,
                                                      const rnl_view *src, const rnl_view *weight, const rnl_view *dst,
                                                      bool *out_prefers);
RNL_API RNL_NODISCARD rnl_status rnl_conv_prefers_strassen(const rnl_device *device, const rnl_conv_params *params,
                                                           const rnl_view *src, const rnl_view *weight,
                                                           const rnl_view *dst, bool *out_prefers);
/* params.amx are the parts. */
RNL_API RNL_NODISCARD rnl_status rnl_conv_prefers_amx(const rnl_device *device, const rnl_conv_params *params,
                                                      const rnl_view *src, const rnl_view *weight, const rnl_view *dst,
                                                      bool *out_prefers);

/*
 * True where the device can: for constant weights, of which only the shape (M x C / groups x …) is looked at. Of a src
 * that is not bfloat16 yet a dense copy is read.
 */
RNL_API bool rnl_conv_prefers_pairs(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                    const rnl_view *weight);
/*
 * Whether a first layer, three colours in planes of float32, is faster by pairs, of what rnl_op_conv_colours makes of
 * its picture: dst is bfloat16, dense, channels last, with a fourth channel, which is zero.
 */
RNL_API bool rnl_conv_prefers_colours(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                      const rnl_view *weight);
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_colours(rnl_step_list *list, const rnl_view *src, const rnl_view *dst);
/* Whether pairs of channels can be read as integers: offset and strides are even. */
RNL_API bool rnl_conv_is_even(const rnl_view *src);

/* The float32 elements of scratch that rnl_op_conv wants, 0 for none. They hold nothing before or after. */
RNL_API RNL_NODISCARD rnl_status rnl_conv_scratch(const rnl_device *device, const rnl_conv_params *params,
                                                  const rnl_view *src, const rnl_view *weight, const rnl_view *bias,
                                                  const rnl_view *dst, int64_t *out_floats);

#endif
