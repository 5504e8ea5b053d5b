/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower_list.h"

#include "model/compose.h"
#include "model/fold.h"
#include "model/fuse.h"
#include "model/matrix.h"
#include "model/narrow.h"
#include "ops/conv.h"
#include "ops/det.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include <string.h>

/* Fewer columns waste most of a packed row. */
#define MIN_PACKED_COLUMNS 4

static const rnl_tensor_desc *describe(const rnl_planner *planner, uint32_t value)
{
    return &planner->values[value].desc;
}

/* On GPUs the first choice for a product is a library's, which ends with nothing. */
static bool is_ours(const rnl_planner *planner)
{
    return rnl_device_is_cpu(planner->model->device) && !rnl_fuse_is_off();
}

bool rnl_is_matrix_product(const rnl_node *node)
{
    return strcmp(node->op_type, "MatMul") == 0 || strcmp(node->op_type, "Gemm") == 0;
}

bool rnl_matrix_takes_chain(const rnl_planner *planner, const rnl_node *node)
{
    return is_ours(planner) && describe(planner, node->inputs[0])->rank >= 2 &&
           describe(planner, node->inputs[1])->rank >= 2;
}

bool rnl_matrix_is_convolution(const rnl_planner *planner, const rnl_node *node)
{
    const rnl_tensor_desc *a = describe(planner, node->inputs[0]), *b = describe(planner, node->inputs[1]);
    bool is_float = (RNL_TYPES_FLOAT & RNL_TYPE_BIT(a->dtype)) != 0;
    bool turned = rnl_node_int(node, "transB", 0) != 0;
    return is_ours(planner) && is_float && planner->model->constants.tensors[node->inputs[1]] && a->rank >= 2 &&
           a->rank <= 2 + RNL_MAX_SPATIAL && b->rank == 2 && !rnl_node_int(node, "transA", 0) &&
           b->shape[turned ? 0 : 1] >= MIN_PACKED_COLUMNS && b->shape[turned ? 1 : 0] > 0 &&
           (strcmp(node->op_type, "MatMul") == 0 || rnl_fold_takes_anchor(planner, node));
}

/* ---- as a convolution ----------------------------------------------------------------------------------------- */

/* Rows as pixels: …, M, C becomes first, C, …, M, with at least one dimension of pixels. */
static rnl_view as_image(const rnl_view *view, size_t rank)
{
    rnl_view whole = *view, image;
    while (whole.rank < rank) {
        memmove(&whole.shape[1], whole.shape, whole.rank * sizeof *whole.shape);
        memmove(&whole.stride[1], whole.stride, whole.rank * sizeof *whole.stride);
        whole.shape[0] = 1;
        whole.stride[0] = 0;
        whole.rank++;
    }
    image = whole;
    image.shape[1] = whole.shape[rank - 1];
    image.stride[1] = whole.stride[rank - 1];
    for (size_t i = 2; i < rank; i++) {
        image.shape[i] = whole.shape[i - 1];
        image.stride[i] = whole.stride[i - 1];
    }
    return image;
}

/* K x N or, turned, N x K, as N x K x 1…. */
static rnl_view as_window(const rnl_view *matrix, bool turned, size_t rank)
{
    rnl_view window = *matrix;
    window.rank = rank;
    for (size_t i = 0; i < rank; i++) {
        window.shape[i] = i < 2 ? matrix->shape[turned ? i : 1 - i] : 1;
        window.stride[i] = i < 2 ? matrix->stride[turned ? i : 1 - i] : 0;
    }
    return window;
}

/* The first factor with each row's elements side by side. */
static rnl_status lower_rows(rnl_lowering *lowering, rnl_view *out_view)
{
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, out_view));
    size_t last = out_view->rank - 1;
    if (out_view->shape[last] <= 1 || out_view->stride[last] == 1)
        return RNL_OK;
    return rnl_lower_input(lowering, 0, RNL_LAYOUT_ROW_MAJOR, out_view);
}

static rnl_conv_params params_of_rank(size_t rank)
{
    return (rnl_conv_params){.spatial = rank - 2, .stride = {1, 1, 1}, .dilation = {1, 1, 1}, .groups = 1};
}

/* In deterministic plans nothing is chosen by the rows that there are. */
static void set_rows_to_choose_by(rnl_view *image)
{
    for (size_t i = 0; i < image->rank; i++)
        if (i != 1)
            image->shape[i] =
                rnl_count_to_choose_by(image->shape[i], i + 1 == image->rank ? RNL_DETERMINISTIC_ROWS : 1);
}

