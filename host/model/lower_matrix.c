/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower_list.h"

#include "ops/gemm.h"
#include <string.h>

/* Puts a dimension of size 1 before `axis`. */
static void insert_axis(rnl_view *view, size_t axis)
{
    size_t behind = view->rank - axis;
    memmove(&view->shape[axis + 1], &view->shape[axis], behind * sizeof *view->shape);
    memmove(&view->stride[axis + 1], &view->stride[axis], behind * sizeof *view->stride);
    view->shape[axis] = 1;
    view->stride[axis] = 0;
    view->rank++;
}

rnl_status rnl_lower_matmul(rnl_lowering *lowering)
{
    rnl_gemm_params params = {.alpha = 1};
    rnl_view a, b, target, none = {.slot = RNL_NO_SLOT};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &a));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &b));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    bool a_vector = a.rank == 1, b_vector = b.rank == 1;
    if (a_vector)
        insert_axis(&a, 0);
    if (b_vector)
        insert_axis(&b, 1);
    if (b_vector)
        insert_axis(&target, target.rank);
    if (a_vector)
        insert_axis(&target, target.rank - 1);
    return rnl_op_gemm(lowering->list, &params, &a, &b, &none, &target);
}

static void transpose_last(rnl_view *view)
{
    int64_t shape = view->shape[0], stride = view->stride[0];
    view->shape[0] = view->shape[1];
    view->stride[0] = view->stride[1];
    view->shape[1] = shape;
    view->stride[1] = stride;
}

rnl_status rnl_lower_gemm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_gemm_params params = {.alpha = rnl_node_float(node, "alpha", 1), .beta = rnl_node_float(node, "beta", 1)};
    rnl_view a, b, c, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &a));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &b));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &c));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (rnl_node_int(node, "transA", 0))
        transpose_last(&a);
    if (rnl_node_int(node, "transB", 0))
        transpose_last(&b);
    return rnl_op_gemm(lowering->list, &params, &a, &b, &c, &target);
}
