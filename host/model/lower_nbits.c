/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's MatMulNBits. */
#include "base/memory.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include "ops/nbits.h"

typedef struct nbits_product {
    rnl_view a, values, scales, zero_points, groups, bias, target;
    rnl_nbits matrix;
} nbits_product;

static rnl_status lower_inputs(rnl_lowering *lowering, nbits_product *p)
{
    rnl_view *const views[] = {&p->a, &p->values, &p->scales, &p->zero_points, &p->groups, &p->bias};
    rnl_nbits_shape shape;
    TRY(rnl_nbits_resolve(&lowering->context, &shape));
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ROW_MAJOR, views[i]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &p->target));
    p->matrix =
        (rnl_nbits){shape.bits, shape.n, shape.k, shape.block, &p->values, &p->scales, &p->zero_points, &p->groups};
    return RNL_OK;
}

/* The weights as numbers, and a product with them. */
static rnl_status lower_unpacked(rnl_lowering *lowering, nbits_product *p)
{
    rnl_gemm_params params = {.alpha = 1, .beta = 1};
    const int64_t shape[2] = {p->matrix.n, p->matrix.k};
    rnl_view numbers, a = p->a, target = p->target;
    TRY(rnl_lower_scratch(lowering, p->scales.dtype, 2, shape, RNL_LAYOUT_ROW_MAJOR, &numbers));
    TRY(rnl_op_nbits_unpack(lowering->list, &p->matrix, &numbers));
    const rnl_view turned = rnl_view_permute(&numbers, (const size_t[]){1, 0});
    if (a.rank == 1) {
        rnl_view_reshape(&p->a, 2, (const int64_t[]){1, p->matrix.k}, &a);
        rnl_view_reshape(&p->target, 2, (const int64_t[]){1, p->matrix.n}, &target);
    }
    return rnl_compose_product(lowering, &params, &a, &turned, &p->bias, &target);
}

/* The packed weights, read once for a few rows. */
static rnl_status lower_rows(rnl_lowering *lowering, nbits_product *p)
{
    const rnl_view *target = &p->target;
    rnl_view own;
    if (rnl_view_is_row_major(target))
        return rnl_op_nbits_rows(lowering->list, &p->matrix, &p->a, &p->bias, target);
    TRY(rnl_lower_scratch(lowering, target->dtype, target->rank, target->shape, RNL_LAYOUT_ROW_MAJOR, &own));
    TRY(rnl_op_nbits_rows(lowering->list, &p->matrix, &p->a, &p->bias, &own));
    return rnl_lower_copy(lowering, &own, target);
}

rnl_status rnl_lower_matmul_nbits(rnl_lowering *lowering)
{
    nbits_product p;
    TRY(lower_inputs(lowering, &p));
    int64_t rows = rnl_view_elements(&p.a) / p.matrix.k;
    if (rows <= rnl_nbits_rows_most(lowering->list->device, &p.matrix))
        return lower_rows(lowering, &p);
    return lower_unpacked(lowering, &p);
}
