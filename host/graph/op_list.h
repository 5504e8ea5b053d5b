/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables of operators share: one file op_list_<domain>.c a domain, op_list.c for ai.onnx. */
#ifndef RUNNEL_GRAPH_OP_LIST_H
#define RUNNEL_GRAPH_OP_LIST_H

#include "graph/op_rows.h"

typedef struct rnl_op_domain {
    const char *name;
    const rnl_op_schema *const *rows; /* sorted by name, then by opset */
    size_t count;
} rnl_op_domain;

extern const rnl_op_domain rnl_op_domain_onnx, rnl_op_domain_microsoft, rnl_op_domain_ml, rnl_op_domain_preview;

#define BIT(type) RNL_TYPE_BIT(RNL_##type)
#define FLOATS RNL_TYPES_FLOAT_64
#define WIDE (BIT(I32) | BIT(I64) | BIT(U32) | BIT(U64))
#define NUMBERS RNL_TYPES_NUMERIC
#define BYTES (BIT(I8) | BIT(U8))
#define INTEGERS (RNL_TYPES_SIGNED | RNL_TYPES_UNSIGNED)
#define BOOLS BIT(BOOL)
#define ANY RNL_TYPES_ALL
#define EVERY RNL_TYPES_EVERY /* of operators that only move elements */
#define QUANTIZED RNL_TYPES_QUANTIZED
#define INPUT(index) (1u << (index))
#define MANY UINT32_MAX

/* Attributes that several rows share. */
#define WINDOW " auto_pad kernel_shape pads strides "
#define AXES_13 " axes keepdims "
#define AXES_18 " keepdims noop_with_empty_axes "
#define RECURRENT " activation_alpha activation_beta activations clip direction hidden_size "
#define TABLE " output_datatype "
#define ROI " mode output_height output_width sampling_ratio spatial_scale "
#define RESIZE_11 " mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside extrapolation_value "

/* Name, first and last opset, least and most inputs, most outputs, types of input 0, inputs that shape the output. */
#define ROW(...) &(const rnl_op_schema)ROW_FIELDS(__VA_ARGS__, false)
/* One whose evaluation reads no contents. */
#define SHAPE_ROW(...) &(const rnl_op_schema)ROW_FIELDS(__VA_ARGS__, true)
#define ROW_FIELDS(name, since, until, min_inputs, max_inputs, max_outputs, types, shape_inputs, infer, evaluate,      \
                   attributes, shape_only)                                                                             \
    {                                                                                                                  \
        name, since, until, min_inputs, max_inputs, 1, max_outputs, types, shape_inputs, infer, evaluate, attributes,  \
            shape_only, NULL                                                                                           \
    }

#endif
