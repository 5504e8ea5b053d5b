/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: what onnxruntime's optimiser fuses around products, activations, normalisations and embeddings. */
#include "graph/op_microsoft.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include "model/matrix.h"
#include "model/rotary.h"
#include "ops/normalize.h"
#include "ops/resize.h"
#include <string.h>

/* ---- activations ------------------------------------------------------------------------------------------------ */

/* op(a + b), in one step where the type allows. */
static rnl_status add_then(rnl_lowering *lowering, rnl_map_op op, const rnl_view operands[2], const rnl_view *target)
{
    rnl_chain chain = {.stage_count = 0};
    rnl_chain_source sources[2], sum, result;
    rnl_view added;
    if (rnl_chain_takes_type(target->dtype) && rnl_chain_add_operand(&chain, &operands[0], &sources[0]) &&
        rnl_chain_add_operand(&chain, &operands[1], &sources[1]) &&
        rnl_chain_add_stage(&chain, RNL_MAP_ADD, sources, 0, 0, &sum) &&
        rnl_chain_add_stage(&chain, op, &sum, 0, 0, &result))
        return rnl_op_chain(lowering->list, &chain, target);
    TRY(rnl_compose_map(lowering, RNL_MAP_ADD, operands, 2, &added));
    return rnl_op_map(lowering->list, op, 0, 0, &added, 1, target);
}

rnl_status rnl_lower_bias_gelu(rnl_lowering *lowering)
{
    const bool fast = strcmp(lowering->context.node->op_type, "FastGelu") == 0;
    const rnl_map_op op = fast ? RNL_MAP_GELU_TANH : RNL_MAP_GELU;
    rnl_view operands[2], target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &operands[0]));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &operands[1]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (rnl_view_exists(&operands[1]))
        return add_then(lowering, op, operands, &target);
    return rnl_op_map(lowering->list, op, 0, 0, operands, 1, &target);
}

rnl_status rnl_lower_quick_gelu(rnl_lowering *lowering)
{
    const float alpha = rnl_node_float(lowering->context.node, "alpha", 1.702f);
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_map(lowering->list, RNL_MAP_SWISH, alpha, 0, &source, 1, &target);
}

/* ---- FusedMatMul ------------------------------------------------------------------------------------------------ */

rnl_status rnl_lower_fused_matmul(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_gemm_params params = {.alpha = rnl_node_float(node, "alpha", 1)};
    rnl_view factors[2], target;
    for (size_t i = 0; i < 2; i++) {
        size_t order[RNL_MAX_RANK];
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &factors[i]));
        rnl_fused_matmul_order(node, i == 1, factors[i].rank, order);
        factors[i] = rnl_view_permute(&factors[i], order);
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    rnl_matrix_of_vectors(&factors[0], &factors[1], &target);
    return rnl_compose_product(lowering, &params, &factors[0], &factors[1], NULL, &target);
}

/* ---- SkipLayerNormalization and SkipSimplifiedLayerNormalization ------------------------------------------------- */

/* The sum of up to three tensors, in `target`. */
static rnl_status add_up(rnl_lowering *lowering, const rnl_view *terms, size_t count, const rnl_view *target)
{
    rnl_view sum[] = {terms[0], terms[1]};
    rnl_chain chain = {.stage_count = 0};
    rnl_chain_source sources[3], partial[2], result;
    bool fits = rnl_chain_takes_type(target->dtype) && count == 3;
    for (size_t i = 0; i < 3 && fits; i++)
        fits = rnl_chain_add_operand(&chain, &terms[i], &sources[i]);
    if (fits && rnl_chain_add_stage(&chain, RNL_MAP_ADD, sources, 0, 0, &partial[0])) {
        partial[1] = sources[2];
        if (rnl_chain_add_stage(&chain, RNL_MAP_ADD, partial, 0, 0, &result))
            return rnl_op_chain(lowering->list, &chain, target);
    }
    TRY(rnl_op_map(lowering->list, RNL_MAP_ADD, 0, 0, sum, 2, target));
    if (count < 3)
        return RNL_OK;
    return rnl_op_map(lowering->list, RNL_MAP_ADD, 0, 0, (rnl_view[]){*target, terms[2]}, 2, target);
}

/* Memory for a sum that an output may want. */
static rnl_status sum_memory(rnl_lowering *lowering, size_t output, const rnl_tensor_desc *like, rnl_view *out_view)
{
    if (rnl_lower_has_output(lowering, output))
        return rnl_lower_output(lowering, output, RNL_LAYOUT_ROW_MAJOR, out_view);
    return rnl_lower_scratch(lowering, like->dtype, like->rank, like->shape, RNL_LAYOUT_ROW_MAJOR, out_view);
}

static rnl_status normalize_last(rnl_lowering *lowering, float epsilon, const rnl_view *source, const rnl_view *scale,
                                 const rnl_view *shift)
{
    rnl_view target, zero = *shift;
    const uint32_t axes = 1u << (source->rank - 1);
    if (!rnl_view_exists(shift))
        TRY(rnl_lower_scalar(lowering, source->dtype, 0, &zero));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_op_normalize(lowering->list, axes, epsilon, source, scale, &zero, &target);
}

