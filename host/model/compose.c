/* SPDX-License-Identifier: Apache-2.0 */
#include "model/compose.h"

#include "graph/op_common.h"

static rnl_dtype result_type(rnl_map_op op, const rnl_view *sources)
{
    switch (op) {
    case RNL_MAP_NOT:
    case RNL_MAP_ISNAN:
    case RNL_MAP_EQUAL:
    case RNL_MAP_LESS:
    case RNL_MAP_LESS_EQUAL:
    case RNL_MAP_GREATER:
    case RNL_MAP_GREATER_EQUAL:
    case RNL_MAP_AND:
    case RNL_MAP_OR:
    case RNL_MAP_XOR:
        return RNL_BOOL;
    case RNL_MAP_SELECT:
        return sources[1].dtype;
    default:
        return sources[0].dtype;
    }
}

rnl_status rnl_compose_map(rnl_lowering *lowering, rnl_map_op op, const rnl_view *sources, size_t count,
                           rnl_view *out_view)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank = 0;
    rnl_view from[RNL_MAP_MAX_SOURCES]; /* out_view may be one of the sources */
    for (size_t i = 0; i < count; i++) {
        from[i] = sources[i];
        TRY(rnl_broadcast_shapes(shape, rank, from[i].shape, from[i].rank, shape, &rank));
    }
    TRY(rnl_lower_scratch(lowering, result_type(op, from), rank, shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_op_map(lowering->list, op, 0, 0, from, count, out_view);
}

rnl_status rnl_compose_unary(rnl_lowering *lowering, rnl_map_op op, const rnl_view *source, rnl_view *out_view)
{
    return rnl_compose_map(lowering, op, source, 1, out_view);
}

rnl_status rnl_compose_binary(rnl_lowering *lowering, rnl_map_op op, const rnl_view *a, const rnl_view *b,
                              rnl_view *out_view)
{
    const rnl_view sources[] = {*a, *b};
    return rnl_compose_map(lowering, op, sources, 2, out_view);
}

rnl_status rnl_compose_with(rnl_lowering *lowering, rnl_map_op op, const rnl_view *a, double number, rnl_view *out_view)
{
    rnl_view sources[] = {*a, *a};
    TRY(rnl_lower_scalar(lowering, a->dtype, number, &sources[1]));
    return rnl_compose_map(lowering, op, sources, 2, out_view);
}

rnl_status rnl_compose_dense(rnl_lowering *lowering, const rnl_view *source, rnl_view *out_view)
{
    const rnl_view from = *source;
    TRY(rnl_lower_scratch(lowering, from.dtype, from.rank, from.shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_lower_copy(lowering, &from, out_view);
}

rnl_status rnl_compose_cast(rnl_lowering *lowering, const rnl_view *source, rnl_dtype dtype, rnl_view *out_view)
{
    const rnl_view from = *source;
    *out_view = from;
    if (from.dtype == dtype)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, dtype, from.rank, from.shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_lower_copy(lowering, &from, out_view);
}

rnl_status rnl_compose_reduce(rnl_lowering *lowering, rnl_reduce_op op, uint32_t axes, const rnl_view *source,
                              rnl_view *out_view)
{
    const rnl_view from = *source;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < from.rank; i++)
        shape[i] = axes >> i & 1 ? 1 : from.shape[i];
    TRY(rnl_lower_scratch(lowering, from.dtype, from.rank, shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_op_reduce(lowering->list, op, axes, &from, out_view);
}

rnl_status rnl_compose_reshape(rnl_lowering *lowering, const rnl_view *source, size_t rank, const int64_t *shape,
                               rnl_view *out_view)
{
    rnl_view dense;
    if (rnl_view_reshape(source, rank, shape, out_view))
        return RNL_OK;
    TRY(rnl_compose_dense(lowering, source, &dense));
    return rnl_view_reshape(&dense, rank, shape, out_view) ? RNL_OK
                                                           : FAIL(RNL_INTERNAL, "a dense tensor cannot be reshaped");
}

rnl_status rnl_compose_product(rnl_lowering *lowering, rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                               const rnl_view *c, const rnl_view *target)
{
    const rnl_view none = {.slot = RNL_NO_SLOT};
    int64_t floats;
    rnl_view scratch;
    c = c ? c : &none;
    TRY(rnl_gemm_scratch(lowering->list->device, params, a, b, c, target, &floats));
    if (floats > 0) {
        TRY(rnl_lower_scratch(lowering, RNL_F32, 1, &floats, RNL_LAYOUT_ROW_MAJOR, &scratch));
        params->scratch = &scratch;
    }
    const rnl_status status = rnl_op_gemm(lowering->list, params, a, b, c, target);
    params->scratch = NULL;
    return status;
}

rnl_status rnl_compose_range(rnl_lowering *lowering, int64_t start, int64_t count, size_t axis, size_t rank,
                             rnl_view *out_view)
{
    rnl_tensor_desc desc = {.dtype = RNL_I64, .rank = rank};
    int64_t *numbers = NULL;
    TRY(rnl_zone_alloc(lowering->planner->zone, (size_t)count + 1, sizeof *numbers, &numbers));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = start + i;
    for (size_t i = 0; i < rank; i++)
        desc.shape[i] = i == axis ? count : 1;
    desc.host = numbers;
    return rnl_lower_constant(lowering, &desc, out_view);
}
