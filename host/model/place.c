/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place.h"

#include "base/memory.h"
#include "model/evaluate.h"
#include <string.h>

/* Larger values within larger values, at most: what is nested deeper is copied. */
#define MAX_DEPTH 128

typedef enum home_kind {
    HOME_PART,     /* from numbers[i] on along each axis i */
    HOME_PERMUTED, /* its axis numbers[i] is the parent's axis i */
    HOME_RESHAPED
} home_kind;

struct rnl_home {
    uint32_t parent; /* the larger value; RNL_NO_VALUE: this value has no home */
    uint32_t depth;  /* parents up to the outermost value */
    home_kind kind;
    const int64_t *numbers;
    bool reserved; /* an outermost value whose memory is there before it is itself lowered */
    rnl_view memory;
};

/* ---- finding homes -------------------------------------------------------------------------------------------- */

static rnl_status settle(rnl_planner *planner, uint32_t value, uint32_t parent, home_kind kind, const int64_t *numbers)
{
    const rnl_value *made = &planner->graph->values[value];
    rnl_home *home = &planner->homes[value];
    bool by_step = made->producer != RNL_NO_NODE && !planner->on_host[made->producer];
    if (!by_step || home->parent != RNL_NO_VALUE || planner->homes[parent].depth + 1 >= MAX_DEPTH)
        return RNL_OK;
    size_t rank = planner->values[value].desc.rank;
    int64_t *kept = NULL;
    TRY(rnl_zone_alloc(planner->zone, rank ? rank : 1, sizeof *kept, &kept));
    if (numbers)
        memcpy(kept, numbers, rank * sizeof *kept);
    *home = (rnl_home){.parent = parent, .depth = planner->homes[parent].depth + 1, .kind = kind, .numbers = kept};
    return RNL_OK;
}

static rnl_status settle_concat(rnl_planner *planner, const rnl_node *node)
{
    int64_t start[RNL_MAX_RANK] = {0};
    size_t axis;
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", 1), planner->values[node->outputs[0]].desc.rank, "axis", &axis));
    for (uint32_t i = 0; i < node->input_count; i++) {
        TRY(settle(planner, node->inputs[i], node->outputs[0], HOME_PART, start));
        start[axis] += planner->values[node->inputs[i]].desc.shape[axis];
    }
    return RNL_OK;
}

static rnl_status settle_pad(rnl_planner *planner, const rnl_node *node)
{
    rnl_op_context context;
    rnl_pad pad;
    TRY(rnl_plan_context(planner, node, &context));
    TRY(rnl_pad_resolve(&context, &pad));
    for (size_t i = 0; i < context.inputs[0].rank; i++)
        if (pad.begin[i] < 0 || pad.end[i] < 0)
            return RNL_OK;
    return settle(planner, node->inputs[0], node->outputs[0], HOME_PART, pad.begin);
}

bool rnl_place_has_home(const rnl_planner *planner, uint32_t value)
{
    return planner->homes[value].parent != RNL_NO_VALUE;
}

static rnl_status settle_transpose(rnl_planner *planner, const rnl_node *node)
{
    int64_t permutation[RNL_MAX_RANK];
    size_t count, rank = planner->values[node->outputs[0]].desc.rank;
    const int64_t *perm = rnl_node_ints(node, "perm", &count);
    for (size_t i = 0; i < rank; i++)
        permutation[i] = perm ? perm[i] : (int64_t)(rank - 1 - i);
    return rnl_place_has_home(planner, node->outputs[0])
               ? settle(planner, node->inputs[0], node->outputs[0], HOME_PERMUTED, permutation)
               : RNL_OK;
}

/* What is permuted and then reshaped would be copied there, unless it is written as the shape wants it. */
static bool is_permuted(const rnl_planner *planner, uint32_t value)
{
    uint32_t producer = planner->graph->values[value].producer;
    return producer != RNL_NO_NODE && strcmp(planner->graph->nodes[producer].op_type, "Transpose") == 0;
}

static rnl_status settle_reshape(rnl_planner *planner, const rnl_node *node)
{
    return rnl_place_has_home(planner, node->outputs[0]) || is_permuted(planner, node->inputs[0])
               ? settle(planner, node->inputs[0], node->outputs[0], HOME_RESHAPED, NULL)
               : RNL_OK;
}

static rnl_status settle_dropout(rnl_planner *planner, const rnl_node *node)
{
    const bool has_mode = node->input_count > 2 && node->inputs[2] != RNL_NO_VALUE;
    if (has_mode && rnl_dropout_draws(&planner->values[node->inputs[2]].desc))
        return RNL_OK;
    return settle_reshape(planner, node);
}

static const struct {
    const char *op_type;
    rnl_status (*settle)(rnl_planner *planner, const rnl_node *node);
} settlers[] = {
    {"Concat", settle_concat},     {"Pad", settle_pad},          {"Transpose", settle_transpose},
    {"Reshape", settle_reshape},   {"Flatten", settle_reshape},  {"Squeeze", settle_reshape},
    {"Unsqueeze", settle_reshape}, {"Identity", settle_reshape}, {"Dropout", settle_dropout},
};

