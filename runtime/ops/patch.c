/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/patch.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

/* ---- Col2Im --------------------------------------------------------------------------------------------------- */

static rnl_status check_col2im(const rnl_col2im_params *params, const rnl_view *src, const rnl_view *dst,
                               int64_t *out_taps)
{
    int64_t blocks = 1, columns = 0;
    *out_taps = 1;
    if (src->rank != 3 || dst->rank < 3 || src->dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "Col2Im of rank %zu into rank %zu", src->rank, dst->rank);
    for (size_t i = 0; i + 2 < dst->rank; ++i) {
        const bool fits = params->block[i] > 0 && params->blocks[i] >= 0 && params->stride[i] > 0 &&
                          params->dilation[i] > 0 && params->pad_begin[i] >= 0 &&
                          !__builtin_mul_overflow(*out_taps, params->block[i], out_taps) &&
                          !__builtin_mul_overflow(blocks, params->blocks[i], &blocks) && *out_taps <= INT32_MAX &&
                          params->block[i] * params->dilation[i] <= INT32_MAX &&
                          dst->shape[i + 2] + params->pad_begin[i] <= INT32_MAX;
        if (!fits)
            return FAIL(RNL_INVALID_ARGUMENT, "Col2Im's blocks do not make sense along spatial axis %zu", i);
    }
    if (src->shape[0] != dst->shape[0] || src->shape[2] != blocks ||
        __builtin_mul_overflow(dst->shape[1], *out_taps, &columns) || src->shape[1] != columns)
        return FAIL(RNL_INVALID_ARGUMENT, "Col2Im's blocks are not those of the image");
    return RNL_OK;
}

static void add_image_strides(rnl_step_builder *step, const rnl_view *dst)
{
    int64_t stride[RNL_MAX_RANK] = {dst->stride[0], dst->stride[1]};
    for (size_t i = 2; i < dst->rank; ++i)
        stride[i + RNL_MAX_RANK - dst->rank] = dst->stride[i];
    rnl_step_indices(step, RNL_MAX_RANK, stride, RNL_MAX_RANK, 0);
}

rnl_status rnl_op_col2im(rnl_step_list *list, const rnl_col2im_params *params, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    int64_t taps = 0;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, dst}, 2, &index64), "operands of Col2Im");
    TRY(check_col2im(params, src, dst, &taps));
    const int64_t count = rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    const size_t spatial = dst->rank - 2;
    const int64_t pixels = count / dst->shape[0] / dst->shape[1];
    rnl_step_begin(&step, list, "col2im:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_indices(&step, 4, (const int64_t[]){pixels, taps, dst->shape[1], dst->shape[0]}, 4, 0);
    rnl_step_dims(&step, dst->shape + 2, spatial, 1);
    rnl_step_dims(&step, params->block, spatial, 1);
    rnl_step_dims(&step, params->blocks, spatial, 1);
    rnl_step_dims(&step, params->pad_begin, spatial, 0);
    rnl_step_dims(&step, params->dilation, spatial, 1);
    rnl_step_dims(&step, params->stride, spatial, 1);
    add_image_strides(&step, dst);
    rnl_step_indices(&step, 4, (const int64_t[]){src->stride[0], src->stride[1] * taps, src->stride[1], src->stride[2]},
                     4, 0);
    rnl_step_range(&step, 3, (size_t[3]){(size_t)pixels, (size_t)dst->shape[1], (size_t)dst->shape[0]},
                   (size_t[3]){64, 1, 1});
    step.step.flops = (uint64_t)rnl_view_elements(src);
    step.step.bytes = (uint64_t)(rnl_view_elements(src) + count) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "col2im.cl", "col2im");
}

/* ---- MaxUnpool ------------------------------------------------------------------------------------------------ */

rnl_status rnl_op_max_unpool(rnl_step_list *list, const int64_t *shape, const rnl_view *src, const rnl_view *indices,
                             const rnl_view *dst)
{
    bool index64 = false;
    int64_t places = 1;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, indices, dst}, 3, &index64), "operands of MaxUnpool");
    if (src->dtype != dst->dtype || indices->dtype != RNL_I64 || !rnl_shapes_equal(src, indices) ||
        dst->rank != src->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "MaxUnpool's operands do not belong together");
    for (size_t i = 0; i < dst->rank; ++i)
        if (shape[i] < 0 || shape[i] > dst->shape[i])
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of MaxUnpool's result has %lld elements, less than %lld", i,
                        (long long)dst->shape[i], (long long)shape[i]);
        else
            places *= shape[i];
    const int64_t count = rnl_view_elements(src);
    if (count == 0 || places == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "max_unpool:portable", index64);
    rnl_step_type(&step, "T", rnl_dtype_bits(src->dtype));
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, indices);
    rnl_step_index(&step, count);
    rnl_step_index(&step, places);
    rnl_step_dims(&step, src->shape, src->rank, 1);
    rnl_step_dims(&step, src->stride, src->rank, 0);
    rnl_step_dims(&step, indices->stride, src->rank, 0);
    rnl_step_dims(&step, shape, dst->rank, 1);
    rnl_step_dims(&step, dst->stride, dst->rank, 0);
    rnl_step_range(&step, 1, (size_t[3]){(size_t)count}, (size_t[3]){64});
    step.step.bytes = (uint64_t)count * (2 * rnl_dtype_bytes(src->dtype) + rnl_dtype_bytes(RNL_I64));
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "max_unpool.cl", "max_unpool");
}

