/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 8-bit integers: as products of matrices where there is one group, else directly. */
#include "model/lower_quantized.h"

#include "base/memory.h"
#include "model/fuse.h"
#include "model/lower_list.h"
#include "ops/qconv_winograd.h"
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

/* What a group adds to the convolution's result, and what the sum is quantised by; no slots: nothing. */
typedef struct addition {
    rnl_view values, scale, zero, sum_scale, sum_zero;
} addition;

static rnl_status lower_addition(rnl_lowering *lowering, addition *out)
{
    static const size_t scales[4] = {1, 2, 6, 7};
    rnl_view *const views[4] = {&out->scale, &out->zero, &out->sum_scale, &out->sum_zero};
    const rnl_group *group = lowering->group;
    out->values.slot = RNL_NO_SLOT;
    for (size_t i = 0; i < 4; i++)
        views[i]->slot = RNL_NO_SLOT;
    if (!group)
        return RNL_OK;
    const rnl_node *add = &lowering->planner->graph->nodes[rnl_group_last(group)];
    const size_t other = add->inputs[0] == lowering->context.node->outputs[0] ? 3 : 0;
    TRY(rnl_lower_value(lowering, add->inputs[other], RNL_LAYOUT_CHANNELS_LAST, &out->values));
    for (size_t i = 0; i < 4; i++) {
        const uint32_t value = add->inputs[scales[i] + (i < 2 ? other : 0)];
        if (value == RNL_NO_VALUE)
            continue;
        TRY(rnl_lower_value(lowering, value, RNL_LAYOUT_ANY, views[i]));
        views[i]->rank = 0;
    }
    return RNL_OK;
}

static rnl_qconv_end end_of(const rnl_product *p, const addition *add)
{
    return (rnl_qconv_end){.bias = &p->bias,
                           .a_scale = &p->a_scale,
                           .b_scale = &p->b_scale,
                           .dst_scale = &p->y_scale,
                           .dst_zero_point = &p->y_zero,
                           .addend = &add->values,
                           .addend_scale = &add->scale,
                           .addend_zero_point = &add->zero,
                           .sum_scale = &add->sum_scale,
                           .sum_zero_point = &add->sum_zero};
}

static rnl_status lower_memory(rnl_lowering *lowering, rnl_qconv_params *params, const rnl_qconv_end *end,
                               const rnl_view *source, const rnl_view *weight, const rnl_view *target,
                               rnl_view *out_scratch)
{
    const int64_t bytes = rnl_qconv_scratch(lowering->list->device, params, end, source, weight, target);
    if (bytes == 0)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, RNL_U8, 1, &bytes, RNL_LAYOUT_ROW_MAJOR, out_scratch));
    params->scratch = out_scratch;
    return RNL_OK;
}

/* From the image itself in one step, where the device can; *out_done: it did. */
static rnl_status lower_in_one(rnl_lowering *lowering, const rnl_window *window, rnl_product *p, const addition *add,
                               bool *out_done)
{
    rnl_device *device = lowering->list->device;
    rnl_qconv_params params = params_of(window, p);
    const rnl_qconv_end end = end_of(p, add);
    rnl_weight_key key = {p->b_constant, RNL_PACKING_BYTES_WINDOWS, 0, RNL_NO_NODE, RNL_NO_NODE};
    rnl_view packed, scratch;
    *out_done = false;
    if (p->b_constant == RNL_NO_VALUE)
        return RNL_OK;
    params.winograd = rnl_qconv_winograd_form(device, &params, &end, &p->a, &p->b, &p->target);
    if (!params.winograd && !rnl_qconv_panel_applies(device, &params, &end, &p->a, &p->b, &p->target))
        return RNL_OK;
    *out_done = true;
    if (params.winograd)
        key.packing = (rnl_packing)(RNL_PACKING_BYTES_WINOGRAD + params.winograd - 1);
    TRY(lower_memory(lowering, &params, &end, &p->a, &p->b, &p->target, &scratch));
    TRY(rnl_lower_weight(lowering, &key, NULL, 0, &packed));
    return rnl_op_qconv_panel(lowering->list, &params, &end, &p->a, &p->b, &packed, &p->target);
}

/* A convolution of any number of channels as one of lines: a pixel has all that a line of a window reads from it on. */
typedef struct by_lines {
    rnl_qconv_params copy; /* of the image, with its padding, to dense lines of pixels */
    rnl_view copied;       /* N, …, 1, width, C */
    rnl_qconv_params params;
    rnl_view lines, weight;
    int64_t bytes;
} by_lines;

