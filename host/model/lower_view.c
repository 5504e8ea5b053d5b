/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only rearrange: views where strides can say it, copies where not. */
#include "model/lower_list.h"

#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "model/evaluate.h"
#include "ops/implementation.h"
#include "ops/resize.h"
#include <string.h>

#define SHORTEST_MAPPED_ROW 16 /* elements */

rnl_status rnl_lower_identity(rnl_lowering *lowering)
{
    rnl_view source;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    rnl_lower_alias(lowering, 0, &source);
    return RNL_OK;
}

/* The smallest step in memory along each dimension of `shape`; `pieces` is a view that splits those dimensions. */
static void smallest_strides(const rnl_view *pieces, size_t rank, const int64_t *shape, int64_t *out_stride)
{
    size_t piece = 0;
    for (size_t i = 0; i < rank; i++) {
        out_stride[i] = INT64_MAX;
        for (int64_t left = shape[i]; left > 1; left /= pieces->shape[piece++])
            if (pieces->stride[piece] < out_stride[i])
                out_stride[i] = pieces->stride[piece];
    }
}

/* A shuffle of channels, for one, leaves an image's pixels where they are. */
static rnl_layout layout_like(const rnl_view *pieces, size_t rank, const int64_t *shape)
{
    int64_t stride[RNL_MAX_RANK];
    smallest_strides(pieces, rank, shape, stride);
    bool channels_first = rank >= 3;
    for (size_t i = 2; i < rank; i++)
        channels_first &= stride[1] < stride[i];
    return channels_first ? RNL_LAYOUT_CHANNELS_LAST : RNL_LAYOUT_ROW_MAJOR;
}

/* One copy, straight into the layout that whoever reads the result is likely to want. */
static rnl_status copy_reshaped(rnl_lowering *lowering, const rnl_view *source, size_t pieces, const int64_t *sizes)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_view from, to;
    bool splits = rnl_view_reshape(source, pieces, sizes, &from);
    if (splits) {
        rnl_layout layout = layout_like(&from, output->rank, output->shape);
        TRY(rnl_lower_output(lowering, 0, layout, &to));
        splits = rnl_view_reshape(&to, pieces, sizes, &to);
    }
    return splits ? rnl_lower_copy(lowering, &from, &to) : FAIL(RNL_INTERNAL, "a tensor cannot be split");
}

rnl_status rnl_lower_reshape(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    int64_t sizes[RNL_MAX_RANK];
    size_t pieces;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    if (!rnl_view_reshape(&source, output->rank, output->shape, &target)) {
        if (rnl_view_pieces(&source, output->rank, output->shape, &pieces, sizes))
            return copy_reshaped(lowering, &source, pieces, sizes);
        TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &source));
        if (!rnl_view_reshape(&source, output->rank, output->shape, &target))
            return FAIL(RNL_INTERNAL, "a row-major tensor cannot be reshaped");
    }
    rnl_lower_alias(lowering, 0, &target);
    return RNL_OK;
}

rnl_status rnl_lower_transpose(rnl_lowering *lowering)
{
    size_t permutation[RNL_MAX_RANK], count;
    rnl_view source;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    const int64_t *perm = rnl_node_ints(lowering->context.node, "perm", &count);
    for (size_t i = 0; i < source.rank; i++)
        permutation[i] = perm ? (size_t)perm[i] : source.rank - 1 - i;
    source = rnl_view_permute(&source, permutation);
    rnl_lower_alias(lowering, 0, &source);
    return RNL_OK;
}

rnl_status rnl_lower_slice(rnl_lowering *lowering)
{
    rnl_slice slice;
    rnl_view view;
    TRY(rnl_slice_resolve(&lowering->context, &slice));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &view));
    for (size_t i = 0; i < view.rank; i++)
        rnl_view_slice(&view, i, slice.start[i], slice.size[i], slice.step[i]);
    rnl_lower_alias(lowering, 0, &view);
    return RNL_OK;
}

