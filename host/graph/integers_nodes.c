/* SPDX-License-Identifier: Apache-2.0 */
/* Operators between DequantizeLinear and QuantizeLinear, as ones on the integers. */
#include "graph/integers_edit.h"

#include "graph/op.h"
#include <math.h>
#include <string.h>

#define MOST_CONCAT 64 /* tensors that are joined */

/* ---- what stands in front of a QuantizeLinear ------------------------------------------------------------------ */

static double number_or(const rnl_editor *editor, const rnl_node *node, uint32_t index, double absent)
{
    const rnl_host_tensor *tensor = index < node->input_count ? rnl_editor_constant(editor, node->inputs[index]) : NULL;
    if (index < node->input_count && node->inputs[index] != RNL_NO_VALUE && !tensor)
        return NAN;
    return tensor && rnl_tensor_elements(tensor) == 1 ? rnl_tensor_number(tensor, 0) : absent;
}

/* The bounds of a Relu or Clip; false for other nodes. Unknown ones are NaN. */
static bool bounds_of(const rnl_editor *editor, const rnl_node *node, double *out_low, double *out_high)
{
    *out_low = 0;
    *out_high = INFINITY;
    if (rnl_node_is(node, "Relu"))
        return true;
    if (!rnl_node_is(node, "Clip"))
        return false;
    const bool old = node->opset < 11;
    *out_low = number_or(editor, node, 1, old ? rnl_node_float(node, "min", -INFINITY) : -INFINITY);
    *out_high = number_or(editor, node, 2, old ? rnl_node_float(node, "max", INFINITY) : INFINITY);
    return true;
}

/* Where the integers' own range bounds at least as tightly, a Relu or Clip does nothing: the value before it. */
static uint32_t before_bounds(const rnl_editor *editor, uint32_t value, const rnl_quantity *to)
{
    const rnl_node *node = rnl_editor_own_producer(editor, value);
    double low, high;
    if (!node || !bounds_of(editor, node, &low, &high))
        return value;
    const double scale = rnl_tensor_number(to->scales, 0), least = to->dtype == RNL_U8 ? 0 : -128;
    const double lowest = (least - to->zero_point) * scale, highest = (least + 255 - to->zero_point) * scale;
    return low < lowest + scale / 2 && high > highest - scale / 2 ? node->inputs[0] : value;
}

/* ---- convolutions and products --------------------------------------------------------------------------------- */

/* Constant 8-bit weights with one scale, or one for each index of `axis`; their zero point is made where there is none.
 */
static rnl_status take_weight(rnl_editor *editor, uint32_t value, int64_t axis, rnl_quantity *out, bool *out_taken)
{
    static const int8_t nought;
    const rnl_host_tensor *tensor;
    *out_taken = false;
    if (!rnl_quantity_behind(editor, value, out) || out->dtype == RNL_I32 ||
        !(tensor = rnl_editor_constant(editor, out->values)) || (size_t)axis >= tensor->rank)
        return RNL_OK;
    const int64_t count = rnl_tensor_elements(out->scales), rank = (int64_t)tensor->rank;
    if (count != 1 && (count != tensor->shape[axis] || (out->axis != axis && out->axis != axis - rank)))
        return RNL_OK;
    *out_taken = true;
    return out->zero == RNL_NO_VALUE ? rnl_editor_add(editor, out->dtype, 0, 1, &nought, &out->zero) : RNL_OK;
}

/* The bias as integers in units of the products: a DequantizeLinear of those. False: it is there, and is not so. */
static bool take_bias(const rnl_editor *editor, const rnl_node *node, const rnl_quantity *x, const rnl_quantity *weight,
                      uint32_t *out_bias)
{
    rnl_quantity bias;
    *out_bias = RNL_NO_VALUE;
    if (node->input_count < 3 || node->inputs[2] == RNL_NO_VALUE)
        return true;
    if (!rnl_quantity_behind(editor, node->inputs[2], &bias) || bias.dtype != RNL_I32)
        return false;
    const rnl_host_tensor *values = rnl_editor_constant(editor, bias.values);
    const int64_t count = rnl_tensor_elements(bias.scales), weights = rnl_tensor_elements(weight->scales);
    if (!values || values->rank != 1 || (count != 1 && count != weights))
        return false;
    for (int64_t i = 0; i < (count > weights ? count : weights); i++) {
        const double unit = rnl_tensor_number(x->scales, 0) * rnl_tensor_number(weight->scales, weights == 1 ? 0 : i);
        if (!(fabs(rnl_tensor_number(bias.scales, count == 1 ? 0 : i) - unit) <= 1e-6 * unit)) /* a few roundings */
            return false;
        if (bias.zero != RNL_NO_VALUE &&
            rnl_tensor_number(rnl_editor_constant(editor, bias.zero), count == 1 ? 0 : i) != 0)
            return false;
    }
    *out_bias = bias.values;
    return true;
}

