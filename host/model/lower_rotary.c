/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: pairs of elements of each head turn by an angle of their position. */
#include "graph/op_attention.h"
#include "model/attention.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include "model/rotary.h"
#include "ops/resize.h"

/* a * b - c * d, or a * b + c * d, in one step. */
static rnl_status turn_in_chain(rnl_lowering *lowering, bool minus, const rnl_view operands[4], const rnl_view *target)
{
    rnl_chain chain = {.stage_count = 0};
    rnl_chain_source sources[4], parts[2], result;
    bool fits = true;
    for (size_t i = 0; i < 4; i++)
        fits = fits && rnl_chain_add_operand(&chain, &operands[i], &sources[i]);
    fits = fits && rnl_chain_add_stage(&chain, RNL_MAP_MUL, &sources[0], 0, 0, &parts[0]) &&
           rnl_chain_add_stage(&chain, RNL_MAP_MUL, &sources[2], 0, 0, &parts[1]) &&
           rnl_chain_add_stage(&chain, minus ? RNL_MAP_SUB : RNL_MAP_ADD, parts, 0, 0, &result);
    return fits ? rnl_op_chain(lowering->list, &chain, target)
                : FAIL(RNL_INTERNAL, "a rotation is too long for a chain");
}

static rnl_status turn(rnl_lowering *lowering, bool minus, const rnl_view operands[4], const rnl_view *target)
{
    rnl_view parts[2];
    if (rnl_chain_takes_type(target->dtype))
        return turn_in_chain(lowering, minus, operands, target);
    TRY(rnl_compose_map(lowering, RNL_MAP_MUL, &operands[0], 2, &parts[0]));
    TRY(rnl_compose_map(lowering, RNL_MAP_MUL, &operands[2], 2, &parts[1]));
    return rnl_op_map(lowering->list, minus ? RNL_MAP_SUB : RNL_MAP_ADD, 0, 0, parts, 2, target);
}

/* The first or second elements of the pairs along the last dimension. */
static rnl_view half_of(const rnl_view *view, int64_t turned, bool interleaved, bool second)
{
    rnl_view half = *view;
    rnl_view_slice(&half, view->rank - 1, second ? (interleaved ? 1 : turned / 2) : 0, turned / 2, interleaved ? 2 : 1);
    return half;
}

static rnl_status turn_pairs(rnl_lowering *lowering, const rnl_view *source, const rnl_view *cosines,
                             const rnl_view *sines, int64_t turned, bool interleaved, const rnl_view *target)
{
    const rnl_view x = half_of(source, turned, interleaved, false), y = half_of(source, turned, interleaved, true);
    const rnl_view to_x = half_of(target, turned, interleaved, false),
                   to_y = half_of(target, turned, interleaved, true);
    TRY(turn(lowering, true, (rnl_view[]){*cosines, x, *sines, y}, &to_x));
    TRY(turn(lowering, false, (rnl_view[]){*sines, x, *cosines, y}, &to_y));
    const int64_t rest = source->shape[source->rank - 1] - turned;
    if (rest == 0)
        return RNL_OK;
    rnl_view from = *source, to = *target;
    rnl_view_slice(&from, source->rank - 1, turned, rest, 1);
    rnl_view_slice(&to, source->rank - 1, turned, rest, 1);
    return rnl_lower_copy(lowering, &from, &to);
}

rnl_status rnl_rotary_at(rnl_lowering *lowering, const rnl_view *cache, const rnl_view *positions, rnl_view *out_view)
{
    const rnl_view from = *cache;
    const int64_t shape[] = {positions->shape[0], positions->shape[1], from.shape[1]};
    TRY(rnl_lower_scratch(lowering, from.dtype, 3, shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_op_gather(lowering->list, 0, &from, positions, out_view);
}

/* Batch, sequence, size as batch, 1, sequence, size. */
static rnl_view over_heads(const rnl_view *view)
{
    rnl_view result = *view;
    result.rank = 4;
    for (size_t i = 3; i > 1; i--) {
        result.shape[i] = view->shape[i - 1];
        result.stride[i] = view->stride[i - 1];
    }
    result.shape[1] = 1;
    result.stride[1] = 0;
    return result;
}

rnl_status rnl_rotary_heads(rnl_lowering *lowering, const rnl_view *source, const rnl_view caches[2],
                            const rnl_rotary_sizes *sizes, bool interleaved, const rnl_view *target)
{
    const rnl_view cosines = over_heads(&caches[0]), sines = over_heads(&caches[1]);
    rnl_view from = *source, to = *target;
    if (sizes->packed) {
        from = rnl_attention_heads(source, sizes->heads);
        to = rnl_attention_heads(target, sizes->heads);
    }
    return turn_pairs(lowering, &from, &cosines, &sines, sizes->turned, interleaved, &to);
}

rnl_status rnl_lower_rotary_embedding(rnl_lowering *lowering)
{
    rnl_rotary_sizes sizes;
    rnl_view source, target, positions, caches[2];
    const bool interleaved = rnl_node_int(lowering->context.node, "interleaved", 0) != 0;
    TRY(rnl_rotary_resolve(&lowering->context, &sizes));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 3, RNL_LAYOUT_ANY, &positions));
    for (size_t i = 0; i < 2; i++) {
        TRY(rnl_lower_input(lowering, i + 1, RNL_LAYOUT_ANY, &caches[i]));
        if (rnl_view_exists(&positions))
            TRY(rnl_rotary_at(lowering, &caches[i], &positions, &caches[i]));
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_rotary_heads(lowering, &source, caches, &sizes, interleaved, &target);
}
