/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators: sorted by name, then by opset. */
#include "graph/op_rows.h"
#include <stdlib.h>
#include <string.h>

#define BIT(type) RNL_TYPE_BIT(RNL_##type)
#define FLOATS RNL_TYPES_FLOAT_64
#define WIDE (BIT(I32) | BIT(I64) | BIT(U32) | BIT(U64))
#define NUMBERS RNL_TYPES_NUMERIC
#define BOOLS BIT(BOOL)
#define ANY RNL_TYPES_ALL
#define INPUT(index) (1u << (index))
#define MANY UINT32_MAX

/* Attributes that several rows share. */
#define WINDOW " auto_pad kernel_shape pads strides "
#define AXES_13 " axes keepdims "
#define AXES_18 " keepdims noop_with_empty_axes "
#define RESIZE_11 " mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside extrapolation_value "

/* Name, first and last opset, least and most inputs, most outputs, types of input 0, inputs that shape the output. */
#define ROW(...) &(const rnl_op_schema)ROW_FIELDS(__VA_ARGS__, false)
/* One whose evaluation reads no contents. */
#define SHAPE_ROW(...) &(const rnl_op_schema)ROW_FIELDS(__VA_ARGS__, true)
#define ROW_FIELDS(name, since, until, min_inputs, max_inputs, max_outputs, types, shape_inputs, infer, evaluate,      \
                   attributes, shape_only)                                                                             \
    {                                                                                                                  \
        name, since, until, min_inputs, max_inputs, 1, max_outputs, types, shape_inputs, infer, evaluate, attributes,  \
            shape_only                                                                                                 \
    }

