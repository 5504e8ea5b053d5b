/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of opsets 10, 11, 13, 18, 19 and Upsample of 7 and 9, resolved to one form. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* The orders of runtime/ops/resize.h, which this layer does not include. */
static const char *const mode_names[] = {"nearest", "linear", "cubic"};
static const char *const coordinate_names[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                               "tf_crop_and_resize"};
static const char *const nearest_names[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
static const char *const policy_names[] = {"stretch", "not_larger", "not_smaller"};
enum { ASYMMETRIC = 4, CROP = 6, FLOOR = 2, CEIL = 3 };

typedef struct resize_axes {
    size_t count, axis[RNL_MAX_RANK]; /* which axes the lists below speak of */
    int64_t sizes[RNL_MAX_RANK];
    float scales[RNL_MAX_RANK];
    bool by_sizes;
} resize_axes;

/* Where each version has its scales. */
static size_t scales_input(const rnl_node *node)
{
    return node->opset < 11 ? 1 : 2;
}

static rnl_status read_attributes(const rnl_node *node, rnl_resize *out)
{
    bool old = node->opset < 11;
    TRY(rnl_choose(node, "mode", mode_names, old ? 2 : 3, &out->mode));
    out->coordinates = ASYMMETRIC;
    out->nearest = FLOOR;
    out->cubic_a = rnl_node_float(node, "cubic_coeff_a", -0.75f);
    out->extrapolation_value = rnl_node_float(node, "extrapolation_value", 0);
    out->exclude_outside = rnl_node_int(node, "exclude_outside", 0) != 0;
    out->antialias = rnl_node_int(node, "antialias", 0) != 0;
    if (old)
        return RNL_OK;
    TRY(rnl_choose(node, "coordinate_transformation_mode", coordinate_names, 7, &out->coordinates));
    return rnl_choose(node, "nearest_mode", nearest_names, 4, &out->nearest);
}

static rnl_status read_axes(const rnl_op_context *context, resize_axes *axes)
{
    size_t rank = context->inputs[0].rank;
    const int64_t *values = rnl_node_ints(context->node, "axes", &axes->count);
    uint32_t bits;
    if (!values) {
        axes->count = rank;
        for (size_t i = 0; i < rank; i++)
            axes->axis[i] = i;
        return RNL_OK;
    }
    TRY(rnl_axes_bits(values, axes->count, rank, &bits));
    for (size_t i = 0; i < axes->count; i++)
        TRY(rnl_axis_resolve(values[i], rank, "axes", &axes->axis[i]));
    return RNL_OK;
}

static rnl_status check_count(const resize_axes *axes, size_t count, const char *what)
{
    if (count == axes->count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "'%s' has %zu elements for %zu axes", what, count, axes->count);
}

/* Sizes where they are given, else scales. An empty tensor counts as left out. */
static rnl_status read_lists(const rnl_op_context *context, resize_axes *axes)
{
    const rnl_node *node = context->node;
    size_t count, at = scales_input(node);
    if (strcmp(node->op_type, "Upsample") == 0 && node->opset < 9) {
        const float *scales = rnl_node_floats(node, "scales", &count);
        for (size_t i = 0; i < count && i < axes->count; i++)
            axes->scales[i] = scales[i];
        return check_count(axes, count, "scales");
    }
    bool sizes = rnl_input_exists(context, 3) && rnl_desc_elements(&context->inputs[3]) > 0;
    bool scales = rnl_input_exists(context, at) && rnl_desc_elements(&context->inputs[at]) > 0;
    if (sizes == scales)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs either 'scales' or 'sizes'", node->op_type);
    axes->by_sizes = sizes;
    if (sizes) {
        TRY(rnl_check_dtype(context, 3, RNL_TYPE_BIT(RNL_I64)));
        TRY(rnl_desc_ints(&context->inputs[3], "sizes (input 3)", axes->sizes, RNL_MAX_RANK, &count));
        return check_count(axes, count, "sizes");
    }
    TRY(rnl_desc_floats(&context->inputs[at], at == 1 ? "scales (input 1)" : "scales (input 2)", axes->scales,
                        RNL_MAX_RANK, &count));
    return check_count(axes, count, "scales");
}

static rnl_status read_roi(const rnl_op_context *context, const resize_axes *axes, rnl_resize *out)
{
    float values[2 * RNL_MAX_RANK];
    size_t count;
    if (out->coordinates != CROP)
        return RNL_OK;
    if (!rnl_input_exists(context, 1))
        return FAIL(RNL_INVALID_ARGUMENT, "Resize with tf_crop_and_resize needs 'roi' (input 1)");
    TRY(rnl_desc_floats(&context->inputs[1], "roi (input 1)", values, 2 * RNL_MAX_RANK, &count));
    if (count != 2 * axes->count)
        return FAIL(RNL_INVALID_ARGUMENT, "'roi' has %zu elements for %zu axes", count, axes->count);
    for (size_t i = 0; i < axes->count; i++) {
        out->roi_begin[axes->axis[i]] = values[i];
        out->roi_end[axes->axis[i]] = values[axes->count + i];
    }
    return RNL_OK;
}

static rnl_status bad_size(const rnl_op_context *context, size_t axis, double size)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    return FAIL(RNL_INVALID_ARGUMENT, "%s of axis %zu of shape %s to %g elements is not possible",
                context->node->op_type, axis, rnl_shape_format(input->shape, input->rank).text, size);
}