rnl_status rnl_lower_split(rnl_lowering *lowering)
{
    size_t axis, count = lowering->context.output_count;
    int64_t start = 0, *sizes = NULL;
    rnl_view source;
    TRY(rnl_zone_alloc(lowering->planner->zone, count, sizeof *sizes, &sizes));
    TRY(rnl_split_resolve(&lowering->context, &axis, sizes));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    for (size_t i = 0; i < count; i++) {
        rnl_view part = source;
        rnl_view_slice(&part, axis, start, sizes[i], 1);
        rnl_lower_alias(lowering, i, &part);
        start += sizes[i];
    }
    return RNL_OK;
}

rnl_status rnl_lower_expand(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_view source;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    source = rnl_view_expand(&source, output->rank, output->shape);
    rnl_lower_alias(lowering, 0, &source);
    return RNL_OK;
}

/* Adds `part` behind `all` along the axis; false when it does not lie there. */
static bool continues(rnl_view *all, const rnl_view *part, size_t axis)
{
    bool follows = part->slot == all->slot && part->stride[axis] == all->stride[axis] &&
                   part->offset == all->offset + all->shape[axis] * all->stride[axis];
    for (size_t i = 0; i < all->rank && follows; i++)
        follows = i == axis || all->shape[i] == 1 || part->stride[i] == all->stride[i];
    all->shape[axis] += part->shape[axis];
    return follows;
}

/* The inputs lie side by side: the result is there already. */
static rnl_status joined(rnl_lowering *lowering, size_t axis, bool *out_joined, rnl_view *out_view)
{
    rnl_view part;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, out_view));
    *out_joined = rnl_view_elements(out_view) > 0;
    for (size_t i = 1; i < lowering->context.node->input_count && *out_joined; i++) {
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &part));
        *out_joined = continues(out_view, &part, axis);
    }
    return RNL_OK;
}

rnl_status rnl_lower_concat(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis, rank = lowering->context.outputs[0].rank;
    int64_t start = 0;
    rnl_view source, target;
    bool in_place;
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", 1), rank, "axis", &axis));
    for (size_t i = 0; i < node->input_count; i++) /* placed before the output picks its layout */
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &source));
    TRY(joined(lowering, axis, &in_place, &target));
    if (in_place) {
        rnl_lower_alias(lowering, 0, &target);
        return RNL_OK;
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    for (size_t i = 0; i < node->input_count; i++) {
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &source));
        rnl_view part = target;
        rnl_view_slice(&part, axis, start, source.shape[axis], 1);
        if (!rnl_view_is_same(&source, &part))
            TRY(rnl_lower_copy(lowering, &source, &part));
        start += source.shape[axis];
    }
    return RNL_OK;
}

/* Repeats the dimensions whose bit is set; each of them becomes two: how often, and the source's. */
static rnl_status repeat(rnl_lowering *lowering, const rnl_view *source, uint32_t axes, const rnl_view *target)
{
    rnl_view from = *source, to = *target;
    size_t rank = 0;
    for (size_t i = 0; i < source->rank; i++) {
        bool split = axes >> i & 1;
        if (split) {
            from.shape[rank] = to.shape[rank] = target->shape[i] / source->shape[i];
            to.stride[rank] = source->shape[i] * target->stride[i];
            from.stride[rank++] = 0;
        }
        from.shape[rank] = to.shape[rank] = split ? source->shape[i] : target->shape[i];
        to.stride[rank] = target->stride[i];
        from.stride[rank++] = source->shape[i] == 1 ? 0 : source->stride[i];
    }
    to.rank = from.rank = rank;
    return rnl_lower_copy(lowering, &from, &to);
}

/* Axis by axis, each of a dense tensor: what lies before it, how often, what it and what lies behind it hold. */
static rnl_status repeat_in_turn(rnl_lowering *lowering, rnl_view source, uint32_t axes)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_view next, from, to;
    TRY(rnl_compose_dense(lowering, &source, &source));
    for (size_t i = 0; i < source.rank; i++) {
        int64_t shape[RNL_MAX_RANK], outer = 1, inner = 1;
        if (!(axes >> i & 1))
            continue;
        for (size_t j = 0; j < source.rank; j++) {
            shape[j] = j == i ? output->shape[j] : source.shape[j];
            *(j < i ? &outer : &inner) *= source.shape[j];
        }
        int64_t repeats = output->shape[i] / source.shape[i];
        TRY(rnl_lower_scratch(lowering, source.dtype, source.rank, shape, RNL_LAYOUT_ROW_MAJOR, &next));
        TRY(rnl_compose_reshape(lowering, &source, 3, (const int64_t[]){outer, 1, inner}, &from));
        TRY(rnl_compose_reshape(lowering, &next, 3, (const int64_t[]){outer, repeats, inner}, &to));
        TRY(rnl_lower_copy(lowering, &from, &to));
        source = next;
    }
    rnl_lower_alias(lowering, 0, &source);
    return RNL_OK;
}

