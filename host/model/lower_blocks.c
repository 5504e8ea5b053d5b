/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, DepthToSpace and SpaceToDepth: copies between parts of views. */
#include "model/lower_list.h"

#include <string.h>

/* ---- Pad ------------------------------------------------------------------------------------------------------ */

/* Where a padded axis lies: `size` source elements from `first` of the target, `begin` before and `end` behind them. */
typedef struct padded_axis {
    size_t axis;
    int64_t begin, end, size, mode;
} padded_axis;

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* One side's `count` elements from `at` on, taken from the target itself at `from`, every `step`. */
static rnl_status pad_side(rnl_lowering *lowering, const rnl_view *target, size_t axis, int64_t at, int64_t count,
                           int64_t from, int64_t step)
{
    if (count <= 0)
        return RNL_OK;
    rnl_view source = *target, part = *target;
    rnl_view_slice(&part, axis, at, count, 1);
    rnl_view_slice(&source, axis, from, count, step);
    return rnl_lower_copy(lowering, &source, &part);
}

/*
 * Fills both sides of one axis in pieces that the filled part can supply. `target` covers all of the axes padded before
 * and only the source's part of those still to come, so corners come out right.
 */
static rnl_status pad_axis(rnl_lowering *lowering, const rnl_view *target, const padded_axis *p)
{
    int64_t low = p->begin, high = p->begin + p->size; /* filled so far */
    int64_t total = high + p->end;
    if (p->mode == PAD_EDGE || p->size == 1) {
        TRY(pad_side(lowering, target, p->axis, 0, low, low, 0));
        return pad_side(lowering, target, p->axis, high, total - high, high - 1, 0);
    }
    bool reflect = p->mode == PAD_REFLECT;
    int64_t period = reflect ? p->size - 1 : p->size;
    while ((low > 0 || high < total) && period > 0) {
        int64_t before = low < period ? low : period, after = total - high < period ? total - high : period;
        if (reflect) {
            TRY(pad_side(lowering, target, p->axis, low - before, before, low + before, -1));
            TRY(pad_side(lowering, target, p->axis, high, after, high - 2, -1));
        } else {
            TRY(pad_side(lowering, target, p->axis, low - before, before, low - before + p->size, 1));
            TRY(pad_side(lowering, target, p->axis, high, after, high - p->size, 1));
        }
        low -= before;
        high += after;
    }
    return RNL_OK;
}

/* The padding value, as a scalar. */
static rnl_status padding_value(rnl_lowering *lowering, rnl_dtype dtype, rnl_view *out_value)
{
    int64_t none[1];
    if (rnl_lower_has_input(lowering, 2))
        TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, out_value));
    else
        TRY(rnl_lower_scalar(lowering, dtype, (double)rnl_node_float(lowering->context.node, "value", 0), out_value));
    if (!rnl_view_reshape(out_value, 0, none, out_value))
        return FAIL(RNL_INVALID_ARGUMENT, "the padding value is not a scalar");
    return RNL_OK;
}

/* Fills what lies around the core, which starts at `begin`: whole slabs of the first axes, what they leave of others.
 */
static rnl_status fill_around(rnl_lowering *lowering, const rnl_view *value, const rnl_view *target,
                              const rnl_view *core, const int64_t *begin)
{
    rnl_view left = *target;
    for (size_t i = 0; i < target->rank; i++) {
        int64_t high = begin[i] + core->shape[i];
        rnl_view before = left, behind = left;
        rnl_view_slice(&before, i, 0, begin[i], 1);
        rnl_view_slice(&behind, i, high, target->shape[i] - high, 1);
        if (begin[i] > 0)
            TRY(rnl_lower_copy(lowering, value, &before));
        if (high < target->shape[i])
            TRY(rnl_lower_copy(lowering, value, &behind));
        rnl_view_slice(&left, i, begin[i], core->shape[i], 1);
    }
    return RNL_OK;
}

