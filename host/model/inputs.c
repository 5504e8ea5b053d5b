/* SPDX-License-Identifier: Apache-2.0 */
/* Matching a caller's tensors to the graph's inputs. */
#include "base/memory.h"
#include "base/text.h"
#include "model/evaluate.h"
#include "model/model.h"

#include <string.h>

static rnl_status fail_unknown(const rnl_value_info *infos, size_t count, const char *kind, const char *name)
{
    rnl_text names = {0};
    for (size_t i = 0; i < count && i < 8; i++)
        rnl_text_add(&names, "%s'%s'", i ? ", " : "", infos[i].name);
    rnl_status status = FAIL(RNL_INVALID_ARGUMENT, "the model has no %s '%s'; its %ss are %s", kind, name, kind,
                             names.data ? names.data : "none");
    rnl_text_free(&names);
    return status;
}

rnl_status rnl_tensor_find(const rnl_value_info *infos, size_t count, const char *kind, const rnl_tensor *tensor,
                           size_t *out_index)
{
    *out_index = 0;
    if (!tensor->name && count == 1)
        return RNL_OK;
    if (!tensor->name)
        return FAIL(RNL_INVALID_ARGUMENT, "an %s has no name; the model has %zu", kind, count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(infos[i].name, tensor->name) == 0) {
            *out_index = i;
            return RNL_OK;
        }
    return fail_unknown(infos, count, kind, tensor->name);
}

static rnl_status fail_shape(const rnl_value_info *info, const rnl_tensor *tensor)
{
    rnl_text text = {0};
    rnl_text_add(&text, "input '%s' has shape ", info->name);
    rnl_text_add_shape(&text, tensor->shape, tensor->rank);
    rnl_text_add(&text, "; the model expects ");
    rnl_text_add_shape(&text, info->shape, info->rank);
    rnl_status status = FAIL(RNL_INVALID_ARGUMENT, "%s", text.data ? text.data : "input has a wrong shape");
    rnl_text_free(&text);
    return status;
}

static rnl_status check_shape(const rnl_value_info *info, const rnl_tensor *tensor)
{
    if (tensor->rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has %zu dimensions; at most %d are possible", info->name,
                    tensor->rank, RNL_MAX_RANK);
    for (size_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has a negative dimension", info->name);
    if (info->rank == SIZE_MAX)
        return RNL_OK;
    if (tensor->rank != info->rank)
        return fail_shape(info, tensor);
    for (size_t i = 0; i < info->rank; i++)
        if (info->shape[i] >= 0 && info->shape[i] != tensor->shape[i])
            return fail_shape(info, tensor);
    return RNL_OK;
}

static rnl_status check_size(const rnl_value_info *info, const rnl_tensor *tensor)
{
    int64_t elements;
    size_t bytes;
    if (!rnl_shape_elements(tensor->shape, tensor->rank, &elements) ||
        !rnl_size_mul((size_t)elements, rnl_dtype_bytes(tensor->dtype), &bytes))
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is too large to address", info->name);
    if (bytes > 0 && !tensor->data && !tensor->buffer)
        return RNL_OK; /* planning ahead needs no contents; a run refuses it later */
    if (tensor->size_bytes < bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' needs %zu bytes, %zu were given", info->name, bytes,
                    tensor->size_bytes);
    if (tensor->buffer && (tensor->offset_bytes > rnl_buffer_size(tensor->buffer) ||
                           rnl_buffer_size(tensor->buffer) - tensor->offset_bytes < bytes))
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' reaches past the end of its buffer", info->name);
    return RNL_OK;
}

static rnl_status describe(const rnl_model *model, size_t index, const rnl_tensor *tensor, rnl_tensor_desc *out_desc)
{
    const rnl_value_info *info = &model->graph->inputs[index];
    if (tensor->dtype != info->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is %s; the model expects %s", info->name,
                    rnl_dtype_name(tensor->dtype), rnl_dtype_name(info->dtype));
    TRY(check_shape(info, tensor));
    TRY(check_size(info, tensor));
    *out_desc = (rnl_tensor_desc){.dtype = tensor->dtype, .rank = tensor->rank};
    memcpy(out_desc->shape, tensor->shape, tensor->rank * sizeof *tensor->shape);
    bool contents = model->reads_contents[model->graph->input_values[index]];
    if (!contents || rnl_desc_elements(out_desc) > RNL_HOST_MAX_ELEMENTS)
        return RNL_OK;
    if (!tensor->data && tensor->buffer)
        return RNL_OK; /* a run reads it back when a plan ends for want of it */
    if (!tensor->data && rnl_desc_elements(out_desc) > 0)
        return FAIL(RNL_FAILED_PRECONDITION, "shapes depend on the contents of input '%s': give it", info->name);
    out_desc->host = tensor->data;
    return RNL_OK;
}

rnl_status rnl_model_match_inputs(const rnl_model *model, const rnl_tensor *tensors, size_t count,
                                  const rnl_tensor **out_order, rnl_tensor_desc *out_descs)
{
    const rnl_graph *graph = model->graph;
    memset(out_order, 0, graph->input_count * sizeof *out_order);
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        TRY(rnl_tensor_find(graph->inputs, graph->input_count, "input", &tensors[i], &index));
        if (out_order[index])
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' was given twice", graph->inputs[index].name);
        out_order[index] = &tensors[i];
    }
    for (size_t i = 0; i < graph->input_count; i++) {
        if (!out_order[i])
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is missing", graph->inputs[i].name);
        TRY(describe(model, i, out_order[i], &out_descs[i]));
    }
    return RNL_OK;
}