static rnl_status settle_inputs(rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    if (planner->on_host[index] || planner->pads[index] || node->output_count == 0 ||
        node->outputs[0] == RNL_NO_VALUE || !planner->values[node->outputs[0]].needed)
        return RNL_OK;
    for (size_t i = 0; i < sizeof settlers / sizeof *settlers; i++)
        if (strcmp(node->op_type, settlers[i].op_type) == 0)
            return settlers[i].settle(planner, node);
    return RNL_OK;
}

/*
 * Backwards, so that homes of larger values are known first, and that a value joined several times lies in the last
 * result: where each Concat repeats the inputs of the one before and adds some, all earlier results are its parts.
 */
rnl_status rnl_place_homes(rnl_planner *planner)
{
    const rnl_graph *graph = planner->graph;
    TRY(rnl_zone_alloc(planner->zone, graph->value_count, sizeof *planner->homes, &planner->homes));
    for (size_t i = 0; i < graph->value_count; i++)
        planner->homes[i].parent = RNL_NO_VALUE;
    for (uint32_t i = (uint32_t)graph->node_count; i-- > 0;)
        TRY(settle_inputs(planner, i));
    return RNL_OK;
}

/* ---- using them ----------------------------------------------------------------------------------------------- */

/* From a view of the parent to one of the value. */
static bool step_down(const rnl_planner *planner, uint32_t value, rnl_view *view)
{
    const rnl_home *home = &planner->homes[value];
    const rnl_tensor_desc *desc = &planner->values[value].desc;
    size_t inverse[RNL_MAX_RANK] = {0};
    switch (home->kind) {
    case HOME_PART:
        for (size_t i = 0; i < desc->rank; i++)
            rnl_view_slice(view, i, home->numbers[i], desc->shape[i], 1);
        return true;
    case HOME_PERMUTED:
        for (size_t i = 0; i < desc->rank; i++)
            inverse[home->numbers[i]] = i;
        *view = rnl_view_permute(view, inverse);
        return true;
    default:
        return rnl_view_reshape(view, desc->rank, desc->shape, view);
    }
}

/* From a view of the outermost value, path[depth], down to path[0]. */
static bool descend(const rnl_planner *planner, const uint32_t *path, size_t depth, rnl_view *view)
{
    while (depth-- > 0)
        if (!step_down(planner, path[depth], view))
            return false;
    return true;
}

/* Rows of neighbours, and none that runs into the next; matrices of rows may lie anywhere. */
static bool lies_in_rows(const rnl_view *view)
{
    int64_t reach = 0; /* of the dimensions further in */
    for (size_t i = view->rank, seen = 0; i-- > 0 && seen < 2;) {
        if (view->shape[i] <= 1)
            continue;
        if (reach ? view->stride[i] < reach : view->stride[i] != 1)
            return false;
        reach = view->stride[i] * view->shape[i];
        seen++;
    }
    return true;
}

static bool suits(const rnl_view *view, rnl_layout layout)
{
    if (layout == RNL_LAYOUT_CHANNELS_LAST && view->rank >= 3)
        return view->shape[1] <= 1 || view->stride[1] == 1;
    return lies_in_rows(view);
}

static rnl_layout other_than(rnl_layout layout)
{
    return layout == RNL_LAYOUT_CHANNELS_LAST ? RNL_LAYOUT_ROW_MAJOR : RNL_LAYOUT_CHANNELS_LAST;
}

/* Memory for the outermost value, in the first of the two layouts that gives the part the one asked for. */
static rnl_status reserve(rnl_lowering *lowering, const uint32_t *path, size_t depth, rnl_layout layout, bool any)
{
    rnl_planner *planner = lowering->planner;
    const rnl_tensor_desc *desc = &planner->values[path[depth]].desc;
    rnl_home *home = &planner->homes[path[depth]];
    const rnl_layout choices[3] = {layout, other_than(layout), layout};
    for (int i = 0; i < (any ? 3 : 2) && !home->reserved; i++) {
        rnl_view part = choices[i] == RNL_LAYOUT_CHANNELS_LAST
                            ? rnl_view_channels_last(0, desc->dtype, desc->rank, desc->shape)
                            : rnl_view_row_major(0, desc->dtype, desc->rank, desc->shape);
        if (!descend(planner, path, depth, &part) || (i < 2 && !suits(&part, layout)))
            continue;
        TRY(rnl_lower_scratch(lowering, desc->dtype, desc->rank, desc->shape, choices[i], &home->memory));
        home->reserved = true;
    }
    return RNL_OK;
}

rnl_status rnl_place_output(rnl_lowering *lowering, uint32_t value, rnl_layout layout, bool any, rnl_view *out_view)
{
    rnl_planner *planner = lowering->planner;
    uint32_t path[MAX_DEPTH];
    size_t depth = 0;
    *out_view = (rnl_view){.slot = RNL_NO_SLOT};
    if (value == RNL_NO_VALUE)
        return RNL_OK;
    for (path[0] = value; rnl_place_has_home(planner, path[depth]); depth++)
        path[depth + 1] = planner->homes[path[depth]].parent;
    const rnl_home *root = &planner->homes[path[depth]];
    if (depth > 0 && !root->reserved)
        TRY(reserve(lowering, path, depth, layout, any));
    if (!root->reserved)
        return RNL_OK;
    rnl_view part = root->memory;
    if (descend(planner, path, depth, &part) && (any || suits(&part, layout)))
        *out_view = part;
    return RNL_OK;
}