static bool find_lines(const rnl_window *window, const rnl_product *p, by_lines *out)
{
    const size_t last = window->spatial - 1;
    const int64_t channels = p->a.shape[1], width = window->kernel[last];
    int64_t line;
    *out = (by_lines){.copy = params_of(window, p), .params = params_of(window, p), .lines = p->a, .weight = p->b};
    if (window->groups != 1 || channels % 4 == 0 || p->b_constant == RNL_NO_VALUE || window->dilation[last] != 1 ||
        __builtin_mul_overflow(channels, width, &line) || line > INT32_MAX)
        return false;
    out->copied = (rnl_view){.dtype = p->a.dtype, .rank = window->spatial + 3, .shape = {p->a.shape[0]}};
    for (size_t i = 0; i < window->spatial; i++) {
        const int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
        out->lines.shape[2 + i] = (window->output[i] - 1) * window->stride[i] + (i == last ? 1 : reach);
        out->copied.shape[1 + i] = i == last ? 1 : out->lines.shape[2 + i];
        out->copy.kernel[i] = i == last ? out->lines.shape[2 + i] - 1 + reach : 1;
        out->copy.stride[i] = out->copy.dilation[i] = 1;
        out->params.pad_begin[i] = 0;
    }
    out->copied.shape[last + 2] = out->copy.kernel[last];
    out->copied.shape[last + 3] = channels;
    out->params.kernel[last] = out->weight.shape[2 + last] = 1;
    out->lines.shape[1] = out->weight.shape[1] = (line + 3) / 4 * 4;
    if (!rnl_shape_elements(out->copied.shape, out->copied.rank, &out->bytes) || out->bytes > MAX_COLUMN_BYTES)
        return false;
    out->copied = rnl_view_row_major(0, p->a.dtype, out->copied.rank, out->copied.shape);
    const int64_t *stride = out->copied.stride;
    out->lines.stride[0] = stride[0];
    out->lines.stride[1] = 1;
    for (size_t i = 0; i < window->spatial; i++)
        out->lines.stride[2 + i] = i == last ? channels : stride[1 + i];
    out->lines.offset = 0;
    out->lines.slot = 0;
    return true;
}

/* The last line is read a little beyond its end, where weights are 0. */
static rnl_status lower_by_lines(rnl_lowering *lowering, const rnl_window *window, rnl_product *p, const addition *add,
                                 bool *out_done)
{
    by_lines l;
    rnl_view memory, packed, scratch;
    rnl_qconv_end end = end_of(p, add);
    const rnl_weight_key key = {p->b_constant, RNL_PACKING_BYTES_LINES, 0, RNL_NO_NODE, RNL_NO_NODE};
    *out_done = find_lines(window, p, &l) &&
                rnl_qconv_panel_applies(lowering->list->device, &l.params, &end, &l.lines, &l.weight, &p->target);
    if (!*out_done)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, p->a.dtype, 1, (const int64_t[]){l.bytes + 4}, RNL_LAYOUT_ROW_MAJOR, &memory));
    l.copied.slot = l.lines.slot = memory.slot;
    TRY(rnl_op_qconv_columns(lowering->list, &l.copy, &p->a, &l.copied));
    end.products = rnl_view_elements(&p->b) / p->b.shape[0];
    TRY(lower_memory(lowering, &l.params, &end, &l.lines, &l.weight, &p->target, &scratch));
    TRY(rnl_lower_weight(lowering, &key, NULL, 0, &packed));
    return rnl_op_qconv_panel(lowering->list, &l.params, &end, &l.lines, &l.weight, &packed, &p->target);
}

static rnl_status lower_window(rnl_lowering *lowering, const rnl_window *window, rnl_product *p)
{
    int64_t shape[RNL_MAX_RANK];
    return window->groups == 1 && columns_shape(window, &p->a, shape) ? lower_as_product(lowering, window, shape, p)
                                                                      : lower_directly(lowering, window, p);
}

static rnl_status lower_convolution(rnl_lowering *lowering, size_t weight_index, const uint32_t indices[9])
{
    rnl_window window;
    rnl_product p;
    addition add;
    bool done;
    TRY(rnl_window_conv(&lowering->context, weight_index, &window));
    TRY(rnl_lower_product_inputs(lowering, indices, RNL_LAYOUT_CHANNELS_LAST, &p));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_CHANNELS_LAST, &p.a));
    TRY(lower_addition(lowering, &add));
    TRY(lower_in_one(lowering, &window, &p, &add, &done));
    if (!done)
        TRY(lower_by_lines(lowering, &window, &p, &add, &done));
    if (done || !lowering->group)
        return done ? RNL_OK : lower_window(lowering, &window, &p);
    const rnl_view sum = p.target;
    const rnl_view y_scale = rnl_view_of_columns(&p.y_scale), y_zero = rnl_view_of_columns(&p.y_zero);
    TRY(rnl_lower_scratch(lowering, sum.dtype, sum.rank, sum.shape, RNL_LAYOUT_CHANNELS_LAST, &p.target));
    TRY(lower_window(lowering, &window, &p));
    return rnl_op_qmap(lowering->list, RNL_QMAP_ADD, 0, &(rnl_quantized){&p.target, &y_scale, &y_zero},
                       &(rnl_quantized){&add.values, &add.scale, &add.zero},
                       &(rnl_quantized){&sum, &add.sum_scale, &add.sum_zero});
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