/* Two steps when the source is copied; without the copy, only the padding is written. */
static rnl_status pad_with_value(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target,
                                 const rnl_view *core, const int64_t *begin)
{
    rnl_view value;
    TRY(padding_value(lowering, target->dtype, &value));
    if (rnl_view_is_same(source, core))
        return fill_around(lowering, &value, target, core, begin);
    TRY(rnl_lower_copy(lowering, &value, target));
    return rnl_lower_copy(lowering, source, core);
}

static rnl_status pad_from_core(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target,
                                const rnl_view *core, const rnl_pad *pad)
{
    rnl_view filled = *core;
    if (!rnl_view_is_same(source, core))
        TRY(rnl_lower_copy(lowering, source, core));
    for (size_t i = 0; i < source->rank; i++) {
        int64_t begin = pad->begin[i] > 0 ? pad->begin[i] : 0;
        padded_axis p = {i, begin, pad->end[i] > 0 ? pad->end[i] : 0, core->shape[i], pad->mode};
        filled.offset -= begin * filled.stride[i];
        filled.shape[i] = target->shape[i];
        TRY(pad_axis(lowering, &filled, &p));
    }
    return RNL_OK;
}

rnl_status rnl_lower_pad(rnl_lowering *lowering)
{
    rnl_pad pad;
    rnl_view source, target;
    int64_t begin[RNL_MAX_RANK];
    TRY(rnl_pad_resolve(&lowering->context, &pad));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    rnl_view core = target; /* negative amounts crop the source */
    for (size_t i = 0; i < source.rank; i++) {
        int64_t crop_begin = pad.begin[i] < 0 ? -pad.begin[i] : 0, crop_end = pad.end[i] < 0 ? -pad.end[i] : 0;
        int64_t size = source.shape[i] - crop_begin - crop_end;
        begin[i] = pad.begin[i] > 0 ? pad.begin[i] : 0;
        rnl_view_slice(&source, i, crop_begin, size > 0 ? size : 0, 1);
        rnl_view_slice(&core, i, begin[i], size > 0 ? size : 0, 1);
    }
    return pad.mode == PAD_CONSTANT ? pad_with_value(lowering, &source, &target, &core, begin)
                                    : pad_from_core(lowering, &source, &target, &core, &pad);
}

/* ---- blocks of pixels ----------------------------------------------------------------------------------------- */

/* A view of an image N x C x H x W as six dimensions; block rows and columns of size b, channels in `groups` of C. */
static rnl_view split_image(const rnl_view *view, int64_t b, bool of_channels, bool depth_first)
{
    rnl_view result = *view;
    const int64_t *s = view->stride;
    int64_t n = view->shape[0], c = view->shape[1], h = view->shape[2], w = view->shape[3];
    result.rank = 6;
    if (of_channels) { /* order: n, c, b, b, h, w */
        int64_t depth = c / (b * b);
        int64_t unit = depth_first ? s[1] : s[1] * depth;
        int64_t channel = depth_first ? s[1] * b * b : s[1];
        memcpy(result.shape, (int64_t[]){n, depth, b, b, h, w}, 6 * sizeof n);
        memcpy(result.stride, (int64_t[]){s[0], channel, unit * b, unit, s[2], s[3]}, 6 * sizeof n);
    } else {
        memcpy(result.shape, (int64_t[]){n, c, b, b, h / b, w / b}, 6 * sizeof n);
        memcpy(result.stride, (int64_t[]){s[0], s[1], s[2], s[3], s[2] * b, s[3] * b}, 6 * sizeof n);
    }
    return result;
}

rnl_status rnl_lower_depth_to_space(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    int64_t block = rnl_node_int(node, "blocksize", 1);
    bool depth_first = strcmp(rnl_node_string(node, "mode", "DCR"), "CRD") == 0;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    source = split_image(&source, block, true, depth_first);
    target = split_image(&target, block, false, false);
    return rnl_lower_copy(lowering, &source, &target);
}

rnl_status rnl_lower_space_to_depth(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    int64_t block = rnl_node_int(node, "blocksize", 1);
    bool depth_first = strcmp(rnl_node_string(node, "mode", "DCR"), "CRD") == 0;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    source = split_image(&source, block, false, false);
    target = split_image(&target, block, true, depth_first);
    return rnl_lower_copy(lowering, &source, &target);
}
