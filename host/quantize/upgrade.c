/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of opset 9 to 12 as opset 13 has them, the first that has a scale for each channel: attributes that have become
 * inputs, and what has another meaning.
 */
#include "quantize/edit.h"

#include "graph/op.h"
#include <stdio.h>
#include <string.h>

/* The attribute is the input at `position` from opset `since` on; position 0: it is gone. */
static const struct row {
    const char *op_type, *attribute;
    int64_t since;
    uint32_t position;
} rows[] = {{"Squeeze", "axes", 13, 1}, {"Unsqueeze", "axes", 13, 1}, {"ReduceSum", "axes", 13, 1},
            {"Split", "split", 13, 1},  {"Clip", "min", 11, 1},       {"Clip", "max", 11, 2},
            {"Slice", "starts", 10, 1}, {"Slice", "ends", 10, 2},     {"Slice", "axes", 10, 3},
            {"Pad", "pads", 11, 1},     {"Pad", "value", 11, 2},      {"TopK", "k", 10, 1},
            {"Dropout", "ratio", 12, 0}};
#define ROWS (sizeof rows / sizeof *rows)

static bool applies(const rnl_quantizer *q, const rnl_edit_node *node, const struct row *row)
{
    return q->opset < row->since && rnl_edit_is(node, row->op_type);
}

static bool is_softmax(const rnl_edit_node *node)
{
    return rnl_edit_is(node, "Softmax") || rnl_edit_is(node, "LogSoftmax") || rnl_edit_is(node, "Hardmax");
}

bool rnl_edit_needs_rank(const rnl_quantizer *q, const rnl_edit_node *node)
{
    return q->opset < RNL_QUANTIZE_OPSET && is_softmax(node) && node->typed &&
           rnl_node_int(node->typed, "axis", 1) != -1;
}

/* Before opset 13 it goes over all dimensions from the axis on, then over that one. */
static bool is_over_last(const rnl_quantizer *q, const rnl_edit_node *node)
{
    const int64_t axis = rnl_node_int(node->typed, "axis", 1);
    const size_t rank = q->values[node->inputs[0]].rank;
    return axis == -1 || (rank != SIZE_MAX && axis == (int64_t)rank - 1);
}

static bool has_graph(const rnl_edit_node *node)
{
    return rnl_edit_is(node, "If") || rnl_edit_is(node, "Loop") || rnl_edit_is(node, "Scan");
}

const char *rnl_edit_obstacle(const rnl_quantizer *q, const rnl_edit_node *node)
{
    if (q->opset >= RNL_QUANTIZE_OPSET || node->is_gone)
        return NULL;
    if (has_graph(node))
        return "holds a graph of its own";
    if (rnl_edit_is(node, "Upsample") || rnl_edit_is(node, "Scatter"))
        return "has gone since";
    if (rnl_edit_is(node, "Resize") &&
        (q->opset < 11 || (node->typed && strcmp(rnl_node_string(node->typed, "coordinate_transformation_mode", ""),
                                                 "tf_half_pixel_for_nn") == 0)))
        return "has another meaning there";
    if (is_softmax(node) && (!node->typed || !is_over_last(q, node)))
        return "has another meaning there, unless it goes over the last dimension";
    for (size_t i = 0; i < ROWS; i++)
        if (applies(q, node, &rows[i]) && !node->typed)
            return "could not be read";
    return NULL;
}

bool rnl_edit_drops(const rnl_quantizer *q, const rnl_edit_node *node, const char *attribute)
{
    for (size_t i = 0; i < ROWS; i++)
        if (applies(q, node, &rows[i]) && strcmp(rows[i].attribute, attribute) == 0)
            return true;
    return is_softmax(node) && q->opset < RNL_QUANTIZE_OPSET && strcmp(attribute, "axis") == 0;
}

/* The attribute's numbers as a tensor; false when there are none. */
static bool add_tensor(const rnl_edit_node *node, const struct row *row, const char *name, rnl_text *tensors)
{
    const rnl_attribute *attribute = rnl_node_attribute(node->typed, row->attribute);
    if (!attribute)
        return false;
    const int64_t count = (int64_t)attribute->count;
    if (attribute->type == RNL_ATTRIBUTE_FLOAT)
        rnl_edit_tensor(tensors, name, RNL_F32, NULL, 0, &attribute->f, sizeof attribute->f);
    else if (attribute->type == RNL_ATTRIBUTE_INT)
        rnl_edit_tensor(tensors, name, RNL_I64, (int64_t[]){1}, 1, &attribute->i, sizeof attribute->i);
    else
        rnl_edit_tensor(tensors, name, RNL_I64, &count, 1, attribute->ints, attribute->count * sizeof(int64_t));
    return true;
}

void rnl_edit_add_inputs(const rnl_quantizer *q, const rnl_edit_node *node, rnl_text *inputs, rnl_text *tensors)
{
    uint32_t there = node->input_count;
    for (size_t i = 0; i < ROWS; i++) {
        rnl_text name = {0};
        if (!applies(q, node, &rows[i]) || rows[i].position == 0)
            continue;
        rnl_edit_name(q, node->outputs[0], "_", &name);
        rnl_text_add(&name, "%s", rows[i].attribute);
        if (name.status == RNL_OK && add_tensor(node, &rows[i], name.data, tensors)) {
            for (; there < rows[i].position; there++)
                rnl_wire_text(inputs, RNL_PB_NODE_INPUT, "");
            rnl_wire_text(inputs, RNL_PB_NODE_INPUT, name.data);
            there++;
        }
        if (inputs->status == RNL_OK)
            inputs->status = name.status;
        rnl_text_free(&name);
    }
}