rnl_status rnl_lower_tile(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_view source, target;
    uint32_t axes = 0;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    size_t rank = source.rank;
    for (size_t i = 0; i < source.rank; i++) {
        bool splits = output->shape[i] != source.shape[i] && source.shape[i] > 1;
        axes |= (uint32_t)splits << i;
        rank += splits;
    }
    if (rnl_desc_elements(output) > 0 && rank > RNL_MAX_RANK) {
        for (size_t i = 0; i < source.rank; i++) /* also those of one element */
            axes |= (uint32_t)(output->shape[i] != source.shape[i]) << i;
        return repeat_in_turn(lowering, source, axes);
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_view_elements(&target) > 0 ? repeat(lowering, &source, axes, &target) : RNL_OK;
}

rnl_status rnl_lower_fill(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    const rnl_attribute *value = rnl_node_attribute(lowering->context.node, "value");
    const float zero = 0;
    rnl_tensor_desc desc = {.dtype = output->dtype, .host = value ? value->tensor->data : &zero};
    rnl_view scalar;
    TRY(rnl_lower_constant(lowering, &desc, &scalar));
    scalar = rnl_view_expand(&scalar, output->rank, output->shape);
    rnl_lower_alias(lowering, 0, &scalar);
    return RNL_OK;
}

/* The one index of a Gather that takes one slice and drops the axis; false when it is another. */
static bool known_index(const rnl_op_context *context, size_t axis, int64_t *out_index)
{
    const rnl_tensor_desc *indices = &context->inputs[1];
    if (!indices->host || indices->rank != 0)
        return false;
    const int64_t size = context->inputs[0].shape[axis], index = rnl_element_load(indices->host, 0, indices->dtype).i;
    *out_index = index < 0 ? index + size : index;
    return *out_index >= 0 && *out_index < size;
}

/* Few rows of a large table, as words of a vocabulary, may stay in the model's file. */
static bool reads_few_rows(const rnl_lowering *lowering, size_t axis)
{
    const rnl_tensor_desc *table = &lowering->context.inputs[0], *output = &lowering->context.outputs[0];
    return axis == 0 && table->rank == 2 && table->shape[1] >= SHORTEST_MAPPED_ROW &&
           rnl_desc_elements(output) <= rnl_desc_elements(table) / 4 && rnl_device_is_cpu(lowering->list->device);
}

rnl_status rnl_lower_gather(rnl_lowering *lowering)
{
    const size_t rank = lowering->context.inputs[0].rank;
    size_t axis;
    int64_t index;
    bool mapped = false;
    rnl_view data, indices, target;
    TRY(rnl_axis_resolve(rnl_node_int(lowering->context.node, "axis", 0), rank, "axis", &axis));
    if (reads_few_rows(lowering, axis))
        TRY(rnl_lower_mapped(lowering, 0, &mapped, &data));
    if (!mapped)
        TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    if (!mapped && known_index(&lowering->context, axis, &index)) {
        const rnl_tensor_desc *output = &lowering->context.outputs[0];
        rnl_view slice = data;
        rnl_view_slice(&slice, axis, index, 1, 1);
        if (rnl_view_reshape(&slice, output->rank, output->shape, &target)) {
            rnl_lower_alias(lowering, 0, &target);
            return RNL_OK;
        }
    }
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &indices));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (mapped && target.stride[target.rank - 1] == 1)
        return rnl_op_gather_loose(lowering->list, axis, &data, &indices, &target);
    if (mapped) /* a part of a larger value, whose rows are none */
        TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    return rnl_op_gather(lowering->list, axis, &data, &indices, &target);
}
