/* SPDX-License-Identifier: Apache-2.0 */
/* Where, Clip, Dropout. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <float.h>
#include <string.h>

rnl_status rnl_evaluate_where(rnl_op_context *context)
{
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *inputs = context->inputs, *output = &context->outputs[0];
    size_t bytes = rnl_dtype_bytes(output->dtype);
    char *result = context->results[0];
    rnl_walk_init(&walk, output->shape, output->rank);
    for (size_t i = 0; i < 3; i++)
        rnl_walk_add(&walk, inputs[i].shape, inputs[i].rank);
    for (; walk.left > 0; rnl_walk_next(&walk), result += bytes) {
        size_t from = rnl_element_load(inputs[0].host, walk.at[0], RNL_BOOL).u ? 1 : 2;
        memcpy(result, (const char *)inputs[from].host + (size_t)walk.at[from] * bytes, bytes);
    }
    return RNL_OK;
}

/* The input, else the attribute of opset 6, else the type's own bound. */
static rnl_number clip_bound(const rnl_op_context *context, size_t index, const char *name)
{
    rnl_dtype dtype = context->inputs[0].dtype;
    if (rnl_input_exists(context, index))
        return rnl_element_load(context->inputs[index].host, 0, dtype);
    if (rnl_node_attribute(context->node, name))
        return (rnl_number){.f = (double)rnl_node_float(context->node, name, 0)};
    return index == 1 ? rnl_number_lowest(dtype) : rnl_number_highest(dtype);
}

/* min(high, max(low, x)); the high bound wins where they cross. */
static rnl_number clip(rnl_number x, rnl_number low, rnl_number high, rnl_number_kind kind)
{
    switch (kind) {
    case RNL_NUMBER_FLOAT:
        x.f = rnl_float_min(rnl_float_max(x.f, low.f), high.f);
        break;
    case RNL_NUMBER_SIGNED:
        x.i = x.i < low.i ? low.i : x.i;
        x.i = x.i > high.i ? high.i : x.i;
        break;
    case RNL_NUMBER_UNSIGNED:
        x.u = x.u < low.u ? low.u : x.u;
        x.u = x.u > high.u ? high.u : x.u;
        break;
    }
    return x;
}

rnl_status rnl_evaluate_clip(rnl_op_context *context)
{
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    rnl_number low = clip_bound(context, 1, "min"), high = clip_bound(context, 2, "max");
    for (int64_t i = 0, count = rnl_desc_elements(input); i < count; i++) {
        rnl_number x = rnl_element_load(input->host, i, input->dtype);
        rnl_element_store(context->results[0], i, input->dtype, clip(x, low, high, rnl_dtype_kind(input->dtype)));
    }
    return RNL_OK;
}

rnl_status rnl_evaluate_dropout(rnl_op_context *context)
{
    TRY(rnl_evaluate_copy(context));
    if (context->output_count < 2)
        return RNL_OK;
    const rnl_tensor_desc *mask = &context->outputs[1];
    rnl_number one = rnl_number_convert((rnl_number){.u = 1}, RNL_BOOL, mask->dtype);
    for (int64_t i = 0, count = rnl_desc_elements(mask); context->results[1] && i < count; i++)
        rnl_element_store(context->results[1], i, mask->dtype, one);
    return RNL_OK;
}