/* Rounds down and checks the range. */
static rnl_status set_output(const rnl_op_context *context, size_t axis, double size, rnl_resize *out)
{
    int64_t in = context->inputs[0].shape[axis];
    size = floor(size);
    if (!(size >= 0 && size < 0x1p62) || (in == 0 && size > 0))
        return bad_size(context, axis, size);
    out->output[axis] = (int64_t)size;
    return RNL_OK;
}

/* One scale for all axes, the least or the greatest of those that the sizes ask for. */
static rnl_status keep_aspect(const rnl_op_context *context, const resize_axes *axes, bool larger, rnl_resize *out)
{
    const int64_t *in = context->inputs[0].shape;
    double scale = larger ? 0 : (double)INFINITY;
    for (size_t i = 0; i < axes->count; i++) {
        double ratio = (double)axes->sizes[i] / (double)in[axes->axis[i]];
        scale = larger ? fmax(scale, ratio) : fmin(scale, ratio);
    }
    for (size_t i = 0; i < axes->count; i++) {
        size_t axis = axes->axis[i];
        TRY(set_output(context, axis, scale * (double)in[axis] + 0.5, out));
        out->scale[axis] = (float)scale;
    }
    return RNL_OK;
}

static rnl_status apply_sizes(const rnl_op_context *context, const resize_axes *axes, rnl_resize *out)
{
    const int64_t *in = context->inputs[0].shape;
    int policy;
    TRY(rnl_choose(context->node, "keep_aspect_ratio_policy", policy_names, 3, &policy));
    for (size_t i = 0; i < axes->count; i++) {
        size_t axis = axes->axis[i];
        if (axes->sizes[i] < 0 || (in[axis] == 0 && axes->sizes[i] > 0))
            return bad_size(context, axis, (double)axes->sizes[i]);
        out->output[axis] = axes->sizes[i];
        out->scale[axis] = in[axis] ? (float)((double)axes->sizes[i] / (double)in[axis]) : 1;
    }
    return policy == 0 ? RNL_OK : keep_aspect(context, axes, policy == 2, out);
}

static rnl_status apply_scales(const rnl_op_context *context, const resize_axes *axes, rnl_resize *out)
{
    bool upsample = strcmp(context->node->op_type, "Upsample") == 0;
    for (size_t i = 0; i < axes->count; i++) {
        size_t axis = axes->axis[i];
        float scale = axes->scales[i], size = (float)context->inputs[0].shape[axis] * scale;
        if (!(scale >= (upsample ? 1 : FLT_TRUE_MIN)) || isinf(scale))
            return FAIL(RNL_INVALID_ARGUMENT, "%s cannot scale axis %zu by %g", context->node->op_type, axis,
                        (double)scale);
        if (out->coordinates == CROP)
            size *= out->roi_end[axis] - out->roi_begin[axis];
        TRY(set_output(context, axis, (double)size, out));
        out->scale[axis] = scale;
    }
    return RNL_OK;
}

rnl_status rnl_resize_resolve(const rnl_op_context *context, rnl_resize *out_resize)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    resize_axes axes = {.count = 0};
    *out_resize = (rnl_resize){.mode = 0};
    for (size_t i = 0; i < input->rank; i++) {
        out_resize->scale[i] = out_resize->roi_end[i] = 1;
        out_resize->output[i] = input->shape[i];
    }
    TRY(read_attributes(context->node, out_resize));
    TRY(read_axes(context, &axes));
    TRY(read_lists(context, &axes));
    TRY(read_roi(context, &axes, out_resize));
    TRY(axes.by_sizes ? apply_sizes(context, &axes, out_resize) : apply_scales(context, &axes, out_resize));
    for (size_t i = 0; i < input->rank; i++) /* opset 10; where others grow, those are resized apart */
        if (context->node->opset < 11 && out_resize->scale[i] < 1)
            out_resize->nearest = CEIL;
    return RNL_OK;
}

rnl_status rnl_infer_resize(rnl_op_context *context)
{
    rnl_resize resize;
    TRY(rnl_infer_begin(context));
    TRY(rnl_resize_resolve(context, &resize));
    return rnl_output_set(context, 0, context->inputs[0].dtype, resize.output, context->inputs[0].rank);
}
