/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, for callbacks. */
#include "graph/custom.h"

#include <string.h>

rnl_custom_attribute rnl_custom_attribute_type(const rnl_custom_call *call, const char *name)
{
    const rnl_attribute *attribute = rnl_node_attribute(call->node, name);
    if (!attribute)
        return RNL_CUSTOM_ABSENT;
    switch (attribute->type) {
    case RNL_ATTRIBUTE_FLOAT:
        return RNL_CUSTOM_FLOAT;
    case RNL_ATTRIBUTE_INT:
        return RNL_CUSTOM_INT;
    case RNL_ATTRIBUTE_STRING:
        return RNL_CUSTOM_STRING;
    case RNL_ATTRIBUTE_TENSOR:
        return RNL_CUSTOM_TENSOR;
    case RNL_ATTRIBUTE_FLOATS:
        return RNL_CUSTOM_FLOATS;
    case RNL_ATTRIBUTE_INTS:
        return RNL_CUSTOM_INTS;
    case RNL_ATTRIBUTE_STRINGS:
        return RNL_CUSTOM_STRINGS;
    case RNL_ATTRIBUTE_GRAPH:
        break;
    }
    return RNL_CUSTOM_ABSENT;
}

const char *rnl_custom_attribute_name(const rnl_custom_call *call, size_t index)
{
    return index < call->node->attribute_count ? call->node->attributes[index].name : NULL;
}

int64_t rnl_custom_int(const rnl_custom_call *call, const char *name, int64_t absent)
{
    return rnl_node_int(call->node, name, absent);
}

float rnl_custom_float(const rnl_custom_call *call, const char *name, float absent)
{
    return rnl_node_float(call->node, name, absent);
}

const char *rnl_custom_string(const rnl_custom_call *call, const char *name, const char *absent)
{
    return rnl_node_string(call->node, name, absent);
}

const int64_t *rnl_custom_ints(const rnl_custom_call *call, const char *name, size_t *out_count)
{
    return rnl_node_ints(call->node, name, out_count);
}

const float *rnl_custom_floats(const rnl_custom_call *call, const char *name, size_t *out_count)
{
    return rnl_node_floats(call->node, name, out_count);
}

const char *const *rnl_custom_strings(const rnl_custom_call *call, const char *name, size_t *out_count)
{
    const rnl_attribute *attribute = rnl_node_attribute(call->node, name);
    const bool found = attribute && attribute->type == RNL_ATTRIBUTE_STRINGS;
    *out_count = found ? attribute->count : 0;
    return found ? attribute->strings : NULL;
}

bool rnl_custom_tensor(const rnl_custom_call *call, const char *name, rnl_tensor_desc *out_tensor)
{
    const rnl_attribute *attribute = rnl_node_attribute(call->node, name);
    *out_tensor = (rnl_tensor_desc){.dtype = RNL_DTYPE_NONE};
    if (!attribute || attribute->type != RNL_ATTRIBUTE_TENSOR)
        return false;
    out_tensor->dtype = attribute->tensor->dtype;
    out_tensor->rank = attribute->tensor->rank;
    memcpy(out_tensor->shape, attribute->tensor->shape, sizeof out_tensor->shape);
    out_tensor->host = attribute->tensor->data;
    return true;
}
