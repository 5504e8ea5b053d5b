/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/host_element.h"
#include <stdio.h>
#include <string.h>

rnl_shape_words rnl_shape_format(const int64_t *shape, size_t rank)
{
    rnl_shape_words words = {"scalar"};
    size_t length = 0;
    for (size_t i = 0; i < rank && length < sizeof words.text - 24; i++)
        length +=
            (size_t)snprintf(words.text + length, sizeof words.text - length, i ? "x%" PRId64 : "%" PRId64, shape[i]);
    return words;
}

int64_t rnl_desc_elements(const rnl_tensor_desc *desc)
{
    int64_t count;
    return rnl_shape_elements(desc->shape, desc->rank, &count) ? count : INT64_MAX;
}

bool rnl_desc_known(const rnl_tensor_desc *desc)
{
    return desc->host || rnl_desc_elements(desc) == 0;
}

static rnl_status check_counts(const rnl_op_context *context)
{
    const rnl_op_schema *schema = context->node->schema;
    if (context->input_count < schema->min_inputs || context->input_count > schema->max_inputs)
        return FAIL(RNL_INVALID_ARGUMENT, "%s cannot have %zu inputs", schema->op_type, context->input_count);
    if (context->output_count < schema->min_outputs || context->output_count > schema->max_outputs)
        return FAIL(RNL_INVALID_ARGUMENT, "%s cannot have %zu outputs", schema->op_type, context->output_count);
    return RNL_OK;
}

static rnl_status check_input(const rnl_op_context *context, size_t index)
{
    const rnl_op_schema *schema = context->node->schema;
    const rnl_tensor_desc *input = &context->inputs[index];
    if (input->dtype == RNL_DTYPE_NONE) {
        if (index < schema->min_inputs || schema->max_inputs == UINT32_MAX)
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s is missing", index, schema->op_type);
        return RNL_OK;
    }
    if (rnl_dtype_bytes(input->dtype) == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has an unknown type", index, schema->op_type);
    if (input->rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has rank %zu; the most is %d", index, schema->op_type,
                    input->rank, RNL_MAX_RANK);
    int64_t count;
    if (!rnl_shape_elements(input->shape, input->rank, &count))
        return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has the impossible shape %s", index, schema->op_type,
                    rnl_shape_format(input->shape, input->rank).text);
    return RNL_OK;
}

rnl_status rnl_infer_begin(rnl_op_context *context)
{
    for (size_t i = 0; i < context->output_count; i++)
        context->outputs[i] = (rnl_tensor_desc){.dtype = RNL_DTYPE_NONE};
    TRY(check_counts(context));
    for (size_t i = 0; i < context->input_count; i++)
        TRY(check_input(context, i));
    const rnl_op_schema *schema = context->node->schema;
    return schema->types ? rnl_check_dtype(context, 0, schema->types) : RNL_OK;
}

rnl_status rnl_output_set(rnl_op_context *context, size_t index, rnl_dtype dtype, const int64_t *shape, size_t rank)
{
    int64_t count;
    if (rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "the output of %s has rank %zu; the most is %d", context->node->op_type, rank,
                    RNL_MAX_RANK);
    if (!rnl_shape_elements(shape, rank, &count))
        return FAIL(RNL_INVALID_ARGUMENT, "the output of %s has the impossible shape %s", context->node->op_type,
                    rnl_shape_format(shape, rank).text);
    if (index >= context->output_count)
        return RNL_OK;
    rnl_tensor_desc *output = &context->outputs[index];
    *output = (rnl_tensor_desc){.dtype = dtype, .rank = rank};
    for (size_t i = 0; i < rank; i++)
        output->shape[i] = shape[i];
    return RNL_OK;
}

rnl_status rnl_output_like(rnl_op_context *context, size_t index, rnl_dtype dtype)
{
    return rnl_output_set(context, index, dtype, context->inputs[0].shape, context->inputs[0].rank);
}

