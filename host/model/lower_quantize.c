/* SPDX-License-Identifier: Apache-2.0 */
/* Casts, QuantizeLinear, DequantizeLinear. */
#include "model/lower_list.h"

#include "graph/op_cast.h"
#include "graph/op_quantize.h"
#include "ops/convert.h"

rnl_status rnl_lower_cast(rnl_lowering *lowering)
{
    rnl_view source, target;
    rnl_narrowing narrowing;
    TRY(rnl_cast_narrowing(lowering->context.node, &narrowing));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    if (source.dtype == lowering->context.outputs[0].dtype) {
        rnl_lower_alias(lowering, 0, &source);
        return RNL_OK;
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (rnl_dtype_is_small_float(target.dtype))
        return rnl_op_cast(lowering->list, narrowing.saturate, (int)narrowing.mode, &source, &target);
    return rnl_lower_copy(lowering, &source, &target);
}

rnl_status rnl_lower_bit_cast(rnl_lowering *lowering)
{
    rnl_view view;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &view));
    view.dtype = lowering->context.outputs[0].dtype;
    rnl_lower_alias(lowering, 0, &view);
    return RNL_OK;
}

/* A tensor, its scales and, if there are any, zero points; then the result. */
typedef struct operands {
    rnl_quantize how;
    rnl_view sources[3], target;
    size_t count; /* of sources */
    bool back;    /* dequantises */
    bool saturate;
} operands;

static rnl_status append(rnl_lowering *lowering, const operands *o)
{
    if (o->back)
        return rnl_op_dequantize(lowering->list, o->sources, o->count, &o->target);
    return rnl_op_quantize(lowering->list, o->how.precision, o->saturate, o->sources, o->count, &o->target);
}

/* Scales as a view that broadcasts to the tensor's rank. */
static rnl_view along_axis(const rnl_view *scale, const operands *o)
{
    rnl_view view = *scale;
    view.rank = o->how.by == RNL_QUANTIZE_AXIS ? o->target.rank : 0;
    for (size_t i = 0; i < view.rank; i++) {
        bool is_axis = i == o->how.axis;
        view.shape[i] = is_axis ? scale->shape[0] : 1;
        view.stride[i] = is_axis ? scale->stride[0] : 0;
    }
    return view;
}

/* `count` blocks of `size` elements from block `first` on; more than one along a dimension of their own. */
static rnl_view blocks_of(const rnl_view *whole, const rnl_quantize *q, int64_t first, int64_t count, int64_t size,
                          bool is_scale)
{
    int64_t step = is_scale ? 1 : q->block, stride = whole->stride[q->axis];
    rnl_view view = *whole;
    size_t at = q->axis;
    view.offset += first * step * stride;
    if (count > 1) {
        for (size_t i = view.rank++; i > at; i--) {
            view.shape[i] = view.shape[i - 1];
            view.stride[i] = view.stride[i - 1];
        }
        view.shape[at] = count;
        view.stride[at++] = step * stride;
    }
    view.shape[at] = is_scale ? 1 : size;
    return view;
}

static rnl_status append_blocks(rnl_lowering *lowering, const operands *o, int64_t first, int64_t count, int64_t size)
{
    operands part = *o;
    part.target = blocks_of(&o->target, &o->how, first, count, size, false);
    for (size_t i = 0; i < o->count; i++)
        part.sources[i] = blocks_of(&o->sources[i], &o->how, first, count, size, i > 0);
    return append(lowering, &part);
}

/* Whole blocks in one step, where there is a dimension left to count them; the last one may be smaller. */
static rnl_status append_all_blocks(rnl_lowering *lowering, const operands *o)
{
    const rnl_quantize *q = &o->how;
    int64_t whole = q->size / q->block, rest = q->size % q->block;
    int64_t together = o->target.rank < RNL_MAX_RANK ? whole : 1;
    for (int64_t i = 0; i < whole; i += together)
        TRY(append_blocks(lowering, o, i, together, q->block));
    return rest > 0 ? append_blocks(lowering, o, whole, 1, rest) : RNL_OK;
}

static rnl_status lower(rnl_lowering *lowering, operands *o)
{
    o->count = rnl_lower_has_input(lowering, 2) ? 3 : 2;
    for (size_t i = 0; i < o->count; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &o->sources[i]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &o->target));
    if (o->how.by == RNL_QUANTIZE_BLOCKS)
        return append_all_blocks(lowering, o);
    for (size_t i = 1; i < o->count; i++)
        o->sources[i] = along_axis(&o->sources[i], o);
    return append(lowering, o);
}

rnl_status rnl_lower_quantize(rnl_lowering *lowering)
{
    rnl_narrowing narrowing;
    operands o = {.back = false};
    TRY(rnl_cast_narrowing(lowering->context.node, &narrowing));
    TRY(rnl_quantize_resolve(&lowering->context, &o.how));
    o.saturate = narrowing.saturate;
    return lower(lowering, &o);
}

rnl_status rnl_lower_dequantize(rnl_lowering *lowering)
{
    operands o = {.back = true};
    TRY(rnl_dequantize_resolve(&lowering->context, &o.how));
    return lower(lowering, &o);
}
