/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the caller's functions, and what is checked of their answers. */
#include "graph/custom.h"

#include "graph/op_common.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local rnl_custom_frame *innermost;

void rnl_custom_enter(rnl_custom_frame *frame, const rnl_op_context *context, const char *callback)
{
    const rnl_custom_entry *entry = context->node->schema->custom;
    *frame = (rnl_custom_frame){.outer = innermost, .entry = entry, .callback = callback};
    const int length = snprintf(frame->place, sizeof frame->place, " in the %s callback of operator %s, node '%s'\n",
                                callback, entry->name, context->node->name);
    frame->length = length < 0 ? 0 : (size_t)length < sizeof frame->place ? (size_t)length : sizeof frame->place - 1;
    innermost = frame;
    rnl_custom_watch_signals(frame);
}

rnl_status rnl_custom_leave(rnl_custom_frame *frame, rnl_status status)
{
    innermost = frame->outer;
    rnl_custom_unwatch_signals(frame);
    if (status == RNL_OK)
        return RNL_OK;
    if (frame->has_reason)
        status = rnl_last_error()->status;
    else if ((unsigned)status >= RNL_STATUS_COUNT)
        status = FAIL(RNL_INTERNAL, "it returned %d, which is no status", (int)status);
    else
        status = FAIL(status, "it returned %s and gave no reason", rnl_status_name(status));
    return rnl_error_add(rnl_error_blame_caller(status), "the %s callback of operator %s", frame->callback,
                         frame->entry->name);
}

rnl_status rnl_custom_reason(rnl_status status)
{
    if (status != RNL_OK && innermost)
        innermost->has_reason = true;
    return status;
}

rnl_status rnl_custom_fail(rnl_status status, const char *format, ...)
{
    char text[RNL_ERROR_MESSAGE_BYTES / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (status == RNL_OK || (unsigned)status >= RNL_STATUS_COUNT)
        status = RNL_INTERNAL;
    return rnl_custom_reason(FAIL(status, "%s", text));
}

rnl_custom_call rnl_custom_describe(const rnl_op_context *context)
{
    const rnl_custom_entry *entry = context->node->schema->custom;
    return (rnl_custom_call){.node = context->node,
                             .domain = entry->domain,
                             .op_type = entry->op_type,
                             .name = context->node->name,
                             .version = context->node->opset,
                             .inputs = context->inputs,
                             .input_count = context->input_count,
                             .output_count = context->output_count,
                             .user = entry->op.user};
}

/* ---- Infer ---------------------------------------------------------------------------------------------------- */

static rnl_status check_output(rnl_tensor_desc *output, size_t index)
{
    int64_t elements;
    size_t bytes;
    output->host = NULL;
    if (rnl_dtype_bytes(output->dtype) == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "it gave output %zu the unknown type %d", index, (int)output->dtype);
    if (output->rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "it gave output %zu %zu dimensions; the most is %d", index, output->rank,
                    RNL_MAX_RANK);
    if (!rnl_shape_elements(output->shape, output->rank, &elements) ||
        !rnl_size_mul((size_t)elements, rnl_dtype_bytes(output->dtype), &bytes) || bytes > PTRDIFF_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "it gave output %zu the impossible shape %s", index,
                    rnl_shape_format(output->shape, output->rank).text);
    return RNL_OK;
}

static rnl_status check_outputs(const rnl_op_context *context)
{
    for (size_t i = 0; i < context->output_count; i++)
        TRY(check_output(&context->outputs[i], i));
    return RNL_OK;
}

static rnl_status check_contents(const rnl_op_context *context)
{
    const uint32_t wanted = context->node->schema->shape_inputs;
    for (size_t i = 0; i < context->input_count && i < 32; i++)
        if ((wanted >> i & 1) && rnl_input_exists(context, i) && !rnl_desc_known(&context->inputs[i]))
            return FAIL(RNL_FAILED_PRECONDITION, "the contents of input %zu are not known yet", i);
    return RNL_OK;
}

rnl_status rnl_custom_infer(rnl_op_context *context)
{
    const rnl_custom_entry *entry = context->node->schema->custom;
    const rnl_custom_call call = rnl_custom_describe(context);
    rnl_custom_frame frame;
    TRY(check_contents(context));
    memset(context->outputs, 0, context->output_count * sizeof *context->outputs);
    rnl_custom_enter(&frame, context, "infer");
    TRY(rnl_custom_leave(&frame, entry->op.infer(&call, context->outputs)));
    const rnl_status status = check_outputs(context);
    return status == RNL_OK ? RNL_OK : rnl_error_add(status, "the infer callback of operator %s", entry->name);
}

/* ---- Compute -------------------------------------------------------------------------------------------------- */

rnl_status rnl_custom_compute(rnl_op_context *context)
{
    const rnl_custom_entry *entry = context->node->schema->custom;
    const rnl_custom_call call = rnl_custom_describe(context);
    rnl_custom_frame frame;
    rnl_custom_enter(&frame, context, "compute");
    return rnl_custom_leave(&frame, entry->op.compute(&call, context->outputs, context->results));
}

/* ---- Declared ------------------------------------------------------------------------------------------------- */

static bool fits(const rnl_value_info *declared, const rnl_tensor_desc *output)
{
    if (declared->dtype != RNL_DTYPE_NONE && declared->dtype != output->dtype)
        return false;
    if (declared->rank == SIZE_MAX)
        return true;
    bool same = declared->rank == output->rank;
    for (size_t i = 0; i < output->rank && same; i++)
        same = declared->shape[i] < 0 || declared->shape[i] == output->shape[i];
    return same;
}

static rnl_status check_value(const rnl_graph *graph, const rnl_op_context *context, size_t index)
{
    const rnl_tensor_desc *output = &context->outputs[index];
    for (size_t i = 0; i < graph->output_count; i++) {
        const rnl_value_info *declared = &graph->outputs[i];
        if (graph->output_values[i] != context->node->outputs[index] || fits(declared, output))
            continue;
        rnl_shape_words wants = {"of any shape"};
        if (declared->rank <= RNL_MAX_RANK)
            wants = rnl_shape_format(declared->shape, declared->rank);
        return FAIL(RNL_INVALID_ARGUMENT, "it gave output %zu ('%s') as %s %s, and the file declares %s %s", index,
                    declared->name, rnl_dtype_name(output->dtype), rnl_shape_format(output->shape, output->rank).text,
                    declared->dtype ? rnl_dtype_name(declared->dtype) : "any type", wants.text);
    }
    return RNL_OK;
}

rnl_status rnl_custom_check_declared(const rnl_graph *graph, const rnl_op_context *context)
{
    const rnl_node *node = context->node;
    if (!node->schema->custom)
        return RNL_OK;
    for (size_t i = 0; i < context->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE)
            TRY(check_value(graph, context, i), "the infer callback of operator %s", node->schema->custom->name);
    return RNL_OK;
}
