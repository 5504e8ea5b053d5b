/* SPDX-License-Identifier: Apache-2.0 */
/* Products of quantised matrices. */
#include "model/lower_quantized.h"

#include "graph/op_common.h"
#include "model/lower_list.h"
#include "model/matrix.h"
#include "ops/qdynamic.h"
#include "ops/reduce.h"
#include <string.h>

rnl_status rnl_lower_scale(rnl_lowering *lowering, size_t index, rnl_view *out_view)
{
    rnl_view given;
    TRY(rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, &given));
    *out_view = given;
    if (!rnl_view_exists(&given) || given.dtype == RNL_F32)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, RNL_F32, given.rank, given.shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    return rnl_lower_copy(lowering, &given, out_view);
}

bool rnl_is_single(const rnl_view *view)
{
    return !rnl_view_exists(view) || rnl_view_elements(view) == 1;
}

rnl_view rnl_view_of_columns(const rnl_view *view)
{
    rnl_view columns = *view;
    if (rnl_is_single(view))
        columns.rank = 0;
    return columns;
}

rnl_view rnl_view_of_rows(const rnl_view *view)
{
    rnl_view rows = rnl_view_of_columns(view);
    if (rows.rank == 1) {
        rows.rank = 2;
        rows.shape[1] = 1;
        rows.stride[1] = 0;
    }
    return rows;
}

rnl_status rnl_lower_integer_product(rnl_lowering *lowering, rnl_qgemm_params *params, const rnl_view *a,
                                     const rnl_view *b, const rnl_view *target)
{
    int64_t ints;
    rnl_view scratch;
    TRY(rnl_qgemm_scratch(lowering->list->device, params, a, b, target, &ints));
    if (ints > 0) {
        TRY(rnl_lower_scratch(lowering, RNL_I32, 1, &ints, RNL_LAYOUT_ROW_MAJOR, &scratch));
        params->scratch = &scratch;
    }
    rnl_status status = rnl_op_qgemm(lowering->list, params, a, b, target);
    params->scratch = NULL;
    return status;
}

rnl_status rnl_lower_quantization(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target,
                                  const rnl_view *scale, const rnl_view *zero_point)
{
    static const int64_t ones[RNL_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    rnl_view least, greatest, bounds;
    uint32_t axes = (1u << source->rank) - 1;
    const int64_t floats = (int64_t)rnl_quantize_dynamic_scratch(lowering->list->device, source, target);
    if (floats > 0) {
        TRY(rnl_lower_scratch(lowering, RNL_F32, 1, &floats, RNL_LAYOUT_ROW_MAJOR, &bounds));
        return rnl_op_quantize_dynamic(lowering->list, source, &bounds, target, scale, zero_point);
    }
    TRY(rnl_lower_scratch(lowering, RNL_F32, source->rank, ones, RNL_LAYOUT_ROW_MAJOR, &least));
    TRY(rnl_lower_scratch(lowering, RNL_F32, source->rank, ones, RNL_LAYOUT_ROW_MAJOR, &greatest));
    TRY(rnl_op_reduce(lowering->list, RNL_REDUCE_MIN, axes, source, &least));
    TRY(rnl_op_reduce(lowering->list, RNL_REDUCE_MAX, axes, source, &greatest));
    TRY(rnl_op_quantize_bounds(lowering->list, &least, &greatest, scale, zero_point));
    return rnl_op_qmap(lowering->list, RNL_QMAP_COPY, 0, &(rnl_quantized){source, NULL, NULL}, NULL,
                       &(rnl_quantized){target, scale, zero_point});
}

rnl_status rnl_lower_dynamic_quantize(rnl_lowering *lowering)
{
    rnl_view source, target, scale, zero_point;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (rnl_lower_has_output(lowering, 1))
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &scale));
    else
        TRY(rnl_lower_scratch(lowering, RNL_F32, 0, NULL, RNL_LAYOUT_ROW_MAJOR, &scale));
    if (rnl_lower_has_output(lowering, 2))
        TRY(rnl_lower_output(lowering, 2, RNL_LAYOUT_ROW_MAJOR, &zero_point));
    else
        TRY(rnl_lower_scratch(lowering, RNL_U8, 0, NULL, RNL_LAYOUT_ROW_MAJOR, &zero_point));
    return rnl_lower_quantization(lowering, &source, &target, &scale, &zero_point);
}