static bool take_single(const rnl_editor *editor, const rnl_node *node, uint32_t index, rnl_quantity *out)
{
    return index < node->input_count && rnl_quantity_behind(editor, node->inputs[index], out) &&
           rnl_quantity_is_single(out);
}

static rnl_status replace_conv(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    rnl_quantity x, weight;
    uint32_t bias;
    bool taken;
    if (!take_single(editor, node, 0, &x))
        return RNL_OK;
    TRY(take_weight(editor, node->inputs[1], 0, &weight, &taken));
    if (!taken || !take_bias(editor, node, &x, &weight, &bias))
        return RNL_OK;
    const uint32_t inputs[] = {x.values,    x.scale,  x.zero,  weight.values, weight.scale,
                               weight.zero, y->scale, y->zero, bias};
    return rnl_editor_replace(editor, index, node, "", "QLinearConv", inputs, bias == RNL_NO_VALUE ? 8 : 9);
}

/* Both factors: the second one a constant matrix with scales along `axis`, or any tensor with one. */
static rnl_status take_factors(rnl_editor *editor, const rnl_node *node, int64_t axis, rnl_quantity *a, rnl_quantity *b,
                               bool *out_taken)
{
    *out_taken = false;
    if (!take_single(editor, node, 0, a) || !rnl_quantity_behind(editor, node->inputs[1], b))
        return RNL_OK;
    const rnl_host_tensor *constant = rnl_editor_constant(editor, b->values);
    if (constant && constant->rank == 2)
        return take_weight(editor, node->inputs[1], axis, b, out_taken);
    *out_taken = rnl_quantity_is_single(b);
    return RNL_OK;
}

/* `y`: NULL for a result of float32. */
static rnl_status replace_matmul(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    rnl_quantity a, b;
    bool taken;
    TRY(take_factors(editor, node, 1, &a, &b, &taken));
    if (!taken)
        return RNL_OK;
    if (!y)
        return rnl_editor_replace(editor, index, node, RNL_MICROSOFT, "MatMulIntegerToFloat",
                                  (uint32_t[]){a.values, b.values, a.scale, b.scale, a.zero, b.zero}, 6);
    const uint32_t inputs[] = {a.values, a.scale, a.zero, b.values, b.scale, b.zero, y->scale, y->zero};
    return rnl_editor_replace(editor, index, node, "", "QLinearMatMul", inputs, 8);
}

static rnl_status replace_gemm(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    rnl_quantity a, b;
    uint32_t bias;
    bool taken;
    if (rnl_node_float(node, "alpha", 1) != 1 || rnl_node_float(node, "beta", 1) != 1)
        return RNL_OK;
    TRY(take_factors(editor, node, rnl_node_int(node, "transB", 0) ? 0 : 1, &a, &b, &taken));
    if (!taken || !take_bias(editor, node, &a, &b, &bias))
        return RNL_OK;
    const uint32_t inputs[] = {a.values,
                               a.scale,
                               a.zero,
                               b.values,
                               b.scale,
                               b.zero,
                               bias,
                               y ? y->scale : RNL_NO_VALUE,
                               y ? y->zero : RNL_NO_VALUE};
    return rnl_editor_replace(editor, index, node, RNL_MICROSOFT, "QGemm", inputs, y ? 9 : 7);
}

/* ---- others ---------------------------------------------------------------------------------------------------- */

static rnl_status replace_two(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    rnl_quantity a, b;
    if (node->input_count != 2 || !take_single(editor, node, 0, &a) || !take_single(editor, node, 1, &b) ||
        a.dtype != b.dtype || a.dtype != y->dtype)
        return RNL_OK;
    const uint32_t inputs[] = {a.values, a.scale, a.zero, b.values, b.scale, b.zero, y->scale, y->zero};
    return rnl_editor_replace(editor, index, node, RNL_MICROSOFT,
                              rnl_node_is(node, "Mul") ? "QLinearMul" : "QLinearAdd", inputs, 8);
}

