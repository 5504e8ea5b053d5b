/* SPDX-License-Identifier: Apache-2.0 */
/* LabelEncoder: keys and values from whichever attributes have them. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"

#define LABELS                                                                                                         \
    (RNL_TYPE_BIT(RNL_I16) | RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64) | RNL_TYPE_BIT(RNL_F32) |                   \
     RNL_TYPE_BIT(RNL_F64))

static rnl_status read_tensor(const rnl_attribute *attribute, rnl_label_list *out_list)
{
    const rnl_host_tensor *tensor = attribute->type == RNL_ATTRIBUTE_TENSOR ? attribute->tensor : NULL;
    if (!tensor || tensor->rank > 1 || !(LABELS & RNL_TYPE_BIT(tensor->dtype)))
        return FAIL(RNL_UNIMPLEMENTED, "attribute '%s' of LabelEncoder is no list of numbers", attribute->name);
    *out_list = (rnl_label_list){tensor->dtype, tensor->size_bytes / rnl_dtype_bytes(tensor->dtype), tensor->data};
    return RNL_OK;
}

/* Of the attributes <what>_int64s, <what>_floats and <what>_tensor. */
static rnl_status read_list(const rnl_node *node, const char *const names[3], rnl_label_list *out_list)
{
    const rnl_attribute *tensor = rnl_node_attribute(node, names[2]);
    size_t count;
    *out_list = (rnl_label_list){0};
    if (tensor)
        return read_tensor(tensor, out_list);
    const int64_t *ints = rnl_node_ints(node, names[0], &count);
    if (count > 0) {
        *out_list = (rnl_label_list){RNL_I64, count, ints};
        return RNL_OK;
    }
    const float *floats = rnl_node_floats(node, names[1], &count);
    if (count == 0)
        return FAIL(RNL_UNIMPLEMENTED, "LabelEncoder has none of %s, %s and %s; strings are not supported", names[0],
                    names[1], names[2]);
    *out_list = (rnl_label_list){RNL_F32, count, floats};
    return RNL_OK;
}

static rnl_status read_absent(const rnl_node *node, rnl_labels *labels)
{
    const rnl_attribute *tensor = rnl_node_attribute(node, "default_tensor");
    rnl_label_list list;
    const bool is_float = (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(labels->values.dtype)) != 0;
    labels->absent.i = rnl_node_int(node, "default_int64", -1);
    if (is_float)
        labels->absent.f = (double)rnl_node_float(node, "default_float", -0.0f);
    if (!tensor)
        return RNL_OK;
    TRY(read_tensor(tensor, &list));
    if (list.count != 1 || list.dtype != labels->values.dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "default_tensor of LabelEncoder is not one %s",
                    rnl_dtype_name(labels->values.dtype));
    labels->absent = rnl_element_load(list.data, 0, list.dtype);
    return RNL_OK;
}

rnl_status rnl_labels_resolve(const rnl_node *node, rnl_labels *out_labels)
{
    static const char *const keys[] = {"keys_int64s", "keys_floats", "keys_tensor"};
    static const char *const values[] = {"values_int64s", "values_floats", "values_tensor"};
    TRY(read_list(node, keys, &out_labels->keys));
    TRY(read_list(node, values, &out_labels->values));
    if (out_labels->keys.count != out_labels->values.count || out_labels->keys.count >= INT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "LabelEncoder has %zu keys and %zu values", out_labels->keys.count,
                    out_labels->values.count);
    return read_absent(node, out_labels);
}

rnl_status rnl_infer_label_encoder(rnl_op_context *context)
{
    rnl_labels labels;
    TRY(rnl_infer_begin(context));
    TRY(rnl_labels_resolve(context->node, &labels));
    if (labels.keys.dtype != context->inputs[0].dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the keys of LabelEncoder are %s, its input %s",
                    rnl_dtype_name(labels.keys.dtype), rnl_dtype_name(context->inputs[0].dtype));
    return rnl_output_like(context, 0, labels.values.dtype);
}