/* One number for each column, in one dimension. */
static bool is_plain_columns(const rnl_view *view)
{
    return rnl_is_single(view) || view->rank == 1;
}

/* The product's own end can do it. */
static bool ends_itself(const rnl_product *p)
{
    return rnl_is_single(&p->a_scale) && is_plain_columns(&p->b_scale) && is_plain_columns(&p->bias) &&
           rnl_is_single(&p->y_scale) && rnl_is_single(&p->y_zero) && p->alpha == 1.0f && p->target.dtype != RNL_F16;
}

/* Where `b` is a constant, the form that products read best, which the model keeps. */
static rnl_status lower_packed(rnl_lowering *lowering, rnl_product *p, rnl_view *packed, rnl_qgemm_params *params)
{
    if (p->b_constant == RNL_NO_VALUE)
        return RNL_OK;
    const rnl_weight_key key = {p->b_constant, p->b_packing, 0, RNL_NO_NODE, RNL_NO_NODE};
    TRY(rnl_lower_weight(lowering, &key, NULL, 0, packed));
    params->packed_b = packed;
    p->b.slot = packed->slot;
    return RNL_OK;
}

rnl_status rnl_lower_product(rnl_lowering *lowering, rnl_product *p)
{
    rnl_qgemm_params params = {.a_zero_point = &p->a_zero, .b_zero_point = &p->b_zero};
    rnl_view sums, packed;
    TRY(lower_packed(lowering, p, &packed, &params));
    rnl_matrix_of_vectors(&p->a, &p->b, &p->target);
    if (ends_itself(p)) {
        params.bias = &p->bias;
        params.a_scale = &p->a_scale;
        params.b_scale = &p->b_scale;
        params.dst_scale = &p->y_scale;
        params.dst_zero_point = &p->y_zero;
        params.chain = p->chain;
        return rnl_lower_integer_product(lowering, &params, &p->a, &p->b, &p->target);
    }
    if (p->chain)
        return FAIL(RNL_INTERNAL, "this integer matrix product cannot end with a chain");
    TRY(rnl_lower_scratch(lowering, RNL_I32, p->target.rank, p->target.shape, RNL_LAYOUT_ROW_MAJOR, &sums));
    TRY(rnl_lower_integer_product(lowering, &params, &p->a, &p->b, &sums));
    const rnl_view a_scale = rnl_view_of_rows(&p->a_scale), b_scale = rnl_view_of_columns(&p->b_scale);
    const rnl_view y_scale = rnl_view_of_rows(&p->y_scale), y_zero = rnl_view_of_rows(&p->y_zero);
    return rnl_op_qmap(lowering->list, RNL_QMAP_SCALE, p->alpha, &(rnl_quantized){&sums, &a_scale, NULL},
                       &(rnl_quantized){&p->bias, &b_scale, NULL}, &(rnl_quantized){&p->target, &y_scale, &y_zero});
}

/* A constant matrix, or a convolution's weights, is not placed before it is packed. */
static bool take_constant(const rnl_lowering *lowering, uint32_t index, bool convolves, rnl_product *p)
{
    const uint32_t value = lowering->context.node->inputs[index];
    const rnl_tensor_desc *desc = &lowering->context.inputs[index];
    p->b_index = index;
    p->b_packing = convolves ? RNL_PACKING_BYTES_WINDOWS : RNL_PACKING_BYTES;
    if (!lowering->planner->model->constants.tensors[value] || rnl_desc_elements(desc) == 0 ||
        (!convolves && desc->rank != 2))
        return false;
    p->b_constant = value;
    p->b = rnl_view_row_major(RNL_NO_SLOT, desc->dtype, desc->rank, desc->shape);
    return true;
}