/* ---- deformable convolution ----------------------------------------------------------------------------------- */

static rnl_status check_deform(const rnl_deform_params *params, const rnl_view *src, const rnl_view *offsets,
                               const rnl_view *mask, const rnl_view *dst)
{
    const bool masked = rnl_view_exists(mask);
    if (!rnl_dtype_is_float(src->dtype) || offsets->dtype != src->dtype || dst->dtype != src->dtype ||
        (masked && mask->dtype != src->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "a deformable convolution of %s", rnl_dtype_name(src->dtype));
    bool fits = src->rank == 4 && dst->rank == 5 && offsets->rank == 4 && (!masked || mask->rank == 4) &&
                params->offset_groups > 0;
    for (size_t i = 0; i < 2 && fits; ++i)
        fits = params->kernel[i] > 0 && params->stride[i] > 0 && params->dilation[i] > 0 && params->pad_begin[i] >= 0;
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "a deformable convolution's window does not make sense");
    for (size_t i = 0; i < 2; ++i)
        if (params->kernel[i] * params->dilation[i] > INT32_MAX / 4 || src->shape[2 + i] > INT32_MAX / 4 ||
            dst->shape[3 + i] * params->stride[i] > INT32_MAX / 4 || params->pad_begin[i] > INT32_MAX / 4)
            return FAIL(RNL_UNIMPLEMENTED, "a deformable convolution over more than 2^29 pixels");
    const int64_t taps = params->kernel[0] * params->kernel[1];
    fits = taps <= INT32_MAX && dst->shape[0] == src->shape[0] && dst->shape[1] == src->shape[1] &&
           dst->shape[2] == taps && src->shape[1] % params->offset_groups == 0 &&
           offsets->shape[1] == 2 * taps * params->offset_groups &&
           (!masked || mask->shape[1] == taps * params->offset_groups);
    for (size_t i = 0; i < 4 && fits; ++i)
        fits = i == 1 ||
               (offsets->shape[i] == dst->shape[i ? i + 1 : 0] && (!masked || mask->shape[i] == offsets->shape[i]));
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "a deformable convolution's operands have shapes that do not belong together");
    if (dst->shape[3] * dst->shape[4] > INT32_MAX || dst->shape[0] * taps > INT32_MAX || dst->shape[1] > INT32_MAX)
        return FAIL(RNL_UNIMPLEMENTED, "a deformable convolution of more than 2^31 pixels or channels");
    return RNL_OK;
}

/* Two values, h and w, as (x, y). */
static void add_pair(rnl_step_builder *step, const int64_t *values)
{
    const int32_t pair[2] = {(int32_t)values[1], (int32_t)values[0]};
    rnl_step_value(step, pair, sizeof pair);
}

static void add_deform(rnl_step_builder *step, const rnl_deform_params *params, const rnl_view *src,
                       const rnl_view *offsets, const rnl_view *dst)
{
    const int32_t sizes[4] = {(int32_t)src->shape[1], (int32_t)(src->shape[1] / params->offset_groups),
                              (int32_t)src->shape[0], (int32_t)dst->shape[2]};
    rnl_step_value(step, sizes, sizeof sizes);
    add_pair(step, src->shape + 2);
    add_pair(step, dst->shape + 3);
    add_pair(step, params->kernel);
    add_pair(step, params->stride);
    add_pair(step, params->dilation);
    add_pair(step, params->pad_begin);
    rnl_step_indices(step, 4, src->stride, 4, 0);
    rnl_step_indices(step, 8, dst->stride, 5, 0);
    rnl_step_indices(step, 4, offsets->stride, 4, 0);
}

rnl_status rnl_op_deform(rnl_step_list *list, const rnl_deform_params *params, const rnl_view *src,
                         const rnl_view *offsets, const rnl_view *mask, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, offsets, mask, dst}, 4, &index64),
        "operands of a deformable convolution");
    TRY(check_deform(params, src, offsets, mask, dst));
    const uint64_t count = (uint64_t)rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "deform:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, offsets);
    if (rnl_view_exists(mask)) {
        rnl_step_define(&step, "MASK");
        rnl_step_view(&step, mask);
        rnl_step_indices(&step, 4, mask->stride, 4, 0);
    }
    add_deform(&step, params, src, offsets, dst);
    const size_t items[3] = {(size_t)(dst->shape[3] * dst->shape[4]), (size_t)dst->shape[1],
                             (size_t)(dst->shape[0] * dst->shape[2])};
    rnl_step_range(&step, 3, items, (size_t[3]){64, 1, 1});
    step.step.flops = count * 8;
    step.step.bytes = count * 5 * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "deform.cl", "deform");
}
