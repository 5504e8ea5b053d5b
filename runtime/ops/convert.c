/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/convert.h"
#include "ops/map_step.h"
#include "ops/qmap.h"

#define MAX_SOURCES 3

static rnl_status append(rnl_step_builder *step, rnl_dims *dims, const rnl_view *srcs, size_t src_count,
                         const rnl_view *dst)
{
    static const char *const names[MAX_SOURCES] = {"T0", "T1", "T2"};
    rnl_dims_coalesce(dims);
    rnl_step_define(step, "CONVERT");
    rnl_step_type(step, "T_DST", dst->dtype);
    for (size_t i = 0; i < src_count; ++i)
        rnl_step_type(step, names[i], srcs[i].dtype);
    return rnl_map_end(step, dims, 0, 0, srcs, src_count, dst);
}

static rnl_status check(const char *what, size_t least, const rnl_view *srcs, size_t src_count, const rnl_view *dst,
                        rnl_dims *dims, bool *out_index64)
{
    const rnl_view *views[1 + MAX_SOURCES] = {dst};
    if (src_count < least || src_count > MAX_SOURCES)
        return FAIL(RNL_INVALID_ARGUMENT, "%s does not take %zu operands", what, src_count);
    for (size_t i = 0; i < src_count; ++i)
        views[i + 1] = &srcs[i];
    TRY(rnl_views_check(views, src_count + 1, out_index64), "operands of %s", what);
    TRY(rnl_map_dims(srcs, src_count, dst, dims), "operands of %s", what);
    return RNL_OK;
}

static bool is_small_float(rnl_dtype dtype)
{
    return dtype == RNL_F4E2M1 || dtype == RNL_F8E8M0 || (dtype >= RNL_F8E4M3FN && dtype <= RNL_F8E5M2FNUZ);
}

rnl_status rnl_op_cast(rnl_step_list *list, bool saturate, int round_mode, const rnl_view *src, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(check("Cast", 1, src, 1, dst, &dims, &index64));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "cast:portable", index64);
    rnl_step_define(&step, is_small_float(dst->dtype) ? "OP=OP_CAST" : "OP=OP_COPY");
    if (is_small_float(dst->dtype) && !saturate)
        rnl_step_define(&step, "SATURATE=0");
    if (dst->dtype == RNL_F8E8M0 && round_mode)
        rnl_step_define(&step, "ROUND_MODE=%d", round_mode);
    return append(&step, &dims, src, 1, dst);
}

static bool is_divided(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16;
}

static bool is_quantized(rnl_dtype dtype)
{
    bool integer = dtype == RNL_U8 || dtype == RNL_I8 || dtype == RNL_U16 || dtype == RNL_I16;
    return integer || (rnl_dtype_is_stored(dtype) && dtype != RNL_F8E8M0);
}

static rnl_status check_quantize(rnl_dtype precision, const rnl_view *srcs, size_t src_count, const rnl_view *dst)
{
    bool takes_x = is_divided(srcs[0].dtype) || srcs[0].dtype == RNL_I32;
    bool takes_scale = is_divided(srcs[1].dtype) || srcs[1].dtype == RNL_I32 || srcs[1].dtype == RNL_F8E8M0;
    if (!takes_x || !takes_scale || !is_quantized(dst->dtype) || !is_divided(precision))
        return FAIL(RNL_UNIMPLEMENTED, "quantising %s by a scale of %s to %s", rnl_dtype_name(srcs[0].dtype),
                    rnl_dtype_name(srcs[1].dtype), rnl_dtype_name(dst->dtype));
    if (src_count == 3 && srcs[2].dtype != dst->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "a zero point of %s for %s", rnl_dtype_name(srcs[2].dtype),
                    rnl_dtype_name(dst->dtype));
    return RNL_OK;
}

static bool is_byte(rnl_dtype dtype)
{
    return dtype == RNL_U8 || dtype == RNL_I8;
}

/* Bytes and float32 are qmap's, which has vectors for them. */
static rnl_status append_bytes(rnl_step_list *list, bool quantizes, const rnl_view *srcs, size_t src_count,
                               const rnl_view *dst)
{
    const rnl_view *zero = src_count == 3 ? &srcs[2] : NULL;
    const rnl_quantized source = {&srcs[0], quantizes ? NULL : &srcs[1], quantizes ? NULL : zero};
    const rnl_quantized target = {dst, quantizes ? &srcs[1] : NULL, quantizes ? zero : NULL};
    return rnl_op_qmap(list, RNL_QMAP_COPY, 0, &source, NULL, &target);
}

rnl_status rnl_op_quantize(rnl_step_list *list, rnl_dtype precision, bool saturate, const rnl_view *srcs,
                           size_t src_count, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(check("QuantizeLinear", 2, srcs, src_count, dst, &dims, &index64));
    TRY(check_quantize(precision, srcs, src_count, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (srcs[0].dtype == RNL_F32 && srcs[1].dtype == RNL_F32 && precision == RNL_F32 && is_byte(dst->dtype))
        return append_bytes(list, true, srcs, src_count, dst);
    rnl_step_begin(&step, list, "quantize:portable", index64);
    rnl_step_define(&step, src_count == 3 ? "OP=OP_QUANTIZE_ZERO" : "OP=OP_QUANTIZE");
    rnl_step_define(&step, "PRECISION=%s", rnl_dtype_define(precision));
    if (is_small_float(dst->dtype) && !saturate)
        rnl_step_define(&step, "SATURATE=0");
    return append(&step, &dims, srcs, src_count, dst);
}

rnl_status rnl_op_dequantize(rnl_step_list *list, const rnl_view *srcs, size_t src_count, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(check("DequantizeLinear", 2, srcs, src_count, dst, &dims, &index64));
    bool takes_scale = is_divided(srcs[1].dtype) || srcs[1].dtype == RNL_F8E8M0;
    if (!(is_quantized(srcs[0].dtype) || srcs[0].dtype == RNL_I32) || !takes_scale || !is_divided(dst->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "dequantising %s to %s", rnl_dtype_name(srcs[0].dtype),
                    rnl_dtype_name(dst->dtype));
    if (src_count == 3 && srcs[2].dtype != srcs[0].dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "a zero point of %s for %s", rnl_dtype_name(srcs[2].dtype),
                    rnl_dtype_name(srcs[0].dtype));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (is_byte(srcs[0].dtype) && srcs[1].dtype == RNL_F32)
        return append_bytes(list, false, srcs, src_count, dst);
    rnl_step_begin(&step, list, "dequantize:portable", index64);
    rnl_step_define(&step, src_count == 3 ? "OP=OP_DEQUANTIZE_ZERO" : "OP=OP_DEQUANTIZE");
    return append(&step, &dims, srcs, src_count, dst);
}