rnl_status rnl_lower_plain_factor(rnl_lowering *lowering, rnl_product *p)
{
    if (p->b_constant == RNL_NO_VALUE)
        return RNL_OK;
    p->b_constant = RNL_NO_VALUE;
    return rnl_lower_input(lowering, p->b_index, RNL_LAYOUT_ANY, &p->b);
}

/* A constant that is 0 all over: products are faster without it. */
static bool is_nought(const rnl_lowering *lowering, uint32_t index)
{
    const rnl_node *node = lowering->context.node;
    const rnl_host_tensor *tensor =
        rnl_lower_has_input(lowering, index) ? lowering->planner->model->constants.tensors[node->inputs[index]] : NULL;
    const unsigned char *bytes = tensor ? tensor->data : NULL;
    for (size_t i = 0; tensor && i < tensor->size_bytes; i++)
        if (bytes[i] != 0)
            return false;
    return tensor != NULL;
}

rnl_status rnl_lower_product_inputs(rnl_lowering *lowering, const uint32_t indices[9], rnl_layout layout,
                                    rnl_product *p)
{
    rnl_view *views[9] = {&p->a,      &p->a_scale, &p->a_zero,  &p->b,     &p->b_scale,
                          &p->b_zero, &p->bias,    &p->y_scale, &p->y_zero};
    *p = (rnl_product){.alpha = 1, .b_constant = RNL_NO_VALUE};
    for (size_t i = 0; i < 9; i++) {
        bool is_scale = i == 1 || i == 4 || i == 7;
        views[i]->slot = RNL_NO_SLOT;
        if (indices[i] == RNL_NO_VALUE)
            continue;
        if ((i == 2 || i == 5) && is_nought(lowering, indices[i]))
            continue;
        if (i == 3 && take_constant(lowering, indices[i], layout == RNL_LAYOUT_CHANNELS_LAST, p))
            continue;
        if (is_scale)
            TRY(rnl_lower_scale(lowering, indices[i], views[i]));
        else
            TRY(rnl_lower_input(lowering, indices[i], RNL_LAYOUT_ANY, views[i]));
    }
    return rnl_lower_result(lowering, layout, &p->target, &p->chain);
}

rnl_status rnl_lower_matmul_integer(rnl_lowering *lowering)
{
    rnl_product p;
    TRY(rnl_lower_product_inputs(
        lowering, (const uint32_t[9]){0, RNL_NO_VALUE, 2, 1, RNL_NO_VALUE, 3, RNL_NO_VALUE, RNL_NO_VALUE, RNL_NO_VALUE},
        RNL_LAYOUT_ROW_MAJOR, &p));
    return rnl_lower_product(lowering, &p);
}

rnl_status rnl_lower_qlinear_matmul(rnl_lowering *lowering)
{
    rnl_product p;
    TRY(rnl_lower_product_inputs(lowering, (const uint32_t[9]){0, 1, 2, 3, 4, 5, RNL_NO_VALUE, 6, 7},
                                 RNL_LAYOUT_ROW_MAJOR, &p));
    return rnl_lower_product(lowering, &p);
}

/* A row of biases, whatever its rank. */
static void flatten_row(rnl_view *view)
{
    if (rnl_view_exists(view) && view->rank == 2 && view->shape[0] == 1) {
        view->rank = 1;
        view->shape[0] = view->shape[1];
        view->stride[0] = view->stride[1];
    }
}

