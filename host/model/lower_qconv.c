/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 8-bit integers: as products of matrices where there is one group, else directly. */
#include "model/lower_quantized.h"

#include "base/memory.h"
#include "model/lower_list.h"
#include "ops/qconv.h"
#include <string.h>

/* Of a copy of the windows; more is convolved directly. */
#define MAX_COLUMN_BYTES ((int64_t)256 << 20)

static rnl_qconv_params params_of(const rnl_window *window, const rnl_product *p)
{
    rnl_qconv_params params = {.spatial = window->spatial,
                               .groups = window->groups,
                               .src_zero_point = &p->a_zero,
                               .weight_zero_point = &p->b_zero};
    memcpy(params.kernel, window->kernel, sizeof params.kernel);
    memcpy(params.stride, window->stride, sizeof params.stride);
    memcpy(params.dilation, window->dilation, sizeof params.dilation);
    memcpy(params.pad_begin, window->pad_begin, sizeof params.pad_begin);
    return params;
}

/* N, C, … becomes N, …, C. */
static rnl_view channels_behind(const rnl_view *view)
{
    rnl_view turned = *view;
    for (size_t i = 1; i < view->rank; i++) {
        size_t from = i + 1 < view->rank ? i + 1 : 1;
        turned.shape[i] = view->shape[from];
        turned.stride[i] = view->stride[from];
    }
    return turned;
}

/* One element for each channel, as it broadcasts over an image. */
static rnl_view of_channels(const rnl_view *view, size_t rank)
{
    rnl_view channels = *view;
    if (rnl_is_single(view)) {
        channels.rank = 0;
        return channels;
    }
    channels.rank = rank - 1;
    for (size_t i = 1; i < channels.rank; i++) {
        channels.shape[i] = 1;
        channels.stride[i] = 0;
    }
    return channels;
}

static bool is_pointwise(const rnl_window *window, const rnl_view *source)
{
    for (size_t i = 0; i < window->spatial; i++)
        if (window->kernel[i] != 1 || window->pad_begin[i] != 0 ||
            (window->output[i] - 1) * window->stride[i] >= source->shape[2 + i])
            return false;
    return true;
}

/* The pixels that windows of one pixel take. */
static rnl_view pixels_of(const rnl_window *window, const rnl_view *source)
{
    rnl_view pixels = channels_behind(source);
    for (size_t i = 0; i < window->spatial; i++) {
        pixels.shape[1 + i] = window->output[i];
        pixels.stride[1 + i] *= window->stride[i];
    }
    return pixels;
}

/* N, …, taps, C; false when it is too large. */
static bool columns_shape(const rnl_window *window, const rnl_view *source, int64_t *out_shape)
{
    int64_t taps = 1, elements, depth;
    out_shape[0] = source->shape[0];
    for (size_t i = 0; i < window->spatial; i++) {
        out_shape[1 + i] = window->output[i];
        if (__builtin_mul_overflow(taps, window->kernel[i], &taps))
            return false;
    }
    out_shape[1 + window->spatial] = taps;
    out_shape[2 + window->spatial] = source->shape[1];
    return !__builtin_mul_overflow(taps, source->shape[1], &depth) &&
           rnl_shape_elements(out_shape, window->spatial + 3, &elements) && elements <= MAX_COLUMN_BYTES;
}

/* The weights M, C, … as a matrix of (…, C) x M, `depth` x M. */
static rnl_status lower_weight_matrix(rnl_lowering *lowering, const rnl_view *weight, bool pointwise, int64_t depth,
                                      rnl_view *out_view)
{
    rnl_view turned = channels_behind(weight), copy = turned;
    int64_t stride = 1;
    if (weight->slot == RNL_NO_SLOT) { /* a constant, which is read packed */
        copy.stride[0] = depth;
    } else if (pointwise) {
        stride = weight->stride[1];
        copy.stride[0] = weight->stride[0];
    } else {
        TRY(rnl_lower_scratch(lowering, weight->dtype, turned.rank, turned.shape, RNL_LAYOUT_ROW_MAJOR, &copy));
        TRY(rnl_lower_copy(lowering, &turned, &copy));
    }
    *out_view = (rnl_view){.slot = copy.slot,
                           .dtype = copy.dtype,
                           .rank = 2,
                           .offset = copy.offset,
                           .shape = {depth, weight->shape[0]},
                           .stride = {stride, copy.stride[0]}};
    return RNL_OK;
}

