/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU, LSTM. The input's products of all steps are one product; what follows is a step for the state's product and
 * one for the rest, or on CPUs, for small layers, one for everything. Directions that differ in nothing but the
 * direction are done side by side. Halves are computed in float32.
 */
#include "model/lower_list.h"

#include "graph/op_recurrent.h"
#include "model/compose.h"
#include "ops/recurrent.h"

#define LEAST_PACKED_STEPS 4 /* that read the recurrence weights, for packing them first to pay */

typedef struct layer {
    rnl_lowering *lowering;
    rnl_recurrent node;
    rnl_dtype dtype;
    rnl_view x;                   /* as the node has it, in `dtype` */
    rnl_view w, r;                /* the weights turned: [inputs or units, directions, gates x units] */
    rnl_view bias, peepholes;     /* likewise; RNL_NO_SLOT: not there */
    rnl_view lengths;             /* likewise */
    rnl_view first[2], last[2];   /* hidden and cell state [directions, rows, units]; likewise */
    rnl_view y;                   /* [steps, directions, rows, units]; likewise */
    rnl_view weights[2][2];       /* of a direction's products, [units, columns] … */
    rnl_view packed[2][2];        /* … and packed; RNL_NO_SLOT: not */
    rnl_recurrent_params params;  /* of the directions that are lowered together */
    rnl_recurrent_views views;    /* likewise */
    size_t direction, directions; /* the first one and how many they are */
} layer;

/* ---- operands ------------------------------------------------------------------------------------------------- */

static rnl_status dense_input(layer *l, size_t index, rnl_view *out_view)
{
    TRY(rnl_lower_input(l->lowering, index, RNL_LAYOUT_ROW_MAJOR, out_view));
    if (!rnl_view_exists(out_view) || index == 4)
        return RNL_OK;
    return rnl_compose_cast(l->lowering, out_view, l->dtype, out_view);
}

/* rows x directions becomes directions x rows. */
static rnl_view state_view(const layer *l, const rnl_view *view)
{
    static const size_t turned[] = {1, 0, 2};
    return rnl_view_exists(view) && l->node.rows_first ? rnl_view_permute(view, turned) : *view;
}

/* Those that are constant are turned once for the model. */
static rnl_status turned_input(layer *l, size_t index, rnl_view *out_view)
{
    static const size_t turned[] = {2, 0, 1};
    const uint32_t value = l->lowering->context.node->inputs[index];
    const int64_t line = l->node.gates * l->node.units;
    if (l->lowering->planner->model->constants.tensors[value]) {
        const rnl_weight_key key = {value, RNL_PACKING_TURNED, 0, RNL_NO_NODE, RNL_NO_NODE};
        TRY(rnl_lower_weight(l->lowering, &key, NULL, 0, out_view));
        out_view->rank = 3;
        out_view->shape[1] = l->node.directions;
        out_view->shape[2] = line;
        out_view->stride[1] = line;
        out_view->stride[2] = 1;
        return RNL_OK;
    }
    TRY(dense_input(l, index, out_view));
    *out_view = rnl_view_permute(out_view, turned);
    return RNL_OK;
}

static rnl_status collect_inputs(layer *l)
{
    TRY(dense_input(l, 0, &l->x));
    TRY(turned_input(l, 1, &l->w));
    TRY(turned_input(l, 2, &l->r));
    TRY(dense_input(l, 3, &l->bias));
    TRY(dense_input(l, 4, &l->lengths));
    TRY(dense_input(l, 5, &l->first[0]));
    TRY(dense_input(l, 6, &l->first[1]));
    TRY(dense_input(l, 7, &l->peepholes));
    l->first[0] = state_view(l, &l->first[0]);
    l->first[1] = state_view(l, &l->first[1]);
    return RNL_OK;
}

static rnl_status collect_outputs(layer *l)
{
    static const size_t turned[] = {1, 2, 0, 3};
    l->y = l->last[0] = l->last[1] = (rnl_view){.slot = RNL_NO_SLOT};
    if (rnl_lower_has_output(l->lowering, 0)) {
        TRY(rnl_lower_output(l->lowering, 0, RNL_LAYOUT_ROW_MAJOR, &l->y));
        l->y = l->node.rows_first ? rnl_view_permute(&l->y, turned) : l->y;
    }
    for (size_t i = 0; i < 2; i++)
        if (rnl_lower_has_output(l->lowering, i + 1)) {
            TRY(rnl_lower_output(l->lowering, i + 1, RNL_LAYOUT_ROW_MAJOR, &l->last[i]));
            l->last[i] = state_view(l, &l->last[i]);
        }
    return RNL_OK;
}

/* ---- directions that are lowered together --------------------------------------------------------------------- */

static rnl_view directions_of(const layer *l, const rnl_view *view, size_t axis)
{
    rnl_view part = *view;
    if (rnl_view_exists(view))
        rnl_view_slice(&part, axis, (int64_t)l->direction, (int64_t)l->directions, 1);
    return part;
}