static const rnl_op_schema *const rows[] = {
    ROW("Abs", 7, 28, 1, 1, 1, NUMBERS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Add", 7, 13, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Add", 14, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("And", 7, 28, 2, 2, 1, BOOLS, 0, rnl_infer_compare, rnl_evaluate_binary, ""),
    ROW("AveragePool", 7, 9, 1, 1, 1, FLOATS, 0, rnl_infer_pool, NULL, WINDOW "count_include_pad "),
    ROW("AveragePool", 10, 18, 1, 1, 1, FLOATS, 0, rnl_infer_pool, NULL, WINDOW "count_include_pad ceil_mode "),
    ROW("AveragePool", 19, 28, 1, 1, 1, FLOATS, 0, rnl_infer_pool, NULL,
        WINDOW "count_include_pad ceil_mode dilations "),
    ROW("BatchNormalization", 7, 8, 5, 5, 5, FLOATS, 0, rnl_infer_batch_normalization, NULL,
        " epsilon momentum spatial "),
    ROW("BatchNormalization", 9, 13, 5, 5, 5, FLOATS, 0, rnl_infer_batch_normalization, NULL, " epsilon momentum "),
    ROW("BatchNormalization", 14, 28, 5, 5, 3, FLOATS, 0, rnl_infer_batch_normalization, NULL,
        " epsilon momentum training_mode "),
    ROW("Cast", 7, 18, 1, 1, 1, ANY, 0, rnl_infer_cast, rnl_evaluate_cast, " to "),
    ROW("Cast", 19, 23, 1, 1, 1, ANY, 0, rnl_infer_cast, rnl_evaluate_cast, " to saturate "),
    ROW("Cast", 24, 28, 1, 1, 1, ANY, 0, rnl_infer_cast, rnl_evaluate_cast, " to saturate round_mode "),
    ROW("CastLike", 15, 18, 2, 2, 1, ANY, 0, rnl_infer_cast_like, rnl_evaluate_cast, ""),
    ROW("CastLike", 19, 23, 2, 2, 1, ANY, 0, rnl_infer_cast_like, rnl_evaluate_cast, " saturate "),
    ROW("CastLike", 24, 28, 2, 2, 1, ANY, 0, rnl_infer_cast_like, rnl_evaluate_cast, " saturate round_mode "),
    ROW("Ceil", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Clip", 7, 10, 1, 1, 1, FLOATS, 0, rnl_infer_clip, rnl_evaluate_clip, " min max "),
    ROW("Clip", 11, 11, 1, 3, 1, FLOATS, 0, rnl_infer_clip, rnl_evaluate_clip, ""),
    ROW("Clip", 12, 28, 1, 3, 1, NUMBERS, 0, rnl_infer_clip, rnl_evaluate_clip, ""),
    ROW("Concat", 7, 28, 1, MANY, 1, ANY, 0, rnl_infer_concat, rnl_evaluate_concat, " axis "),
    ROW("ConstantOfShape", 9, 28, 1, 1, 1, BIT(I64), INPUT(0), rnl_infer_constant_of_shape,
        rnl_evaluate_constant_of_shape, " value "),
    ROW("Conv", 7, 28, 2, 3, 1, FLOATS, 0, rnl_infer_conv, NULL, WINDOW "dilations group "),
    ROW("ConvTranspose", 7, 28, 2, 3, 1, FLOATS, 0, rnl_infer_conv_transpose, NULL,
        WINDOW "dilations group output_padding output_shape "),
    ROW("Cos", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("DepthToSpace", 7, 10, 1, 1, 1, ANY, 0, rnl_infer_depth_to_space, NULL, " blocksize "),
    ROW("DepthToSpace", 11, 28, 1, 1, 1, ANY, 0, rnl_infer_depth_to_space, NULL, " blocksize mode "),
    ROW("Div", 7, 13, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Div", 14, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Dropout", 7, 11, 1, 1, 2, FLOATS, 0, rnl_infer_dropout, rnl_evaluate_dropout, " ratio "),
    ROW("Dropout", 12, 28, 1, 3, 2, FLOATS, INPUT(2), rnl_infer_dropout, rnl_evaluate_dropout, " seed "),
    ROW("Elu", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, " alpha "),
    ROW("Equal", 7, 10, 2, 2, 1, BOOLS | BIT(I32) | BIT(I64), 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("Equal", 11, 28, 2, 2, 1, ANY, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("Erf", 9, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Exp", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Expand", 8, 28, 2, 2, 1, ANY, INPUT(1), rnl_infer_expand, rnl_evaluate_expand, ""),
    ROW("Flatten", 7, 8, 1, 1, 1, FLOATS, 0, rnl_infer_flatten, rnl_evaluate_copy, " axis "),
    ROW("Flatten", 9, 28, 1, 1, 1, ANY, 0, rnl_infer_flatten, rnl_evaluate_copy, " axis "),
    ROW("Floor", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Gather", 7, 28, 2, 2, 1, ANY, 0, rnl_infer_gather, rnl_evaluate_gather, " axis "),
    ROW("Gelu", 20, 28, 1, 1, 1, FLOATS, 0, rnl_infer_gelu, rnl_evaluate_unary, " approximate "),
    ROW("Gemm", 7, 8, 3, 3, 1, FLOATS, 0, rnl_infer_gemm, NULL, " alpha beta transA transB "),
    ROW("Gemm", 9, 10, 3, 3, 1, FLOATS | WIDE, 0, rnl_infer_gemm, NULL, " alpha beta transA transB "),
    ROW("Gemm", 11, 28, 2, 3, 1, FLOATS | WIDE, 0, rnl_infer_gemm, NULL, " alpha beta transA transB "),
    ROW("GlobalAveragePool", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_global_pool, NULL, ""),
    ROW("GlobalMaxPool", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_global_pool, NULL, ""),
    ROW("Greater", 7, 8, 2, 2, 1, FLOATS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("Greater", 9, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("GreaterOrEqual", 12, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("HardSigmoid", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, " alpha beta "),
    ROW("HardSwish", 14, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Identity", 7, 28, 1, 1, 1, ANY, 0, rnl_infer_unary, rnl_evaluate_copy, ""),
    ROW("InstanceNormalization", 7, 28, 3, 3, 1, FLOATS, 0, rnl_infer_instance_normalization, NULL, " epsilon "),
    ROW("IsNaN", 9, 28, 1, 1, 1, FLOATS, 0, rnl_infer_isnan, rnl_evaluate_isnan, ""),
    ROW("LRN", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_lrn, NULL, " alpha beta bias size "),
    ROW("LayerNormalization", 17, 28, 2, 3, 3, FLOATS, 0, rnl_infer_layer_normalization, NULL,
        " axis epsilon stash_type "),
    ROW("LeakyRelu", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, " alpha "),
    ROW("Less", 7, 8, 2, 2, 1, FLOATS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("Less", 9, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("LessOrEqual", 12, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_compare, rnl_evaluate_compare, ""),
    ROW("Log", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("LogSoftmax", 7, 12, 1, 1, 1, FLOATS, 0, rnl_infer_softmax, NULL, " axis "),
    ROW("LogSoftmax", 13, 28, 1, 1, 1, FLOATS, 0, rnl_infer_softmax, NULL, " axis "),
    ROW("MatMul", 7, 8, 2, 2, 1, FLOATS, 0, rnl_infer_matmul, NULL, ""),
    ROW("MatMul", 9, 28, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_matmul, NULL, ""),
    ROW("Max", 7, 11, 1, MANY, 1, FLOATS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("Max", 12, 28, 1, MANY, 1, NUMBERS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("MaxPool", 7, 7, 1, 1, 1, FLOATS, 0, rnl_infer_pool, NULL, WINDOW),
    ROW("MaxPool", 8, 9, 1, 1, 2, FLOATS, 0, rnl_infer_pool, NULL, WINDOW "storage_order "),
    ROW("MaxPool", 10, 11, 1, 1, 2, FLOATS, 0, rnl_infer_pool, NULL, WINDOW "storage_order ceil_mode dilations "),
    ROW("MaxPool", 12, 28, 1, 1, 2, FLOATS | BIT(I8) | BIT(U8), 0, rnl_infer_pool, NULL,
        WINDOW "storage_order ceil_mode dilations "),
    ROW("Mean", 7, 28, 1, MANY, 1, FLOATS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("Min", 7, 11, 1, MANY, 1, FLOATS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("Min", 12, 28, 1, MANY, 1, NUMBERS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("Mod", 10, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_mod, rnl_evaluate_binary, " fmod "),
    ROW("Mul", 7, 13, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Mul", 14, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Neg", 7, 28, 1, 1, 1, FLOATS | RNL_TYPES_SIGNED, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Not", 7, 28, 1, 1, 1, BOOLS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Or", 7, 28, 2, 2, 1, BOOLS, 0, rnl_infer_compare, rnl_evaluate_binary, ""),
    ROW("PRelu", 7, 8, 2, 2, 1, FLOATS, 0, rnl_infer_prelu, rnl_evaluate_binary, ""),
    ROW("PRelu", 9, 28, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_prelu, rnl_evaluate_binary, ""),
    ROW("Pad", 7, 10, 1, 1, 1, FLOATS, 0, rnl_infer_pad, rnl_evaluate_pad, " mode pads value "),
    ROW("Pad", 11, 12, 2, 3, 1, NUMBERS, INPUT(1), rnl_infer_pad, rnl_evaluate_pad, " mode "),
    ROW("Pad", 13, 17, 2, 3, 1, ANY, INPUT(1), rnl_infer_pad, rnl_evaluate_pad, " mode "),
    ROW("Pad", 18, 28, 2, 4, 1, ANY, INPUT(1) | INPUT(3), rnl_infer_pad, rnl_evaluate_pad, " mode "),
    ROW("Pow", 7, 11, 2, 2, 1, FLOATS, 0, rnl_infer_pow, rnl_evaluate_pow, ""),
    ROW("Pow", 12, 28, 2, 2, 1, FLOATS | BIT(I32) | BIT(I64), 0, rnl_infer_pow, rnl_evaluate_pow, ""),
    ROW("Range", 11, 26, 3, 3, 1, FLOATS | BIT(I16) | BIT(I32) | BIT(I64), INPUT(0) | INPUT(1) | INPUT(2),
        rnl_infer_range, rnl_evaluate_range, ""),
    ROW("Range", 27, 28, 3, 3, 1, FLOATS | BIT(I16) | BIT(I32) | BIT(I64), INPUT(0) | INPUT(1) | INPUT(2),
        rnl_infer_range, rnl_evaluate_range, " stash_type "),
    ROW("Reciprocal", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("ReduceL1", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceL1", 18, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceL2", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceL2", 18, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceLogSum", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceLogSum", 18, 27, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceLogSum", 28, 28, 1, 2, 1, FLOATS, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceLogSumExp", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceLogSumExp", 18, 27, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceLogSumExp", 28, 28, 1, 2, 1, FLOATS, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceMax", 7, 11, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceMax", 12, 17, 1, 1, 1, FLOATS | WIDE | BIT(I8) | BIT(U8), 0, rnl_infer_reduce, rnl_evaluate_reduce,
        AXES_13),
    ROW("ReduceMax", 18, 19, 1, 2, 1, FLOATS | WIDE | BIT(I8) | BIT(U8), INPUT(1), rnl_infer_reduce,
        rnl_evaluate_reduce, AXES_18),
    ROW("ReduceMax", 20, 28, 1, 2, 1, FLOATS | WIDE | BIT(I8) | BIT(U8) | BOOLS, INPUT(1), rnl_infer_reduce,
        rnl_evaluate_reduce, AXES_18),
    ROW("ReduceMean", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceMean", 18, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceMin", 7, 11, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceMin", 12, 17, 1, 1, 1, FLOATS | WIDE | BIT(I8) | BIT(U8), 0, rnl_infer_reduce, rnl_evaluate_reduce,
        AXES_13),
    ROW("ReduceMin", 18, 19, 1, 2, 1, FLOATS | WIDE | BIT(I8) | BIT(U8), INPUT(1), rnl_infer_reduce,
        rnl_evaluate_reduce, AXES_18),
    ROW("ReduceMin", 20, 28, 1, 2, 1, FLOATS | WIDE | BIT(I8) | BIT(U8) | BOOLS, INPUT(1), rnl_infer_reduce,
        rnl_evaluate_reduce, AXES_18),
    ROW("ReduceProd", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceProd", 18, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceSum", 7, 12, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceSum", 13, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("ReduceSumSquare", 7, 17, 1, 1, 1, FLOATS | WIDE, 0, rnl_infer_reduce, rnl_evaluate_reduce, AXES_13),
    ROW("ReduceSumSquare", 18, 28, 1, 2, 1, FLOATS | WIDE, INPUT(1), rnl_infer_reduce, rnl_evaluate_reduce, AXES_18),
    ROW("Relu", 7, 13, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Relu", 14, 28, 1, 1, 1, FLOATS | RNL_TYPES_SIGNED, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Reshape", 7, 13, 2, 2, 1, ANY, INPUT(1), rnl_infer_reshape, rnl_evaluate_copy, ""),
    ROW("Reshape", 14, 28, 2, 2, 1, ANY, INPUT(1), rnl_infer_reshape, rnl_evaluate_copy, " allowzero "),
    ROW("Resize", 10, 10, 2, 2, 1, ANY, INPUT(1), rnl_infer_resize, NULL, " mode "),
    ROW("Resize", 11, 17, 1, 4, 1, ANY, INPUT(1) | INPUT(2) | INPUT(3), rnl_infer_resize, NULL, RESIZE_11),
    ROW("Resize", 18, 28, 1, 4, 1, ANY, INPUT(1) | INPUT(2) | INPUT(3), rnl_infer_resize, NULL,
        RESIZE_11 "antialias axes keep_aspect_ratio_policy "),
    ROW("Round", 11, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Selu", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, " alpha gamma "),
    SHAPE_ROW("Shape", 7, 14, 1, 1, 1, ANY, 0, rnl_infer_shape, rnl_evaluate_shape, ""),
    SHAPE_ROW("Shape", 15, 28, 1, 1, 1, ANY, 0, rnl_infer_shape, rnl_evaluate_shape, " start end "),
    ROW("Sigmoid", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Sign", 9, 28, 1, 1, 1, NUMBERS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Sin", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    SHAPE_ROW("Size", 7, 28, 1, 1, 1, ANY, 0, rnl_infer_size, rnl_evaluate_size, ""),
    ROW("Slice", 7, 9, 1, 1, 1, ANY, 0, rnl_infer_slice, rnl_evaluate_slice, " starts ends axes "),
    ROW("Slice", 10, 28, 3, 5, 1, ANY, INPUT(1) | INPUT(2) | INPUT(3) | INPUT(4), rnl_infer_slice, rnl_evaluate_slice,
        ""),
    ROW("Softmax", 7, 12, 1, 1, 1, FLOATS, 0, rnl_infer_softmax, NULL, " axis "),
    ROW("Softmax", 13, 28, 1, 1, 1, FLOATS, 0, rnl_infer_softmax, NULL, " axis "),
    ROW("Softplus", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Softsign", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("SpaceToDepth", 7, 27, 1, 1, 1, ANY, 0, rnl_infer_space_to_depth, NULL, " blocksize "),
    ROW("SpaceToDepth", 28, 28, 1, 1, 1, ANY, 0, rnl_infer_space_to_depth, NULL, " blocksize mode "),
    ROW("Split", 7, 12, 1, 1, MANY, ANY, 0, rnl_infer_split, rnl_evaluate_split, " axis split "),
    ROW("Split", 13, 17, 1, 2, MANY, ANY, INPUT(1), rnl_infer_split, rnl_evaluate_split, " axis "),
    ROW("Split", 18, 28, 1, 2, MANY, ANY, INPUT(1), rnl_infer_split, rnl_evaluate_split, " axis num_outputs "),
    ROW("Sqrt", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Squeeze", 7, 12, 1, 1, 1, ANY, 0, rnl_infer_squeeze, rnl_evaluate_copy, " axes "),
    ROW("Squeeze", 13, 28, 1, 2, 1, ANY, INPUT(1), rnl_infer_squeeze, rnl_evaluate_copy, ""),
    ROW("Sub", 7, 13, 2, 2, 1, FLOATS | WIDE, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Sub", 14, 28, 2, 2, 1, NUMBERS, 0, rnl_infer_binary, rnl_evaluate_binary, ""),
    ROW("Sum", 7, 28, 1, MANY, 1, FLOATS, 0, rnl_infer_variadic, rnl_evaluate_variadic, ""),
    ROW("Tanh", 7, 28, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
    ROW("Tile", 7, 28, 2, 2, 1, ANY, INPUT(1), rnl_infer_tile, rnl_evaluate_tile, ""),
    ROW("Transpose", 7, 28, 1, 1, 1, ANY, 0, rnl_infer_transpose, rnl_evaluate_transpose, " perm "),
    ROW("Unsqueeze", 7, 12, 1, 1, 1, ANY, 0, rnl_infer_unsqueeze, rnl_evaluate_copy, " axes "),
    ROW("Unsqueeze", 13, 28, 2, 2, 1, ANY, INPUT(1), rnl_infer_unsqueeze, rnl_evaluate_copy, ""),
    ROW("Upsample", 7, 8, 1, 1, 1, ANY, 0, rnl_infer_resize, NULL, " mode scales "),
    ROW("Upsample", 9, 9, 2, 2, 1, ANY, INPUT(1), rnl_infer_resize, NULL, " mode "),
    ROW("Where", 9, 28, 3, 3, 1, BOOLS, 0, rnl_infer_where, rnl_evaluate_where, ""),
    ROW("Xor", 7, 28, 2, 2, 1, BOOLS, 0, rnl_infer_compare, rnl_evaluate_binary, ""),
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

typedef struct row_key {
    const char *op_type;
    int64_t opset;
} row_key;

static int compare_row(const void *key, const void *element)
{
    const row_key *wanted = key;
    const rnl_op_schema *row = *(const rnl_op_schema *const *)element;
    int order = strcmp(wanted->op_type, row->op_type);
    if (order != 0)
        return order;
    return wanted->opset < row->since ? -1 : wanted->opset > row->until;
}

const rnl_op_schema *rnl_op_find(const char *op_type, int64_t opset)
{
    row_key key = {op_type, opset};
    const rnl_op_schema *const *row = bsearch(&key, rows, ROW_COUNT, sizeof *rows, compare_row);
    return row ? *row : NULL;
}

const rnl_op_schema *const *rnl_op_list(size_t *out_count)
{
    *out_count = ROW_COUNT;
    return rows;
}