static rnl_status lower_as_product(rnl_lowering *lowering, const rnl_window *window, const int64_t *shape,
                                   rnl_product *p)
{
    rnl_qconv_params params = params_of(window, p);
    rnl_product matrices = *p;
    const size_t last = window->spatial + 1;
    const int64_t depth = shape[last] * shape[last + 1];
    bool pointwise = is_pointwise(window, &p->a);
    matrices.a = pixels_of(window, &p->a);
    if (!pointwise) {
        rnl_view columns;
        TRY(rnl_lower_scratch(lowering, p->a.dtype, last + 2, shape, RNL_LAYOUT_ROW_MAJOR, &columns));
        TRY(rnl_op_qconv_columns(lowering->list, &params, &p->a, &columns));
        columns.rank = last + 1;
        columns.shape[last] = depth;
        columns.stride[last] = 1;
        matrices.a = columns;
    }
    TRY(lower_weight_matrix(lowering, &p->b, pointwise, depth, &matrices.b));
    matrices.target = channels_behind(&p->target);
    return rnl_lower_product(lowering, &matrices);
}

static rnl_status lower_directly(rnl_lowering *lowering, const rnl_window *window, rnl_product *p)
{
    rnl_qconv_params params = params_of(window, p);
    size_t rank = p->target.rank;
    rnl_view sums;
    TRY(rnl_lower_plain_factor(lowering, p));
    if (p->target.dtype == RNL_I32)
        return rnl_op_qconv(lowering->list, &params, &p->a, &p->b, &p->target);
    TRY(rnl_lower_scratch(lowering, RNL_I32, rank, p->target.shape, RNL_LAYOUT_CHANNELS_LAST, &sums));
    TRY(rnl_op_qconv(lowering->list, &params, &p->a, &p->b, &sums));
    const rnl_view bias = of_channels(&p->bias, rank), scale = of_channels(&p->b_scale, rank);
    return rnl_op_qmap(lowering->list, RNL_QMAP_SCALE, 1, &(rnl_quantized){&sums, &p->a_scale, NULL},
                       &(rnl_quantized){&bias, &scale, NULL}, &(rnl_quantized){&p->target, &p->y_scale, &p->y_zero});
}

static rnl_status lower_convolution(rnl_lowering *lowering, size_t weight_index, const uint32_t indices[9])
{
    rnl_window window;
    rnl_product p;
    int64_t shape[RNL_MAX_RANK];
    TRY(rnl_window_conv(&lowering->context, weight_index, &window));
    TRY(rnl_lower_product_inputs(lowering, indices, RNL_LAYOUT_CHANNELS_LAST, &p));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_CHANNELS_LAST, &p.a));
    if (window.groups == 1 && columns_shape(&window, &p.a, shape))
        return lower_as_product(lowering, &window, shape, &p);
    return lower_directly(lowering, &window, &p);
}

rnl_status rnl_lower_conv_integer(rnl_lowering *lowering)
{
    static const uint32_t indices[9] = {0,           RNL_NO_VALUE, 2, 1, RNL_NO_VALUE, 3, RNL_NO_VALUE, RNL_NO_VALUE,
                                        RNL_NO_VALUE};
    return lower_convolution(lowering, 1, indices);
}

rnl_status rnl_lower_qlinear_conv(rnl_lowering *lowering)
{
    return lower_convolution(lowering, 3, (const uint32_t[9]){0, 1, 2, 3, 4, 5, 8, 6, 7});
}