rnl_status rnl_lower_skip_normalization(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const bool simple = strcmp(node->op_type, "SkipSimplifiedLayerNormalization") == 0;
    const float epsilon = rnl_node_float(node, "epsilon", 1e-12f);
    rnl_view terms[3], scale, shift = {.slot = RNL_NO_SLOT}, sum, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &terms[0]));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &terms[1]));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &scale));
    if (!simple)
        TRY(rnl_lower_input(lowering, 3, RNL_LAYOUT_ANY, &shift));
    TRY(rnl_lower_input(lowering, simple ? 3 : 4, RNL_LAYOUT_ANY, &terms[2]));
    TRY(sum_memory(lowering, 3, &lowering->context.outputs[0], &sum));
    TRY(add_up(lowering, terms, rnl_view_exists(&terms[2]) ? 3 : 2, &sum));
    if (!simple)
        return normalize_last(lowering, epsilon, &sum, &scale, &shift);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_op_normalize_rms(lowering->list, 1u << (sum.rank - 1), epsilon, &sum, &scale, &target);
}

/* ---- EmbedLayerNormalization ------------------------------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };

static rnl_status look_up(rnl_lowering *lowering, size_t ids_index, size_t table_index, rnl_view *out_view)
{
    rnl_view ids, table;
    TRY(rnl_lower_input(lowering, ids_index, RNL_LAYOUT_ANY, &ids));
    TRY(rnl_lower_input(lowering, table_index, RNL_LAYOUT_ANY, &table));
    return rnl_rotary_at(lowering, &table, &ids, out_view);
}

/* The embeddings of positions: given ones, or from the first on. */
static rnl_status find_positions(rnl_lowering *lowering, rnl_view *out_view)
{
    if (rnl_lower_has_input(lowering, POSITION_IDS))
        return look_up(lowering, POSITION_IDS, POSITIONS, out_view);
    TRY(rnl_lower_input(lowering, POSITIONS, RNL_LAYOUT_ANY, out_view));
    rnl_view_slice(out_view, 0, 0, lowering->context.inputs[IDS].shape[1], 1);
    return RNL_OK;
}

/* How many words of each sample are not masked. */
static rnl_status count_words(rnl_lowering *lowering)
{
    rnl_view mask, ones, target;
    if (!rnl_lower_has_output(lowering, 1))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_lower_input(lowering, MASK, RNL_LAYOUT_ANY, &mask));
    if (!rnl_view_exists(&mask)) {
        TRY(rnl_lower_scalar(lowering, RNL_I32, 0, &mask));
        return rnl_lower_copy(lowering, &mask, &target);
    }
    TRY(rnl_compose_with(lowering, RNL_MAP_EQUAL, &mask, 1, &ones));
    TRY(rnl_compose_cast(lowering, &ones, RNL_I32, &ones));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_SUM, 2, &ones, &ones));
    ones.rank = 1;
    return rnl_lower_copy(lowering, &ones, &target);
}

rnl_status rnl_lower_embed_layer_norm(rnl_lowering *lowering)
{
    const float epsilon = rnl_node_float(lowering->context.node, "epsilon", 1e-12f);
    rnl_view terms[3], gamma, beta, sum;
    size_t count = 2;
    TRY(look_up(lowering, IDS, WORDS, &terms[0]));
    TRY(find_positions(lowering, &terms[1]));
    if (rnl_lower_has_input(lowering, SEGMENTS))
        TRY(look_up(lowering, SEGMENT_IDS, SEGMENTS, &terms[count++]));
    TRY(rnl_lower_input(lowering, GAMMA, RNL_LAYOUT_ANY, &gamma));
    TRY(rnl_lower_input(lowering, BETA, RNL_LAYOUT_ANY, &beta));
    TRY(sum_memory(lowering, 2, &lowering->context.outputs[0], &sum));
    TRY(add_up(lowering, terms, count, &sum));
    TRY(normalize_last(lowering, epsilon, &sum, &gamma, &beta));
    return count_words(lowering);
}

/* ---- RotaryEmbedding --------------------------------------------------------------------------------------------- */

/* One number is the position of the first in each sequence. */
static rnl_status spread_positions(rnl_lowering *lowering, int64_t length, rnl_view *positions)
{
    rnl_view steps;
    if (positions->rank == 2)
        return RNL_OK;
    TRY(rnl_compose_range(lowering, 0, length, 1, 2, &steps));
    return rnl_compose_binary(lowering, RNL_MAP_ADD, &steps, positions, positions);
}

rnl_status rnl_lower_microsoft_rotary(rnl_lowering *lowering)
{
    rnl_rotary_sizes sizes;
    rnl_view source, target, positions, caches[2];
    const bool interleaved = rnl_node_int(lowering->context.node, "interleaved", 0) != 0;
    TRY(rnl_microsoft_rotary_resolve(&lowering->context, &sizes));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &positions));
    TRY(spread_positions(lowering, sizes.length, &positions));
    for (size_t i = 0; i < 2; i++) {
        TRY(rnl_lower_input(lowering, i + 2, RNL_LAYOUT_ANY, &caches[i]));
        TRY(rnl_rotary_at(lowering, &caches[i], &positions, &caches[i]));
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_rotary_heads(lowering, &source, caches, &sizes, interleaved, &target);
}