static rnl_status replace_one(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y,
                              const char *op_type)
{
    rnl_quantity x;
    if (!take_single(editor, node, 0, &x) || x.dtype != y->dtype)
        return RNL_OK;
    return rnl_editor_replace(editor, index, node, RNL_MICROSOFT, op_type,
                              (uint32_t[]){x.values, x.scale, x.zero, y->scale, y->zero}, 5);
}

static rnl_status replace_concat(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    uint32_t inputs[2 + 3 * MOST_CONCAT] = {y->scale, y->zero}, count = 2;
    if (node->input_count > MOST_CONCAT)
        return RNL_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        rnl_quantity x;
        if (!take_single(editor, node, i, &x) || x.dtype != y->dtype)
            return RNL_OK;
        inputs[count++] = x.values;
        inputs[count++] = x.scale;
        inputs[count++] = x.zero;
    }
    return rnl_editor_replace(editor, index, node, RNL_MICROSOFT, "QLinearConcat", inputs, count);
}

/* Moves values and makes none, so that it does the same to the integers. */
static bool only_moves(const rnl_node *node)
{
    static const char *const names[] = {"MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze",      "Unsqueeze",
                                        "Slice",   "Gather",  "Identity",  "Expand",  "DepthToSpace", "SpaceToDepth"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (rnl_node_is(node, names[i]))
            return node->output_count == 1 || node->outputs[1] == RNL_NO_VALUE;
    return false;
}

static rnl_status replace_move(rnl_editor *editor, uint32_t index, const rnl_node *node, const rnl_quantity *y)
{
    rnl_quantity x;
    uint32_t inputs[8];
    const rnl_op_schema *schema = rnl_op_find("", node->op_type, node->opset);
    if (!take_single(editor, node, 0, &x) || !rnl_quantity_equals(&x, y) || node->input_count > 8 || !schema ||
        !(schema->types & RNL_TYPE_BIT(x.dtype)))
        return RNL_OK;
    memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
    inputs[0] = x.values;
    return rnl_editor_replace(editor, index, node, "", node->op_type, inputs, node->input_count);
}

rnl_status rnl_integers_before(rnl_editor *editor, uint32_t index)
{
    const rnl_node *quantize = &editor->graph->nodes[index];
    rnl_quantity y;
    if (!rnl_quantity_made(editor, quantize, &y) || !rnl_quantity_is_single(&y))
        return RNL_OK;
    const rnl_node *node = rnl_editor_own_producer(editor, before_bounds(editor, quantize->inputs[0], &y));
    if (!node)
        return RNL_OK;
    if (rnl_node_is(node, "Conv"))
        return replace_conv(editor, index, node, &y);
    if (rnl_node_is(node, "MatMul"))
        return replace_matmul(editor, index, node, &y);
    if (rnl_node_is(node, "Gemm"))
        return replace_gemm(editor, index, node, &y);
    if (rnl_node_is(node, "Add") || rnl_node_is(node, "Sum") || rnl_node_is(node, "Mul"))
        return replace_two(editor, index, node, &y);
    if (rnl_node_is(node, "GlobalAveragePool"))
        return replace_one(editor, index, node, &y, "QLinearGlobalAveragePool");
    if (rnl_node_is(node, "AveragePool"))
        return replace_one(editor, index, node, &y, "QLinearAveragePool");
    if (rnl_node_is(node, "Sigmoid"))
        return replace_one(editor, index, node, &y, "QLinearSigmoid");
    if (rnl_node_is(node, "LeakyRelu"))
        return replace_one(editor, index, node, &y, "QLinearLeakyRelu");
    if (rnl_node_is(node, "Concat"))
        return replace_concat(editor, index, node, &y);
    return only_moves(node) ? replace_move(editor, index, node, &y) : RNL_OK;
}

rnl_status rnl_integers_product(rnl_editor *editor, uint32_t index)
{
    const rnl_node *node = &editor->graph->nodes[index];
    if (rnl_node_is(node, "MatMul"))
        return replace_matmul(editor, index, node, NULL);
    return rnl_node_is(node, "Gemm") ? replace_gemm(editor, index, node, NULL) : RNL_OK;
}

/* ---- MatMulInteger --------------------------------------------------------------------------------------------- */

/* `value` is MatMulInteger as float32. */
static const rnl_node *product_behind(const rnl_editor *editor, uint32_t value)
{
    const rnl_node *cast = rnl_editor_own_producer(editor, value);
    if (!cast || !rnl_node_is(cast, "Cast") || rnl_node_int(cast, "to", 0) != RNL_F32)
        return NULL;
    const rnl_node *product = rnl_editor_own_producer(editor, cast->inputs[0]);
    return product && rnl_node_is(product, "MatMulInteger") ? product : NULL;
}

/* The scale that a DynamicQuantizeLinear found, which is one number. */
static bool is_found_scale(const rnl_editor *editor, uint32_t value)
{
    const rnl_node *node = rnl_editor_producer(editor, value);
    return node && rnl_node_is(node, "DynamicQuantizeLinear") && node->output_count > 1 && node->outputs[1] == value;
}

/* One number, or one for each of the columns of a constant matrix. */
static bool fits_columns(const rnl_editor *editor, uint32_t value, uint32_t matrix)
{
    const rnl_host_tensor *numbers = rnl_editor_constant(editor, value), *b = rnl_editor_constant(editor, matrix);
    return numbers && numbers->dtype == RNL_F32 && numbers->rank <= 1 &&
           (rnl_tensor_elements(numbers) == 1 || (b && b->rank == 2 && rnl_tensor_elements(numbers) == b->shape[1]));
}

/* Both scales of a Mul(product, Mul(scale of a, scale of b)); NULL when it is no such node. */
static const rnl_node *scaled_product(const rnl_editor *editor, const rnl_node *node, uint32_t *out_scales)
{
    if (!node || !rnl_node_is(node, "Mul"))
        return NULL;
    const uint32_t turned = product_behind(editor, node->inputs[0]) ? 0 : 1;
    const rnl_node *product = product_behind(editor, node->inputs[turned]);
    const rnl_node *scales = rnl_editor_producer(editor, node->inputs[1 - turned]);
    if (!product || !scales || !rnl_node_is(scales, "Mul"))
        return NULL;
    const uint32_t first = is_found_scale(editor, scales->inputs[0]) ? 0 : 1;
    out_scales[0] = scales->inputs[first];
    out_scales[1] = scales->inputs[1 - first];
    const bool fits = is_found_scale(editor, out_scales[0]) && fits_columns(editor, out_scales[1], product->inputs[1]);
    return fits ? product : NULL;
}

static rnl_status replace_scaled(rnl_editor *editor, uint32_t index, const rnl_node *like, const rnl_node *product,
                                 const uint32_t scales[2], uint32_t bias)
{
    const uint32_t inputs[] = {product->inputs[0],
                               product->inputs[1],
                               scales[0],
                               scales[1],
                               product->input_count > 2 ? product->inputs[2] : RNL_NO_VALUE,
                               product->input_count > 3 ? product->inputs[3] : RNL_NO_VALUE,
                               bias};
    return rnl_editor_replace(editor, index, like, RNL_MICROSOFT, "MatMulIntegerToFloat", inputs,
                              bias == RNL_NO_VALUE ? 6 : 7);
}

/* A bias behind it goes along; a Mul that such an Add has taken in is not read any more. */
rnl_status rnl_integers_scaled(rnl_editor *editor, uint32_t index)
{
    const rnl_node *node = &editor->graph->nodes[index];
    uint32_t scales[2];
    const rnl_node *product = scaled_product(editor, node, scales);
    if (product)
        return replace_scaled(editor, index, product, product, scales, RNL_NO_VALUE);
    if (!rnl_node_is(node, "Add"))
        return RNL_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const rnl_node *scaled = rnl_editor_own_producer(editor, node->inputs[i]);
        const uint32_t bias = node->inputs[1 - i];
        const rnl_host_tensor *numbers = rnl_editor_constant(editor, bias);
        if (!scaled || strcmp(scaled->op_type, "MatMulIntegerToFloat") != 0 || scaled->input_count != 6 || !numbers)
            continue;
        const rnl_host_tensor *b = rnl_editor_constant(editor, scaled->inputs[1]);
        if (numbers->dtype != RNL_F32 || numbers->rank != 1 || !b || b->rank != 2 || numbers->shape[0] != b->shape[1])
            continue;
        uint32_t inputs[7];
        memcpy(inputs, scaled->inputs, 6 * sizeof *inputs);
        inputs[6] = bias;
        return rnl_editor_replace(editor, index, scaled, RNL_MICROSOFT, "MatMulIntegerToFloat", inputs, 7);
    }
    return RNL_OK;
}