rnl_status rnl_lower_qgemm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_product p;
    TRY(rnl_lower_product_inputs(lowering, (const uint32_t[9]){0, 1, 2, 3, 4, 5, 6, 7, 8}, RNL_LAYOUT_ROW_MAJOR, &p));
    p.alpha = rnl_node_float(node, "alpha", 1);
    flatten_row(&p.bias);
    if (rnl_node_int(node, "transA", 0))
        rnl_matrix_transpose(&p.a);
    if (rnl_node_int(node, "transB", 0)) {
        rnl_matrix_transpose(&p.b);
        p.b_packing = RNL_PACKING_BYTES_TURNED;
    }
    return rnl_lower_product(lowering, &p);
}

bool rnl_is_integer_product(const rnl_node *node)
{
    return strcmp(node->op_type, "MatMulIntegerToFloat") == 0 || strcmp(node->op_type, "DynamicQuantizeMatMul") == 0;
}

bool rnl_integer_product_takes_chain(const rnl_planner *planner, const rnl_node *node, uint32_t *out_bias)
{
    const bool dynamic = strcmp(node->op_type, "DynamicQuantizeMatMul") == 0;
    const uint32_t bias = dynamic ? 4 : 6, a_scale = node->inputs[2], b_scale = node->inputs[dynamic ? 2 : 3];
    const rnl_tensor_desc *a = &planner->values[node->inputs[0]].desc, *b = &planner->values[node->inputs[1]].desc;
    const rnl_tensor_desc *by_column = &planner->values[b_scale].desc;
    *out_bias = bias < node->input_count ? node->inputs[bias] : RNL_NO_VALUE;
    return planner->values[node->outputs[0]].desc.dtype == RNL_F32 && a->rank >= 2 && b->rank >= 2 &&
           (dynamic || rnl_desc_elements(&planner->values[a_scale].desc) == 1) &&
           (by_column->rank == 1 || rnl_desc_elements(by_column) == 1);
}

/* In place; where the product ends with a chain, that has added it. */
static rnl_status add_bias(rnl_lowering *lowering, size_t index, const rnl_view *target)
{
    rnl_view bias;
    if (lowering->group || !rnl_lower_has_input(lowering, index))
        return RNL_OK;
    TRY(rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, &bias));
    return rnl_op_map(lowering->list, RNL_MAP_ADD, 0, 0, (rnl_view[]){*target, bias}, 2, target);
}

rnl_status rnl_lower_matmul_integer_to_float(rnl_lowering *lowering)
{
    rnl_product p;
    TRY(rnl_lower_product_inputs(lowering,
                                 (const uint32_t[9]){0, 2, 4, 1, 3, 5, RNL_NO_VALUE, RNL_NO_VALUE, RNL_NO_VALUE},
                                 RNL_LAYOUT_ROW_MAJOR, &p));
    const rnl_view target = p.target;
    TRY(rnl_lower_product(lowering, &p));
    return add_bias(lowering, 6, &target);
}

rnl_status rnl_lower_dynamic_quantize_matmul(rnl_lowering *lowering)
{
    rnl_product p;
    rnl_view source;
    TRY(rnl_lower_product_inputs(
        lowering, (const uint32_t[9]){0, RNL_NO_VALUE, RNL_NO_VALUE, 1, 2, 3, RNL_NO_VALUE, RNL_NO_VALUE, RNL_NO_VALUE},
        RNL_LAYOUT_ROW_MAJOR, &p));
    const rnl_view target = p.target;
    source = p.a;
    TRY(rnl_lower_scratch(lowering, RNL_U8, source.rank, source.shape, RNL_LAYOUT_ROW_MAJOR, &p.a));
    TRY(rnl_lower_scratch(lowering, RNL_F32, 0, NULL, RNL_LAYOUT_ROW_MAJOR, &p.a_scale));
    TRY(rnl_lower_scratch(lowering, RNL_U8, 0, NULL, RNL_LAYOUT_ROW_MAJOR, &p.a_zero));
    TRY(rnl_lower_quantization(lowering, &source, &p.a, &p.a_scale, &p.a_zero));
    TRY(rnl_lower_product(lowering, &p));
    return add_bias(lowering, 4, &target);
}