/* How the second factor, input 1 and constant, is packed for rows that become `columns` elements each. Where the model
 * multiplies bfloat16, nothing is chosen but matrix tiles. */
static rnl_status choose_packing(rnl_lowering *lowering, bool turned, const rnl_view *source, int64_t columns,
                                 rnl_packing *out_packing)
{
    const rnl_tensor_desc *b = &lowering->context.inputs[1];
    const size_t rank = source->rank < 3 ? 3 : source->rank;
    rnl_conv_params params = params_of_rank(rank);
    rnl_view target = *source, weight = {.slot = RNL_NO_SLOT, .dtype = b->dtype, .rank = b->rank};
    bool fip = false, strassen = false;
    memcpy(weight.shape, b->shape, sizeof b->shape);
    target.shape[target.rank - 1] = columns;
    target = rnl_view_row_major(RNL_NO_SLOT, source->dtype, source->rank, target.shape);
    const rnl_view window = as_window(&weight, turned, rank);
    rnl_view from = as_image(source, rank), to = as_image(&target, rank);
    set_rows_to_choose_by(&from);
    set_rows_to_choose_by(&to);
    TRY(rnl_lower_prefers_amx(lowering, &params, &from, &window, &to));
    if (params.amx == 1)
        *out_packing = turned ? RNL_PACKING_AMX_BF16 : RNL_PACKING_AMX_BF16_MATRIX;
    else if (params.amx)
        *out_packing = turned ? RNL_PACKING_AMX : RNL_PACKING_AMX_MATRIX;
    if (params.amx || rnl_narrow_multiplies(lowering->planner, lowering->context.node))
        return RNL_OK;
    TRY(rnl_conv_prefers_fip(lowering->list->device, &params, &from, &window, &to, &fip));
    if (!fip)
        TRY(rnl_conv_prefers_strassen(lowering->list->device, &params, &from, &window, &to, &strassen));
    if (fip)
        *out_packing = turned ? RNL_PACKING_FIP : RNL_PACKING_FIP_MATRIX;
    else if (strassen)
        *out_packing = turned ? RNL_PACKING_STRASSEN : RNL_PACKING_STRASSEN_MATRIX;
    else
        *out_packing = turned ? RNL_PACKING_MATRIX_TURNED : RNL_PACKING_MATRIX;
    return RNL_OK;
}

static rnl_status convolve_rows(rnl_lowering *lowering, bool turned, rnl_packing packing, rnl_chain *chain,
                                const rnl_view *source, const rnl_view *weight, const rnl_view *bias,
                                const rnl_view *target)
{
    const size_t rank = source->rank < 3 ? 3 : source->rank;
    rnl_conv_params params = params_of_rank(rank);
    rnl_view scratch;
    params.pairs = rnl_packing_is_pairs(packing);
    params.amx = rnl_packing_amx_parts(packing);
    for (size_t i = 0; chain && i < chain->operand_count; i++)
        chain->operands[i] = as_image(&chain->operands[i], rank);
    params.chain = chain;
    params.fip = rnl_packing_is_fip(packing);
    params.strassen = rnl_packing_is_strassen(packing);
    const rnl_view from = as_image(source, rank), to = as_image(target, rank), window = as_window(weight, turned, rank);
    if (params.fip || params.strassen || params.amx)
        TRY(rnl_lower_conv_memory(lowering, &params, &from, &window, bias, &to, &scratch));
    return rnl_op_conv(lowering->list, &params, &from, &window, bias, &to);
}

/* Where the model multiplies bfloat16: rows as they are stored, for matrix tiles, or as bfloat16, of which pairs are
 * read. */
static rnl_status lower_narrow_rows(rnl_lowering *lowering, bool turned, int64_t columns, rnl_packing *packing,
                                    rnl_view *out_view)
{
    const uint32_t value = lowering->context.node->inputs[0];
    TRY(rnl_lower_stored(lowering, value, RNL_LAYOUT_ANY, out_view));
    size_t last = out_view->rank - 1;
    if (out_view->stride[last] == 1)
        TRY(choose_packing(lowering, turned, out_view, columns, packing));
    if (rnl_packing_amx_parts(*packing))
        return RNL_OK;
    bool fits = out_view->stride[last] == 1 && out_view->offset % 2 == 0;
    for (size_t i = 0; i < last; i++)
        fits = fits && (out_view->stride[i] % 2 == 0 || out_view->shape[i] <= 1);
    return rnl_lower_value_as(lowering, value, fits ? RNL_LAYOUT_ANY : RNL_LAYOUT_ROW_MAJOR, RNL_BF16, out_view);
}

