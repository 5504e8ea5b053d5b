/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower.h"

#include "base/memory.h"
#include "base/text.h"
#include "model/block.h"
#include "model/evaluate.h"
#include "model/fuse.h"
#include "model/nan.h"
#include "model/place.h"
#include "ops/conv.h"
#include "ops/random.h"
#include <string.h>

/* ---- slots ---------------------------------------------------------------------------------------------------- */

static rnl_status add_slot(rnl_plan *plan, const rnl_slot *slot, uint32_t *out_index)
{
    TRY(rnl_grow(&plan->slots, &plan->slot_capacity, plan->slot_count + 1, sizeof *plan->slots));
    plan->slots[plan->slot_count] = *slot;
    *out_index = (uint32_t)plan->slot_count++;
    return RNL_OK;
}

/* Bytes of a dense tensor, at least one element: OpenCL has no buffer of size 0. */
static rnl_status dense_bytes(rnl_dtype dtype, size_t rank, const int64_t *shape, size_t *out_bytes)
{
    int64_t elements;
    if (!rnl_shape_elements(shape, rank, &elements) ||
        !rnl_size_mul((size_t)(elements ? elements : 1), rnl_dtype_bytes(dtype), out_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a tensor's size overflows the address space");
    return RNL_OK;
}

static rnl_status new_tensor(rnl_plan *plan, rnl_dtype dtype, size_t rank, const int64_t *shape, rnl_layout layout,
                             rnl_view *out_view)
{
    rnl_slot slot = {.kind = RNL_SLOT_ARENA};
    uint32_t index;
    TRY(dense_bytes(dtype, rank, shape, &slot.size_bytes));
    TRY(add_slot(plan, &slot, &index));
    *out_view = layout == RNL_LAYOUT_CHANNELS_LAST && rank >= 3 ? rnl_view_channels_last(index, dtype, rank, shape)
                                                                : rnl_view_row_major(index, dtype, rank, shape);
    return RNL_OK;
}

rnl_status rnl_lower_scratch(rnl_lowering *lowering, rnl_dtype dtype, size_t rank, const int64_t *shape,
                             rnl_layout layout, rnl_view *out_view)
{
    return new_tensor(lowering->planner->plan, dtype, rank, shape, layout, out_view);
}

rnl_status rnl_lower_constant(rnl_lowering *lowering, const rnl_tensor_desc *desc, rnl_view *out_view)
{
    rnl_plan *plan = lowering->planner->plan;
    rnl_slot slot = {.kind = RNL_SLOT_CONSTANT};
    void *copy = NULL;
    uint32_t index;
    TRY(dense_bytes(desc->dtype, desc->rank, desc->shape, &slot.size_bytes));
    TRY(rnl_zone_alloc(&plan->zone, slot.size_bytes, 1, &copy));
    memcpy(copy, desc->host, (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype));
    slot.constant = copy;
    TRY(add_slot(plan, &slot, &index));
    *out_view = rnl_view_row_major(index, desc->dtype, desc->rank, desc->shape);
    return RNL_OK;
}

rnl_status rnl_lower_draw(rnl_lowering *lowering, rnl_view *out_state, uint32_t *out_ordinal)
{
    rnl_plan *plan = lowering->planner->plan;
    const rnl_slot slot = {.kind = RNL_SLOT_RANDOM, .size_bytes = sizeof(rnl_random_state)};
    if (plan->random_slot == RNL_NO_SLOT)
        TRY(add_slot(plan, &slot, &plan->random_slot));
    *out_state = rnl_view_row_major(plan->random_slot, RNL_U32, 1, (const int64_t[]){RNL_RANDOM_WORDS});
    *out_ordinal = plan->draw_count++;
    return RNL_OK;
}

rnl_status rnl_lower_weight(rnl_lowering *lowering, const rnl_weight_key *key, const double *numbers,
                            size_t number_count, rnl_view *out_view)
{
    rnl_weight_place place;
    rnl_weights *weights = &lowering->planner->model->weights;
    TRY(rnl_weights_get(weights, key, numbers, number_count, &place, out_view));
    rnl_slot slot = {.kind = RNL_SLOT_WEIGHT,
                     .size_bytes = place.size_bytes,
                     .weight = place.buffer,
                     .offset_bytes = place.offset_bytes,
                     .block = place.block,
                     .host = place.host,
                     .item = place.item,
                     .element_bytes = (uint32_t)rnl_dtype_bytes(out_view->dtype)};
    return add_slot(lowering->planner->plan, &slot, &out_view->slot);
}

static rnl_status use_weight(rnl_lowering *lowering, uint32_t value, rnl_packing packing, int64_t groups,
                             rnl_view *out_view)
{
    const rnl_weight_key key = {value, packing, groups, RNL_NO_NODE, RNL_NO_NODE};
    return rnl_lower_weight(lowering, &key, NULL, 0, out_view);
}

rnl_status rnl_lower_mapped(rnl_lowering *lowering, size_t index, bool *out_found, rnl_view *out_view)
{
    const uint32_t value = lowering->context.node->inputs[index];
    *out_found = rnl_weights_can_map(&lowering->planner->model->weights, value);
    return *out_found ? use_weight(lowering, value, RNL_PACKING_MAPPED, 0, out_view) : RNL_OK;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static rnl_status place_input(rnl_lowering *lowering, rnl_plan_value *value)
{
    rnl_plan *plan = lowering->planner->plan;
    const rnl_tensor_desc *desc = &value->desc;
    TRY(new_tensor(plan, desc->dtype, desc->rank, desc->shape, RNL_LAYOUT_ROW_MAJOR, &value->view));
    value->input->slot = value->view.slot;
    return RNL_OK;
}

static rnl_status place(rnl_lowering *lowering, uint32_t index)
{
    const rnl_value *value = &lowering->planner->graph->values[index];
    rnl_plan_value *placed = &lowering->planner->values[index];
    if (lowering->planner->model->constants.tensors[index])
        TRY(use_weight(lowering, index, RNL_PACKING_PLAIN, 0, &placed->view));
    else if (placed->input)
        TRY(place_input(lowering, placed));
    else if (placed->desc.host)
        TRY(rnl_lower_constant(lowering, &placed->desc, &placed->view));
    else
        return FAIL(RNL_INTERNAL, "value '%s' is read before it is made", value->name);
    placed->placed = true;
    return RNL_OK;
}

static bool has_layout(const rnl_view *view, rnl_layout layout)
{
    switch (layout) {
    case RNL_LAYOUT_ROW_MAJOR:
        return rnl_view_is_row_major(view);
    case RNL_LAYOUT_CHANNELS_LAST:
        return view->rank < 3 ? rnl_view_is_row_major(view) : view->shape[1] <= 1 || view->stride[1] == 1;
    default:
        return true;
    }
}

rnl_status rnl_lower_value_as(rnl_lowering *lowering, uint32_t index, rnl_layout layout, rnl_dtype dtype,
                              rnl_view *out_view)
{
    rnl_plan_value *value = &lowering->planner->values[index];
    if (!value->placed)
        TRY(place(lowering, index));
    *out_view = value->view;
    if (has_layout(&value->view, layout) && value->view.dtype == dtype)
        return RNL_OK;
    if (!value->has_copy || value->copy_layout != (int)layout || value->copy.dtype != dtype) {
        TRY(new_tensor(lowering->planner->plan, dtype, value->view.rank, value->view.shape, layout, &value->copy));
        TRY(rnl_lower_copy(lowering, &value->view, &value->copy));
        value->has_copy = true;
        value->copy_layout = (int)layout;
    }
    *out_view = value->copy;
    return RNL_OK;
}

rnl_status rnl_lower_stored(rnl_lowering *lowering, uint32_t index, rnl_layout layout, rnl_view *out_view)
{
    rnl_plan_value *value = &lowering->planner->values[index];
    if (!value->placed)
        TRY(place(lowering, index));
    return rnl_lower_value_as(lowering, index, layout, value->view.dtype, out_view);
}

rnl_status rnl_lower_value(rnl_lowering *lowering, uint32_t index, rnl_layout layout, rnl_view *out_view)
{
    const rnl_planner *planner = lowering->planner;
    if (planner->narrow && planner->values[index].view.dtype == RNL_BF16 &&
        planner->values[index].desc.dtype == RNL_F32)
        return rnl_lower_value_as(lowering, index, layout, RNL_F32, out_view);
    return rnl_lower_stored(lowering, index, layout, out_view);
}

bool rnl_lower_has_input(const rnl_lowering *lowering, size_t index)
{
    const rnl_node *node = lowering->context.node;
    return index < node->input_count && node->inputs[index] != RNL_NO_VALUE;
}

bool rnl_lower_has_output(const rnl_lowering *lowering, size_t index)
{
    const rnl_node *node = lowering->context.node;
    return index < node->output_count && node->outputs[index] != RNL_NO_VALUE &&
           lowering->planner->values[node->outputs[index]].needed;
}

rnl_status rnl_lower_input(rnl_lowering *lowering, size_t index, rnl_layout layout, rnl_view *out_view)
{
    if (!rnl_lower_has_input(lowering, index)) {
        *out_view = (rnl_view){.slot = RNL_NO_SLOT};
        return RNL_OK;
    }
    return rnl_lower_value(lowering, lowering->context.node->inputs[index], layout, out_view);
}

rnl_status rnl_lower_conv_weight(rnl_lowering *lowering, size_t index, rnl_packing packing, int64_t groups,
                                 rnl_view *out_view)
{
    uint32_t value = lowering->context.node->inputs[index];
    if (lowering->planner->model->constants.tensors[value])
        return use_weight(lowering, value, packing, groups, out_view);
    rnl_view source;
    int64_t elements;
    TRY(rnl_lower_value(lowering, value, RNL_LAYOUT_ANY, &source));
    rnl_conv_weight_layout(rnl_packing_is_transposed(packing), groups, 0, source.dtype, source.rank, source.shape,
                           out_view, &elements);
    rnl_view memory;
    TRY(rnl_lower_scratch(lowering, source.dtype, 1, &elements, RNL_LAYOUT_ROW_MAJOR, &memory));
    out_view->slot = memory.slot;
    return rnl_op_conv_pack(lowering->list, rnl_packing_is_transposed(packing), groups, &source, &memory);
}

bool rnl_lower_is_channels_last(const rnl_planner *planner, uint32_t index, size_t rank)
{
    const rnl_plan_value *value = &planner->values[index];
    bool computed = value->placed && !value->desc.host;
    return computed && value->view.rank == rank && rank >= 3 && value->view.shape[1] > 1 &&
           value->view.stride[1] == 1 && !rnl_view_is_row_major(&value->view);
}

/* An elementwise result follows its inputs that are computed and have its rank, so that chains need no copies. */
static rnl_layout layout_of_inputs(rnl_lowering *lowering, size_t rank)
{
    const rnl_node *node = lowering->context.node;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != RNL_NO_VALUE && rnl_lower_is_channels_last(lowering->planner, node->inputs[i], rank))
            return RNL_LAYOUT_CHANNELS_LAST;
    return RNL_LAYOUT_ROW_MAJOR;
}

rnl_status rnl_lower_memory(rnl_lowering *lowering, uint32_t index, rnl_layout layout, bool any, rnl_view *out_view)
{
    rnl_plan_value *value = &lowering->planner->values[index];
    const rnl_tensor_desc *desc = &value->desc;
    TRY(rnl_place_output(lowering, index, layout, any, out_view));
    const bool narrow = lowering->planner->narrow && lowering->planner->narrow[index];
    if (out_view->slot == RNL_NO_SLOT)
        TRY(new_tensor(lowering->planner->plan, narrow ? RNL_BF16 : desc->dtype, desc->rank, desc->shape, layout,
                       out_view));
    value->view = *out_view;
    value->placed = true;
    return RNL_OK;
}

rnl_status rnl_lower_output(rnl_lowering *lowering, size_t index, rnl_layout layout, rnl_view *out_view)
{
    const rnl_tensor_desc *desc = &lowering->context.outputs[index];
    uint32_t value = lowering->context.node->outputs[index];
    bool any = layout == RNL_LAYOUT_ANY;
    if (any)
        layout = layout_of_inputs(lowering, desc->rank);
    if (value == RNL_NO_VALUE)
        return new_tensor(lowering->planner->plan, desc->dtype, desc->rank, desc->shape, layout, out_view);
    return rnl_lower_memory(lowering, value, layout, any, out_view);
}

void rnl_lower_alias(rnl_lowering *lowering, size_t index, const rnl_view *view)
{
    uint32_t output = lowering->context.node->outputs[index];
    if (output == RNL_NO_VALUE)
        return;
    rnl_plan_value *value = &lowering->planner->values[output];
    value->view = *view;
    value->placed = true;
}

rnl_status rnl_lower_scalar(rnl_lowering *lowering, rnl_dtype dtype, double value, rnl_view *out_view)
{
    float number = (float)value;
    bool wide = dtype == RNL_F64;
    rnl_tensor_desc desc = {.dtype = wide ? RNL_F64 : RNL_F32, .host = wide ? (const void *)&value : &number};
    rnl_view constant;
    TRY(rnl_lower_constant(lowering, &desc, &constant));
    if (dtype == desc.dtype) {
        *out_view = constant;
        return RNL_OK;
    }
    TRY(rnl_lower_scratch(lowering, dtype, 0, NULL, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_lower_copy(lowering, &constant, out_view);
}

rnl_status rnl_lower_copy(rnl_lowering *lowering, const rnl_view *src, const rnl_view *dst)
{
    return rnl_op_map(lowering->list, RNL_MAP_COPY, 0, 0, src, 1, dst);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static void add_shapes(rnl_text *text, const rnl_planner *planner, const uint32_t *values, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const rnl_plan_value *value = values[i] == RNL_NO_VALUE ? NULL : &planner->values[values[i]];
        if (!value || !value->described)
            continue;
        rnl_text_add(text, any ? ", " : "");
        rnl_text_add_shape(text, value->desc.shape, value->desc.rank);
        any = true;
    }
}

/* Kept with the plan: values have their shapes only while planning. */
static rnl_status describe_shapes(const rnl_planner *planner, uint32_t index, const char **out_shapes)
{
    *out_shapes = "";
    if (index == RNL_NO_NODE)
        return RNL_OK;
    const rnl_node *node = &planner->graph->nodes[index];
    rnl_text text = {0};
    char *kept = NULL;
    add_shapes(&text, planner, node->inputs, node->input_count);
    rnl_text_add(&text, " -> ");
    add_shapes(&text, planner, node->outputs, node->output_count);
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = rnl_zone_alloc(&planner->plan->zone, text.length + 1, 1, &kept);
    if (status == RNL_OK)
        *out_shapes = memcpy(kept, text.data, text.length + 1);
    rnl_text_free(&text);
    return status;
}

rnl_status rnl_plan_cover_steps(rnl_planner *planner, uint32_t node, const char *also)
{
    static const size_t entry = sizeof *planner->plan->step_labels;
    rnl_plan *plan = planner->plan;
    size_t count = plan->steps.step_count;
    const char *shapes = "";
    TRY(rnl_grow(&plan->step_labels, &plan->step_label_capacity, count, entry));
    if (planner->covered_steps < count)
        TRY(describe_shapes(planner, node, &shapes));
    for (; planner->covered_steps < count; planner->covered_steps++)
        plan->step_labels[planner->covered_steps] =
            (rnl_step_label){node, planner->covered_steps + 1 == count && also ? also : "", shapes};
    return RNL_OK;
}

static rnl_status lower_node(rnl_lowering *lowering, uint32_t index)
{
    const rnl_node *node = &lowering->planner->graph->nodes[index];
    rnl_lower_fn lower = rnl_lower_find(node);
    if (!lower)
        return FAIL(RNL_UNIMPLEMENTED, "operator %s runs only on small tensors that are known beforehand",
                    node->op_type);
    TRY(rnl_plan_context(lowering->planner, node, &lowering->context));
    TRY(lower(lowering));
    return rnl_plan_cover_steps(lowering->planner, index, node->instead);
}

/* Of the node's group. */
static uint32_t first_node(const rnl_planner *planner, uint32_t index)
{
    return planner->groups[index] ? planner->groups[index]->nodes[0] : index;
}

/* A node of a group waits for the group's last one, and a block for its last group. */
static rnl_status lower_next(rnl_lowering *lowering, uint32_t index)
{
    const uint32_t first = first_node(lowering->planner, index);
    rnl_group *group = lowering->planner->groups[index];
    const rnl_block *block = lowering->planner->blocks[first];
    if (group && index != rnl_group_last(group))
        return RNL_OK;
    if (block)
        return first == rnl_block_last(block) ? rnl_lower_block(lowering, block) : RNL_OK;
    return group ? rnl_lower_group(lowering, group) : lower_node(lowering, index);
}

rnl_status rnl_lower_nodes(rnl_planner *planner)
{
    rnl_lowering lowering = {.planner = planner, .list = &planner->plan->steps};
    for (uint32_t i = 0; i < planner->graph->node_count; i++) {
        const rnl_node *node = &planner->graph->nodes[i];
        bool needed = false;
        for (uint32_t j = 0; j < node->output_count; j++)
            needed |= node->outputs[j] != RNL_NO_VALUE && planner->values[node->outputs[j]].needed;
        if (planner->on_host[i] || !needed || planner->pads[i])
            continue;
        rnl_status status = lower_next(&lowering, i);
        if (status == RNL_OK && planner->model->root->nan_mode != RNL_NAN_OFF)
            status = rnl_nan_note(planner, i);
        if (status != RNL_OK)
            return rnl_node_error(planner->graph, &planner->graph->nodes[first_node(planner, i)], status);
    }
    return RNL_OK;
}