rnl_status rnl_same_dtype(const rnl_op_context *context, size_t first, size_t last)
{
    for (size_t i = first + 1; i <= last && i < context->input_count; i++)
        if (rnl_input_exists(context, i) && context->inputs[i].dtype != context->inputs[first].dtype)
            return FAIL(RNL_INVALID_ARGUMENT, "inputs %zu and %zu of %s have different types, %s and %s", first, i,
                        context->node->op_type, rnl_dtype_name(context->inputs[first].dtype),
                        rnl_dtype_name(context->inputs[i].dtype));
    return RNL_OK;
}

rnl_status rnl_check_dtype(const rnl_op_context *context, size_t index, uint32_t types)
{
    if (!rnl_input_exists(context, index) || (types & RNL_TYPE_BIT(context->inputs[index].dtype)))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s of opset %" PRId64 " does not take %s as input %zu", context->node->op_type,
                context->node->opset, rnl_dtype_name(context->inputs[index].dtype), index);
}

rnl_status rnl_check_vector(const rnl_op_context *context, size_t index, int64_t size)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (!rnl_input_exists(context, index) || (input->rank == 1 && input->shape[0] == size))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s where %" PRId64 " is needed", index,
                context->node->op_type, rnl_shape_format(input->shape, input->rank).text, size);
}

rnl_status rnl_check_broadcast_to(const rnl_op_context *context, size_t index, const int64_t *shape, size_t rank)
{
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    const rnl_tensor_desc *input = &context->inputs[index];
    bool fits = input->rank <= rank;
    for (size_t i = 0; fits && i < input->rank; i++)
        fits = input->shape[i] == 1 || input->shape[i] == shape[rank - input->rank + i];
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s, which does not broadcast to %s", index,
                context->node->op_type, rnl_shape_format(input->shape, input->rank).text,
                rnl_shape_format(shape, rank).text);
}

rnl_status rnl_axes_bits(const int64_t *axes, size_t count, size_t rank, uint32_t *out_bits)
{
    *out_bits = 0;
    for (size_t i = 0; i < count; i++) {
        size_t axis;
        TRY(rnl_axis_resolve(axes[i], rank, "axes", &axis));
        if (*out_bits & (1u << axis))
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu is named twice", axis);
        *out_bits |= 1u << axis;
    }
    return RNL_OK;
}

rnl_status rnl_require_int(const rnl_node *node, const char *name, int64_t *out_value)
{
    *out_value = 0;
    const rnl_attribute *attribute = rnl_node_attribute(node, name);
    if (!attribute || attribute->type != RNL_ATTRIBUTE_INT)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs the integer attribute '%s'", node->op_type, name);
    *out_value = attribute->i;
    return RNL_OK;
}

rnl_status rnl_choose(const rnl_node *node, const char *name, const char *const *choices, size_t count, int *out_choice)
{
    const char *value = rnl_node_string(node, name, choices[0]);
    for (size_t i = 0; i < count; i++) {
        *out_choice = (int)i;
        if (strcmp(value, choices[i]) == 0)
            return RNL_OK;
    }
    *out_choice = 0;
    return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of %s of opset %" PRId64 " cannot be '%.64s'", name,
                node->op_type, node->opset, value);
}

rnl_status rnl_desc_floats(const rnl_tensor_desc *desc, const char *what, float *out_values, size_t capacity,
                           size_t *out_count)
{
    *out_count = 0;
    int64_t count = rnl_desc_elements(desc);
    if (!(RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(desc->dtype)) || desc->rank > 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s must be floats in one dimension, not %s of shape %s", what,
                    rnl_dtype_name(desc->dtype), rnl_shape_format(desc->shape, desc->rank).text);
    if (count > (int64_t)capacity)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has %" PRId64 " elements; %zu at most make sense", what, count, capacity);
    if (!rnl_desc_known(desc))
        return FAIL(RNL_FAILED_PRECONDITION, "the contents of %s are not known while planning", what);
    for (int64_t i = 0; i < count; i++)
        out_values[i] = (float)rnl_element_load(desc->host, i, desc->dtype).f;
    *out_count = (size_t)count;
    return RNL_OK;
}
