/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: known to the operator, and of the type that ONNX gives them. */
#include "graph/check.h"

#include <string.h>

static const char *type_name(rnl_attribute_type type)
{
    static const char *const names[] = {
        "of no type", "a float", "an int", "a string",        "a tensor",       "a graph", "floats", "ints",
        "strings",    "tensors", "graphs", "a sparse tensor", "sparse tensors", "a type",  "types",
    };
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "of an unknown type";
}

/* ONNX uses an attribute's name with one type in all operators, but for Pad's value before opset 11. */
static bool type_fits(const rnl_node *node, const rnl_attribute *attribute)
{
    static const struct {
        rnl_attribute_type type;
        const char *names;
    } rules[] = {
        {RNL_ATTRIBUTE_FLOAT, " alpha beta gamma lambd bias epsilon momentum ratio min max cubic_coeff_a "
                              "extrapolation_value mean scale low high clip softcap spatial_scale "},
        {RNL_ATTRIBUTE_INT, " axis to keepdims noop_with_empty_axes select_last_index transA transB group ceil_mode "
                            "count_include_pad storage_order allowzero batch_axis time_axis exclusive reverse size k "
                            "largest sorted fmod upper blocksize start end num_outputs batch_dims antialias "
                            "exclude_outside saturate dtype stash_type training_mode spatial p num_groups is_test "
                            "is_causal kv_num_heads q_num_heads num_heads qk_matmul_output_mode softmax_precision "
                            "left_window_size right_window_size interleaved rotary_embedding_dim hidden_size "
                            "linear_before_reset detect_negative detect_positive "
                            "num_scan_inputs center_point_box sorted layout input_forget ignore_index "},
        {RNL_ATTRIBUTE_INT, " align_corners inverse onesided periodic output_datatype output_height output_width "
                            "sampling_ratio offset_group "},
        {RNL_ATTRIBUTE_STRING, " auto_pad mode nearest_mode coordinate_transformation_mode keep_aspect_ratio_policy "
                               "direction equation approximate reduction padding_mode "},
        {RNL_ATTRIBUTE_FLOATS, " scales activation_alpha activation_beta value_floats "},
        {RNL_ATTRIBUTE_INTS, " axes perm pads kernel_shape strides dilations output_padding output_shape split starts "
                             "ends shape consumed_inputs value_ints scan_input_axes scan_output_axes directions "
                             "scan_input_directions scan_output_directions pooled_shape "},
        {RNL_ATTRIBUTE_GRAPH, " body then_branch else_branch "},
        {RNL_ATTRIBUTE_STRINGS, " activations "},
    };
    const bool is_plain = attribute->type >= RNL_ATTRIBUTE_FLOAT && attribute->type <= RNL_ATTRIBUTE_STRINGS &&
                          attribute->type != RNL_ATTRIBUTE_GRAPH;
    if (node->schema->custom)
        return is_plain;
    if (strcmp(attribute->name, "value") == 0)
        return attribute->type == (strcmp(node->op_type, "Pad") == 0 ? RNL_ATTRIBUTE_FLOAT : RNL_ATTRIBUTE_TENSOR);
    if (strcmp(node->op_type, "Scaler") == 0)
        return attribute->type == RNL_ATTRIBUTE_FLOATS;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rnl_check_word(rules[i].names, attribute->name))
            return attribute->type == rules[i].type;
    return is_plain;
}

bool rnl_check_attributes(const rnl_node *node, rnl_text *reason)
{
    for (size_t i = 0; i < node->attribute_count; i++) {
        const rnl_attribute *attribute = &node->attributes[i];
        const bool is_known = node->schema->custom ||
                              (node->schema->attributes && rnl_check_word(node->schema->attributes, attribute->name));
        if (!is_known) {
            if (reason)
                rnl_text_add(reason, "its attribute '%s' is not supported", attribute->name);
            return true;
        }
        if (!type_fits(node, attribute)) {
            if (reason)
                rnl_text_add(reason, "its attribute '%s' is %s", attribute->name, type_name(attribute->type));
            return true;
        }
        if (attribute->type == RNL_ATTRIBUTE_TENSOR && rnl_dtype_bytes(attribute->tensor->dtype) == 0) {
            if (reason)
                rnl_text_add(reason, "its attribute '%s' is a tensor of type %s", attribute->name,
                             rnl_check_type_name(attribute->tensor->dtype));
            return true;
        }
    }
    return false;
}
