/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose places come from a tensor of indices; Gather is in lower_view.c. */
#include "model/lower_list.h"

#include "ops/indexing.h"
#include <string.h>

rnl_status rnl_lower_gather_elements(rnl_lowering *lowering)
{
    size_t axis;
    rnl_view data, indices, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &indices));
    TRY(rnl_axis_resolve(rnl_node_int(lowering->context.node, "axis", 0), data.rank, "axis", &axis));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_op_gather_elements(lowering->list, axis, &data, &indices, &target);
}

rnl_status rnl_lower_gather_nd(rnl_lowering *lowering)
{
    rnl_view data, indices, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &indices));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    size_t batch = (size_t)rnl_node_int(lowering->context.node, "batch_dims", 0);
    return rnl_op_gather_nd(lowering->list, batch, &data, &indices, &target);
}

static rnl_scatter_op reduction(const rnl_node *node)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = rnl_node_string(node, "reduction", "none");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (rnl_scatter_op)i;
    return RNL_SCATTER_NONE;
}

/* The output starts as a copy of the data, in row-major order: later dimensions are written side by side. */
static rnl_status begin_scatter(rnl_lowering *lowering, rnl_view *out_indices, rnl_view *out_updates,
                                rnl_view *out_target)
{
    rnl_view data;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &data));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, out_indices));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, out_updates));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, out_target));
    return rnl_lower_copy(lowering, &data, out_target);
}

rnl_status rnl_lower_scatter_elements(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis;
    rnl_view indices, updates, target;
    TRY(begin_scatter(lowering, &indices, &updates, &target));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", 0), target.rank, "axis", &axis));
    return rnl_op_scatter_elements(lowering->list, reduction(node), axis, &indices, &updates, &target);
}

rnl_status rnl_lower_scatter_nd(rnl_lowering *lowering)
{
    rnl_view indices, updates, target;
    TRY(begin_scatter(lowering, &indices, &updates, &target));
    return rnl_op_scatter_nd(lowering->list, reduction(lowering->context.node), &indices, &updates, &target);
}