/* The view without its first dimension. */
static rnl_view element_of(const rnl_view *view, int64_t index)
{
    rnl_view part = *view;
    part.rank = view->rank - 1;
    part.offset += index * view->stride[0];
    for (size_t i = 0; i < part.rank; i++) {
        part.shape[i] = view->shape[i + 1];
        part.stride[i] = view->stride[i + 1];
    }
    return part;
}

/* All gates' input products: [directions, steps, rows, gates x units]. */
static rnl_status multiply_input(layer *l, rnl_view *out_view)
{
    const rnl_recurrent *node = &l->node;
    const int64_t line = node->gates * node->units;
    const rnl_view w = directions_of(l, &l->w, 1);
    rnl_view b = w, target;
    b.rank = 2; /* a direction's columns follow on the other's */
    b.shape[1] = (int64_t)l->directions * line;
    b.stride[1] = w.stride[2];
    const int64_t shape[] = {l->x.shape[0], l->x.shape[1], b.shape[1]};
    TRY(rnl_lower_scratch(l->lowering, l->dtype, 3, shape, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_compose_product(l->lowering, &(rnl_gemm_params){.alpha = 1}, &l->x, &b, NULL, &target));
    const size_t step_axis = node->rows_first ? 1 : 0;
    *out_view = (rnl_view){.slot = target.slot,
                           .dtype = l->dtype,
                           .rank = 4,
                           .offset = target.offset,
                           .shape = {(int64_t)l->directions, node->steps, node->rows, line},
                           .stride = {line, target.stride[step_axis], target.stride[1 - step_axis], 1}};
    return RNL_OK;
}

/* Memory for both states of a step, and behind it for its products. */
static rnl_status make_state(layer *l)
{
    const rnl_recurrent *node = &l->node;
    const int64_t kinds = rnl_recurrent_states(l->params.kind), d = (int64_t)l->directions;
    const int64_t shape[] = {2 * kinds + node->gates, d, node->rows, node->units};
    rnl_view memory;
    TRY(rnl_lower_scratch(l->lowering, l->dtype, 4, shape, RNL_LAYOUT_ROW_MAJOR, &memory));
    l->views.state =
        rnl_view_row_major(memory.slot, l->dtype, 5, (const int64_t[]){2, kinds, d, node->rows, node->units});
    l->views.product =
        rnl_view_row_major(memory.slot, l->dtype, 3, (const int64_t[]){d, node->rows, node->gates * node->units});
    l->views.product.offset = memory.offset + rnl_view_elements(&l->views.state);
    return RNL_OK;
}

/* Hidden (0) or cell state (1) before a step. */
static rnl_view state_at(const layer *l, int64_t step, int64_t kind)
{
    const rnl_view both = element_of(&l->views.state, step % 2);
    return element_of(&both, kind);
}

static rnl_status fill_state(layer *l)
{
    for (int64_t i = 0; i < (l->params.kind == RNL_LSTM ? 2 : 1); i++) {
        const rnl_view target = state_at(l, 0, i);
        rnl_view source = directions_of(l, &l->first[i], 0);
        if (!rnl_view_exists(&source))
            TRY(rnl_lower_scalar(l->lowering, l->dtype, 0, &source));
        TRY(rnl_lower_copy(l->lowering, &source, &target));
    }
    return RNL_OK;
}

static rnl_status store_state(layer *l)
{
    for (int64_t i = 0; i < 2; i++) {
        const rnl_view target = directions_of(l, &l->last[i], 0), source = state_at(l, l->node.steps, i);
        if (rnl_view_exists(&target))
            TRY(rnl_lower_copy(l->lowering, &source, &target));
    }
    return RNL_OK;
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* The columns of a product: all gates', or those before the reset gate's effect and those behind it. */
static void columns_of(const layer *l, size_t part, int64_t *out_first, int64_t *out_count)
{
    const int64_t units = l->node.units, split = l->params.kind == RNL_GRU && !l->params.reset_after ? 2 : 0;
    *out_first = part * (size_t)split * (size_t)units;
    *out_count = (split == 0 ? l->node.gates : part == 0 ? split : l->node.gates - split) * units;
}

static size_t parts_of(const layer *l)
{
    return l->params.kind == RNL_GRU && !l->params.reset_after ? 2 : 1;
}

static rnl_status prepare_weights(layer *l, size_t direction, size_t part)
{
    rnl_view *b = &l->weights[direction][part], *packed = &l->packed[direction][part];
    static const size_t direction_first[] = {1, 0, 2};
    int64_t first, count, floats;
    *packed = (rnl_view){.slot = RNL_NO_SLOT};
    *b = rnl_view_permute(&l->r, direction_first);
    *b = element_of(b, (int64_t)(l->direction + direction));
    columns_of(l, part, &first, &count);
    rnl_view_slice(b, 1, first, count, 1);
    TRY(rnl_gemm_packed(l->lowering->list->device, b, &floats));
    if (floats == 0 || l->node.steps < LEAST_PACKED_STEPS)
        return RNL_OK;
    TRY(rnl_lower_scratch(l->lowering, RNL_F32, 1, &floats, RNL_LAYOUT_ROW_MAJOR, packed));
    return rnl_op_gemm_pack(l->lowering->list, b, packed);
}

/* state x weights, into their columns of the product. */
static rnl_status multiply_state(layer *l, int64_t step, size_t part)
{
    const rnl_view states = state_at(l, step, (int64_t)part);
    int64_t first, count;
    columns_of(l, part, &first, &count);
    for (size_t i = 0; i < l->directions; i++) {
        const rnl_view a = element_of(&states, (int64_t)i), *packed = &l->packed[i][part];
        rnl_view target = element_of(&l->views.product, (int64_t)i);
        rnl_view_slice(&target, 1, first, count, 1);
        rnl_gemm_params params = {.alpha = 1, .packed_b = rnl_view_exists(packed) ? packed : NULL};
        TRY(rnl_compose_product(l->lowering, &params, &a, &l->weights[i][part], NULL, &target));
    }
    return RNL_OK;
}

static rnl_status lower_steps(layer *l)
{
    TRY(rnl_lower_scratch(l->lowering, l->dtype, 3, l->views.product.shape, RNL_LAYOUT_ROW_MAJOR, &l->views.product));
    for (size_t i = 0; i < l->directions; i++)
        for (size_t part = 0; part < parts_of(l); part++)
            TRY(prepare_weights(l, i, part));
    for (int64_t step = 0; step < l->node.steps; step++) {
        TRY(multiply_state(l, step, 0));
        if (parts_of(l) == 2) {
            TRY(rnl_op_recurrent_reset(l->lowering->list, &l->params, &l->views, step));
            TRY(multiply_state(l, step, 1));
        }
        TRY(rnl_op_recurrent_cell(l->lowering->list, &l->params, &l->views, step));
    }
    return RNL_OK;
}

static rnl_status lower_whole(layer *l)
{
    rnl_view r = directions_of(l, &l->r, 1);
    if (l->node.gates * l->node.units > 1 && r.stride[2] != 1)
        TRY(rnl_compose_dense(l->lowering, &r, &r));
    return rnl_op_recurrent_layer(l->lowering->list, &l->params, &l->views, &r);
}

/* ---- the node ------------------------------------------------------------------------------------------------- */

static void choose_directions(layer *l, size_t first, size_t count)
{
    const rnl_recurrent *node = &l->node;
    l->direction = first;
    l->directions = count;
    l->params = (rnl_recurrent_params){.kind = (rnl_recurrent_kind)node->kind,
                                       .clip = node->clip,
                                       .coupled = node->coupled,
                                       .reset_after = node->reset_after,
                                       .first_is_reverse = node->first_is_reverse || first > 0};
    for (size_t i = 0; i < 3; i++) {
        l->params.activations[i] = (rnl_activation)node->activations[first][i];
        l->params.alpha[i] = node->alpha[first][i];
        l->params.beta[i] = node->beta[first][i];
    }
    l->views = (rnl_recurrent_views){.bias = directions_of(l, &l->bias, 0),
                                     .peepholes = directions_of(l, &l->peepholes, 0),
                                     .lengths = l->lengths,
                                     .y = directions_of(l, &l->y, 1)};
}

static bool directions_are_alike(const rnl_recurrent *node)
{
    bool alike = true;
    for (size_t i = 0; i < 3; i++)
        alike = alike && node->activations[0][i] == node->activations[1][i] && node->alpha[0][i] == node->alpha[1][i] &&
                node->beta[0][i] == node->beta[1][i];
    return alike;
}

static rnl_status lower_directions(layer *l, size_t first, size_t count)
{
    choose_directions(l, first, count);
    if (l->node.rows == 0 || l->node.units == 0)
        return RNL_OK;
    TRY(make_state(l));
    TRY(fill_state(l));
    if (l->node.steps > 0) {
        TRY(multiply_input(l, &l->views.x));
        if (rnl_recurrent_layer_pays(l->lowering->list->device, &l->params, &l->views))
            TRY(lower_whole(l));
        else
            TRY(lower_steps(l));
    }
    return store_state(l);
}

static rnl_status lower_layer(layer *l)
{
    if (l->node.directions == 1 || directions_are_alike(&l->node))
        return lower_directions(l, 0, (size_t)l->node.directions);
    TRY(lower_directions(l, 0, 1));
    return lower_directions(l, 1, 1);
}

rnl_status rnl_lower_recurrent(rnl_lowering *lowering)
{
    layer l = {.lowering = lowering};
    TRY(rnl_recurrent_resolve(&lowering->context, &l.node));
    l.dtype = lowering->context.inputs[0].dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    TRY(collect_inputs(&l));
    TRY(collect_outputs(&l));
    rnl_view y = l.y;
    const bool apart = rnl_view_exists(&y) && l.node.units > 1 && y.stride[3] != 1;
    if (apart) /* a part of a larger value whose rows are not rows */
        TRY(rnl_lower_scratch(lowering, y.dtype, 4, y.shape, RNL_LAYOUT_ROW_MAJOR, &l.y));
    TRY(lower_layer(&l));
    return apart ? rnl_lower_copy(lowering, &l.y, &y) : RNL_OK;
}