static rnl_status lower_as_convolution(rnl_lowering *lowering)
{
    bool turned = rnl_node_int(lowering->context.node, "transB", 0) != 0;
    const int64_t columns = lowering->context.inputs[1].shape[turned ? 0 : 1];
    rnl_packing packing;
    rnl_view source, weight, bias, target;
    rnl_chain *chain = NULL;
    if (rnl_narrow_multiplies(lowering->planner, lowering->context.node)) {
        packing = turned ? RNL_PACKING_TURNED_PAIRS : RNL_PACKING_MATRIX_PAIRS;
        TRY(lower_narrow_rows(lowering, turned, columns, &packing, &source));
        turned = turned || rnl_packing_is_pairs(packing); /* as pairs are always described */
    } else {
        TRY(lower_rows(lowering, &source));
        TRY(choose_packing(lowering, turned, &source, columns, &packing));
    }
    TRY(rnl_lower_anchor_weights(lowering, packing, 0, &weight, &bias));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_ROW_MAJOR, &target, &chain));
    return convolve_rows(lowering, turned, packing, chain, &source, &weight, &bias, &target);
}

rnl_status rnl_lower_projection(rnl_lowering *lowering, rnl_view *out_view)
{
    const rnl_planner *planner = lowering->planner;
    const rnl_tensor_desc *a = &lowering->context.inputs[0], *b = &lowering->context.inputs[1];
    const bool packed = is_ours(planner) && planner->model->constants.tensors[lowering->context.node->inputs[1]] &&
                        (RNL_TYPES_FLOAT & RNL_TYPE_BIT(a->dtype)) && b->shape[1] >= MIN_PACKED_COLUMNS &&
                        b->shape[0] > 0;
    const int64_t shape[] = {a->shape[0], a->shape[1], b->shape[1]};
    rnl_gemm_params params = {.alpha = 1, .beta = 1};
    rnl_view source, weight, bias;
    TRY(lower_rows(lowering, &source));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ROW_MAJOR, &bias));
    TRY(rnl_lower_scratch(lowering, a->dtype, 3, shape, RNL_LAYOUT_ROW_MAJOR, out_view));
    if (packed) {
        rnl_packing packing;
        TRY(choose_packing(lowering, false, &source, b->shape[1], &packing));
        TRY(rnl_lower_conv_weight(lowering, 1, packing, 0, &weight));
        return convolve_rows(lowering, false, packing, NULL, &source, &weight, &bias, out_view);
    }
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &weight));
    return rnl_compose_product(lowering, &params, &source, &weight, &bias, out_view);
}

/* ---- as a product --------------------------------------------------------------------------------------------- */

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

void rnl_matrix_of_vectors(rnl_view *a, rnl_view *b, rnl_view *target)
{
    bool a_vector = a->rank == 1, b_vector = b->rank == 1;
    if (a_vector)
        insert_axis(a, 0);
    if (b_vector)
        insert_axis(b, 1);
    if (b_vector)
        insert_axis(target, target->rank);
    if (a_vector)
        insert_axis(target, target->rank - 1);
}

rnl_status rnl_lower_matmul(rnl_lowering *lowering)
{
    rnl_gemm_params params = {.alpha = 1};
    rnl_view a, b, target, none = {.slot = RNL_NO_SLOT};
    rnl_chain *chain = NULL;
    if (rnl_matrix_is_convolution(lowering->planner, lowering->context.node))
        return lower_as_convolution(lowering);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &a));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &b));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_ROW_MAJOR, &target, &chain));
    rnl_matrix_of_vectors(&a, &b, &target);
    params.chain = chain;
    return rnl_compose_product(lowering, &params, &a, &b, &none, &target);
}

void rnl_matrix_transpose(rnl_view *view)
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
    rnl_chain *chain = NULL;
    if (rnl_matrix_is_convolution(lowering->planner, node))
        return lower_as_convolution(lowering);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &a));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &b));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &c));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_ROW_MAJOR, &target, &chain));
    if (rnl_node_int(node, "transA", 0))
        rnl_matrix_transpose(&a);
    if (rnl_node_int(node, "transB", 0))
        rnl_matrix_transpose(&b);
    params.chain = chain;
    return rnl_compose_product(lowering, &params, &a, &b, &c, &target);
}

rnl_status rnl_lower_det(rnl_lowering *lowering)
{
    rnl_view source, target, work;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    const int64_t elements = rnl_view_elements(&source);
    TRY(rnl_lower_scratch(lowering, rnl_det_work_type(source.dtype), 1, &elements, RNL_LAYOUT_ROW_MAJOR, &work));
    return rnl_op_det(lowering->list, &source, &work, &target);
}
