/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and types by hand: rules at their edges, and nodes that must be refused with a sentence that names them. */
#include "unit/op_text.h"

typedef struct infer_row {
    const char *op_type;
    int opset;
    const char *inputs, *attributes;
    const char *outputs; /* or NULL: refused with … */
    rnl_status status;
    const char *message; /* … these words */
} infer_row;

#define GOOD(op, opset, inputs, attributes, outputs)                                                                   \
    {                                                                                                                  \
        op, opset, inputs, attributes, outputs, RNL_OK, NULL                                                           \
    }
#define BAD(op, opset, inputs, attributes, message)                                                                    \
    {                                                                                                                  \
        op, opset, inputs, attributes, NULL, RNL_INVALID_ARGUMENT, message                                             \
    }
/* With two outputs. */
#define BAD_2(op, opset, inputs, attributes, message)                                                                  \
    {                                                                                                                  \
        op, opset, inputs, attributes, " ", RNL_INVALID_ARGUMENT, message                                              \
    }
#define UNKNOWN(op, opset, inputs, attributes, message)                                                                \
    {                                                                                                                  \
        op, opset, inputs, attributes, NULL, RNL_FAILED_PRECONDITION, message                                          \
    }
#define NOT_DONE(op, opset, inputs, attributes, message)                                                               \
    {                                                                                                                  \
        op, opset, inputs, attributes, NULL, RNL_UNIMPLEMENTED, message                                                \
    }
#define HUGE_ONE "4611686018427387904" /* 2^62 */

static const infer_row elementwise[] = {
    GOOD("Add", 13, "f32:2x1x3 f32:4x1", "", "f32:2x4x3"),
    GOOD("Add", 13, "f32:0x3 f32:1x3", "", "f32:0x3"),
    GOOD("Add", 13, "f32:1 f32:0", "", "f32:0"),
    BAD("Add", 13, "f32:2x3 f32:4x3", "", "shapes 2x3 and 4x3 do not broadcast"),
    BAD("Add", 13, "f32:0x3 f32:2x3", "", "shapes 0x3 and 2x3 do not broadcast"),
    BAD("Add", 13, "f32:2 f64:2", "", "inputs 0 and 1 of Add have different types, float32 and float64"),
    BAD("Add", 13, "i8:2 i8:2", "", "Add of opset 13 does not take int8 as input 0"),
    GOOD("Add", 14, "i8:2 i8:2", "", "i8:2"),
    BAD("Add", 14, "bool:2 bool:2", "", "does not take bool"),
    BAD("Add", 14, "f32:2 -", "", "input 1 of Add is missing"),
    BAD("Add", 14, "f32:2", "", "Add cannot have 1 inputs"),
    BAD("Add", 14, "f32:2 f32:2 f32:2", "", "Add cannot have 3 inputs"),
    BAD("Add", 14, "f32:-2 f32:1", "", "input 0 of Add has the impossible shape -2"),
    BAD("Add", 14, "f32:" HUGE_ONE "x2 f32:1", "", "impossible shape"),
    BAD("Add", 14, "f32:4294967296x1 f32:1x4294967296", "", "impossible shape 4294967296x4294967296"),
    BAD("Add", 14, "f32:1x1x1x1x1x1x1x1x1 f32:1", "", "has rank 9; the most is 8"),
    GOOD("Max", 13, "i32:2x1 i32:3 i32:", "", "i32:2x3"),
    BAD("Max", 13, "i32:2 i32:3", "", "shapes 2 and 3 do not broadcast"),
    BAD("Max", 13, "i32:2 - i32:2", "", "input 1 of Max is missing"),
    GOOD("Less", 13, "f16:2 f16:1", "", "bool:2"),
    GOOD("Pow", 12, "f32:2 i64:2", "", "f32:2"),
    BAD("Pow", 7, "f32:2 f64:2", "", "different types"),
    GOOD("Mod", 28, "f32:2 f32:2", "", "f32:2"),
    BAD("Mod", 13, "f32:2 f32:2", "", "Mod of floats needs fmod=1 before opset 28"),
    BAD("Mod", 13, "i32:2 i32:2", "fmod:i=2", "'fmod' of Mod is 2"),
    GOOD("PRelu", 9, "f32:2x3x4 f32:3x1", "", "f32:2x3x4"),
    BAD("PRelu", 9, "f32:3 f32:2x3", "", "has shape 2x3, which does not broadcast to 3"),
    GOOD("Where", 9, "bool:2x1 i64:3 i64:", "", "i64:2x3"),
    BAD("Where", 9, "f32:2 i64:2 i64:2", "", "does not take float32 as input 0"),
    GOOD("Clip", 13, "f32:2 - f32:", "", "f32:2"),
    BAD("Clip", 13, "f32:2 f32:2", "", "a bound of Clip has shape 2"),
    BAD("Gelu", 20, "f32:2", "approximate:s=erf", "attribute 'approximate' of Gelu of opset 20 cannot be 'erf'"),
    GOOD("Cast", 13, "f32:2", "to:i=16", "bf16:2"),
    NOT_DONE("Cast", 13, "f32:2", "to:i=8", "Cast to ONNX type 8"),
    NOT_DONE("Cast", 13, "f32:2", "to:i=-1", "Cast to ONNX type -1"),
    BAD("Cast", 13, "f32:2", "", "Cast needs the integer attribute 'to'"),
    GOOD("CastLike", 15, "f32:2 u8:0", "", "u8:2"),
    GOOD("Dropout", 12, "f32:2 - bool:=0", "", "f32:2"),
    GOOD("Dropout", 12, "f32:2 - bool:=1", "", "f32:2"),
    UNKNOWN("Dropout", 12, "f32:2 - bool:", "", "training_mode (input 2)"),
    BAD("Dropout", 12, "f32:2 - f32:=0", "", "must be one bool"),
};

static const infer_row shapes[] = {
    GOOD("Shape", 15, "f32:2x3x4", "start:i=1 end:i=-1", "i64:1"),
    GOOD("Shape", 15, "f32:2x3x4", "start:i=9223372036854775807 end:i=-9223372036854775808", "i64:0"),
    GOOD("Reshape", 13, "f32:2x3x4 i64:3=0,-1,2", "", "f32:2x6x2"),
    GOOD("Reshape", 14, "f32:0x3 i64:2=3,0", "allowzero:i=1", "f32:3x0"),
    GOOD("Reshape", 14, "f32:0x3 i64:2=0,5", "", "f32:0x5"),
    GOOD("Reshape", 13, "f32:1 i64:0=", "", "f32:"),
    BAD("Reshape", 13, "f32:2x3 i64:2=4,2", "", "a tensor of shape 2x3 cannot be reshaped to 4x2"),
    BAD("Reshape", 13, "f32:2x3 i64:2=-1,4", "", "a tensor of shape 2x3 cannot be reshaped to -1x4"),
    BAD("Reshape", 13, "f32:2x3 i64:2=-1,-1", "", "two free or negative dimensions"),
    BAD("Reshape", 13, "f32:2x3 i64:2=-2,3", "", "two free or negative dimensions"),
    BAD("Reshape", 13, "f32:6 i64:2=6,0", "", "Reshape copies dimension 1 of shape 6"),
    BAD("Reshape", 14, "f32:0x3 i64:2=0,-1", "allowzero:i=1", "cannot be reshaped"),
    BAD("Reshape", 13, "f32:4 i64:2=" HUGE_ONE ",4", "", "cannot be reshaped"),
    BAD("Reshape", 13, "f32:2 i64:2x1=2,1", "", "must be integers in one dimension, not int64 of shape 2x1"),
    BAD("Reshape", 13, "f32:2 f32:1=2", "", "does not take float32 as input 1"),
    BAD("Reshape", 13, "f32:1 i64:9=1,1,1,1,1,1,1,1,1", "", "has 9 elements; 8 at most"),
    UNKNOWN("Reshape", 13, "f32:2 i64:2", "", "the contents of shape (input 1) are not known"),
    GOOD("Flatten", 11, "f32:2x3x4", "axis:i=-1", "f32:6x4"),
    GOOD("Flatten", 11, "f32:", "axis:i=0", "f32:1x1"),
    BAD("Flatten", 9, "f32:2x3", "axis:i=-1", "Flatten at axis -1"),
    BAD("Flatten", 11, "f32:2x3", "axis:i=3", "Flatten at axis 3"),
    BAD("Flatten", 11, "f32:" HUGE_ONE "x" HUGE_ONE "x0", "axis:i=2", "a dimension that is too large"),
    GOOD("Squeeze", 13, "f32:1x2x1 i64:1=-1", "", "f32:1x2"),
    BAD("Squeeze", 13, "f32:1x2x1 i64:1=1", "", "Squeeze of axis 1 of shape 1x2x1, which is not 1"),
    BAD("Squeeze", 13, "f32:1x2x1 i64:2=0,-3", "", "axis 0 is named twice"),
    BAD("Squeeze", 13, "f32:1x2x1 i64:1=3", "", "'axes' names axis 3 of a tensor of rank 3"),
    BAD("Squeeze", 11, "f32:1", "axes:is=0,0,0,0,0,0,0,0,0", "'axes' has 9 elements"),
    GOOD("Unsqueeze", 13, "f32:2 i64:2=0,-1", "", "f32:1x2x1"),
    BAD("Unsqueeze", 13, "f32:1x1x1x1x1x1x1 i64:2=0,1", "", "gives rank 9"),
    BAD("Unsqueeze", 11, "f32:2", "", "needs the attribute 'axes'"),
    BAD("Transpose", 13, "f32:2x3", "perm:is=0", "'perm' has 1 entries"),
    BAD("Transpose", 13, "f32:2x3", "perm:is=0,0", "axis 0 is named twice"),
    BAD("Transpose", 13, "f32:2x3", "perm:is=0,2", "names axis 2 of a tensor of rank 2"),
    GOOD("Expand", 13, "f32:3x1 i64:3=2,1,4", "", "f32:2x3x4"),
    BAD("Expand", 13, "f32:3 i64:1=2", "", "shapes 3 and 2 do not broadcast"),
    BAD("Expand", 13, "f32:3 i64:1=-1", "", "Expand to the impossible shape -1"),
    BAD("Expand", 13, "f32:1 i64:2=" HUGE_ONE "," HUGE_ONE, "", "impossible shape"),
    GOOD("Tile", 13, "f32:2x3 i64:2=0,2", "", "f32:0x6"),
    BAD("Tile", 13, "f32:2x3 i64:1=2", "", "Tile has 1 repeats for a tensor of shape 2x3"),
    BAD("Tile", 13, "f32:2 i64:1=-1", "", "Tile repeats axis 0 of shape 2 -1 times"),
    BAD("Tile", 13, "f32:2 i64:1=" HUGE_ONE, "", "times"),
    GOOD("ConstantOfShape", 9, "i64:2=0,3", "", "f32:0x3"),
    BAD("ConstantOfShape", 9, "i64:2=2,-3", "", "impossible shape 2x-3"),
    BAD("ConstantOfShape", 9, "i64:2=" HUGE_ONE ",4", "", "impossible shape"),
    UNKNOWN("ConstantOfShape", 9, "i64:2", "", "shape (input 0)"),
    GOOD("Range", 11, "i64:=-9223372036854775808 i64:=9223372036854775807 i64:=9223372036854775807", "", "i64:3"),
    GOOD("Range", 11, "i64:=5 i64:=-9223372036854775808 i64:=-9223372036854775808", "", "i64:2"),
    BAD("Range", 11, "i64:=-9223372036854775808 i64:=9223372036854775807 i64:=1", "", "has no end"),
    BAD("Range", 11, "i64:=0 i64:=5 i64:=0", "", "Range from 0 to 5 in steps of 0 has no end"),
    BAD("Range", 11, "f32:=0 f32:=inf f32:=1", "", "has no end"),
    BAD("Range", 11, "f32:=0 f32:=nan f32:=1", "", "has no end"),
    BAD("Range", 11, "f32:2=0,0 f32:=1 f32:=1", "", "must be a scalar"),
    UNKNOWN("Range", 11, "i64:=0 i64: i64:=1", "", "limit (input 1)"),
    GOOD("DepthToSpace", 11, "f32:1x8x2x3", "blocksize:i=2 mode:s=CRD", "f32:1x2x4x6"),
    BAD("DepthToSpace", 11, "f32:1x6x2x3", "blocksize:i=2", "with blocks of 2 cannot take shape 1x6x2x3"),
    BAD("DepthToSpace", 11, "f32:1x6x2x3", "blocksize:i=0", "'blocksize' of DepthToSpace is 0"),
    BAD("DepthToSpace", 11, "f32:0x0x" HUGE_ONE "x1", "blocksize:i=2", "cannot take shape"),
    BAD("DepthToSpace", 11, "f32:4x2x3", "blocksize:i=2", "rank 4, not shape 4x2x3"),
    BAD("SpaceToDepth", 13, "f32:1x1x3x4", "blocksize:i=2", "cannot take shape 1x1x3x4"),
};

static const infer_row pieces[] = {
    GOOD("Concat", 13, "i64:2 i64:0 i64:3", "axis:i=0", "i64:5"),
    BAD("Concat", 13, "f32:2x3 f32:2x4", "axis:i=0", "shapes 2x3 and 2x4 cannot be concatenated along axis 0"),
    BAD("Concat", 13, "f32:2x3 f32:2", "axis:i=0", "shapes 2x3 and 2 cannot be concatenated"),
    BAD("Concat", 13, "f32: f32:", "axis:i=0", "names axis 0 of a tensor of rank 0"),
    BAD("Concat", 13, "f32:" HUGE_ONE " f32:" HUGE_ONE, "axis:i=0", "cannot be concatenated"),
    BAD("Concat", 13, "f32:2 i32:2", "axis:i=0", "different types"),
    GOOD("Split", 18, "f32:7", "num_outputs:i=2", "f32:4 f32:3"),
    GOOD("Split", 13, "f32:6x2 i64:2=6,0", "", "f32:6x2 f32:0x2"),
    BAD_2("Split", 13, "f32:6 i64:2=4,3", "", "add up to 7, the axis has 6"),
    BAD_2("Split", 13, "f32:6 i64:2=7,-1", "", "a part of Split has the size -1"),
    BAD_2("Split", 13, "f32:6 i64:2=9223372036854775807,9223372036854775807", "", "a part of Split has the size"),
    BAD("Split", 18, "f32:6", "", "needs the input 'split' or the attribute 'num_outputs'"),
    BAD("Split", 18, "f32:6", "num_outputs:i=3", "'num_outputs' of Split is 3 but it has 1 outputs"),
    UNKNOWN("Split", 13, "f32:6 i64:1", "", "split (input 1)"),
    GOOD("Slice", 13, "f32:5 i64:1=-100 i64:1=-9223372036854775808 i64:1=0 i64:1=-9223372036854775808", "", "f32:1"),
    GOOD("Slice", 13, "f32:0x3 i64:1=1 i64:1=5 i64:1=0 i64:1=-1", "", "f32:0x3"),
    BAD("Slice", 13, "f32:5 i64:1=0 i64:1=5 i64:1=0 i64:1=0", "", "a step of Slice is 0"),
    BAD("Slice", 13, "f32:5 i64:2=0,0 i64:1=5", "", "ends (input 2) of Slice has 1 elements, starts has 2"),
    BAD("Slice", 13, "f32:5x5 i64:2=0,0 i64:2=5,5 i64:2=0,-2", "", "axis 0 is named twice"),
    BAD("Slice", 13, "f32:5 i64:2=0,0 i64:2=5,5", "", "names axis 1 of a tensor of rank 1"),
    UNKNOWN("Slice", 13, "f32:5 i64:1=0 i64:1", "", "the contents of ends (input 2)"),
    GOOD("Gather", 13, "f32:2x3x4 i64:5x6", "axis:i=1", "f32:2x5x6x4"),
    BAD("Gather", 13, "f32:3 i64:1=3", "", "Gather takes element 3 of an axis of 3"),
    BAD("Gather", 13, "f32:3 i64:1=-4", "", "Gather takes element -4 of an axis of 3"),
    BAD("Gather", 13, "f32:3 i64:1x1x1x1x1x1x1x1", "axis:i=1", "names axis 1"),
    BAD("Gather", 13, "f32:3x2 i64:1x1x1x1x1x1x1x1", "", "has rank 9"),
    BAD("Gather", 13, "f32: i64:1", "", "names axis 0 of a tensor of rank 0"),
    GOOD("Pad", 13, "f32:3 i64:2=-1,-2", "", "f32:0"),
    BAD("Pad", 13, "f32:3 i64:2=-2,-2", "", "Pad of -2 and -2 does not fit axis 0 of shape 3"),
    BAD("Pad", 13, "f32:3 i64:2=9223372036854775807,1", "", "does not fit axis 0 of shape 3"),
    BAD("Pad", 13, "f32:3 i64:1=1", "", "Pad has 1 amounts for 1 axes of shape 3"),
    GOOD("Pad", 13, "f32:3 i64:2=3,0", "mode:s=reflect", "f32:6"),
    GOOD("Pad", 13, "f32:4 i64:2=-2,2", "mode:s=reflect", "f32:4"),
    BAD("Pad", 13, "f32:2 i64:2=-2,2", "mode:s=reflect", "in mode 'reflect'"),
    BAD("Pad", 13, "f32:0 i64:2=1,0", "mode:s=edge", "does not fit an axis of 0 in mode 'edge'"),
    BAD("Pad", 13, "f32:3 i64:2=1,0", "mode:s=wrap", "'mode' of Pad of opset 13 cannot be 'wrap'"),
    BAD("Pad", 18, "f32:3x3 i64:4=1,1,1,1 - i64:2=0,-2", "", "axis 0 is named twice"),
    BAD("Pad", 13, "f32:3 i64:2=1,0 f64:=1", "", "does not take float64 as input 2"),
    UNKNOWN("Pad", 13, "f32:3 i64:2", "", "pads (input 1)"),
    GOOD("ReduceSum", 13, "f32:2x3x4 i64:2=0,-1", "keepdims:i=0", "f32:3"),
    GOOD("ReduceSum", 13, "f32:2x3 i64:0=", "noop_with_empty_axes:i=1", "f32:2x3"),
    GOOD("ReduceMax", 18, "f32:2x0 i64:1=1", "", "f32:2x1"),
    BAD("ReduceMax", 18, "f32:2 i64:1=1", "", "names axis 1 of a tensor of rank 1"),
    BAD("ReduceMax", 13, "f32:2x2", "axes:is=0,-2", "axis 0 is named twice"),
    UNKNOWN("ReduceMax", 18, "f32:2 i64:1", "", "axes (input 1)"),
};

static const infer_row windows[] = {
    GOOD("Conv", 11, "f32:0x4x5x5 f32:6x2x3x3", "group:i=2", "f32:0x6x3x3"),
    GOOD("Conv", 11, "f32:1x1x5 f32:1x1x2", "auto_pad:s=SAME_UPPER strides:is=2", "f32:1x1x3"),
    BAD("Conv", 11, "f32:1x3x5x5 f32:6x2x3x3", "", "the channels of an input of shape 1x3x5x5 do not fit a weight"),
    BAD("Conv", 11, "f32:1x4x5x5 f32:5x2x3x3", "group:i=2", "of shape 5x2x3x3 with group 2"),
    BAD("Conv", 11, "f32:1x4x5x5 f32:5x2x3x3", "group:i=0", "group 0 does not fit"),
    BAD("Conv", 11, "f32:1x4x5x5 f32:4x2x3x3", "group:i=" HUGE_ONE, "do not fit"),
    BAD("Conv", 11, "f32:1x1x2x2 f32:1x1x3x3", "", "a window of 3 does not fit 2 with 0 + 0 of padding"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "dilations:is=2147483647", "does not fit 5"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "strides:is=0", "'strides' of Conv holds 0"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "pads:is=-1,0", "'pads' of Conv holds -1"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "pads:is=1", "'pads' of Conv has 1 elements; 2 are needed"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "kernel_shape:is=2", "weight of shape 1x1x3"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x0", "", "weight of shape 1x1x0"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3x3", "", "weight of shape 1x1x3x3"),
    BAD("Conv", 11, "f32:1x1x5 f32:2x1x3 f32:3", "", "input 2 of Conv has shape 3 where 2 is needed"),
    BAD("Conv", 11, "f32:1x5 f32:1x5", "", "rank 3 or more, not shape 1x5"),
    BAD("Conv", 11, "f32:1x1x5 f32:1x1x3", "auto_pad:s=SAME", "'auto_pad' of Conv of opset 11 cannot be 'SAME'"),
    NOT_DONE("Conv", 11, "f32:1x1x5x5x5x5 f32:1x1x3x3x3x3", "", "up to 3 spatial dimensions"),
    GOOD("ConvTranspose", 11, "f32:1x2x3 f32:2x1x3", "strides:is=2 output_padding:is=1 group:i=2", "f32:1x2x8"),
    GOOD("ConvTranspose", 11, "f32:1x2x3 f32:2x1x3", "strides:is=2 output_shape:is=6", "f32:1x1x6"),
    BAD("ConvTranspose", 11, "f32:1x2x3 f32:2x1x3", "strides:is=2 output_shape:is=90", "has no output of size 90"),
    BAD("ConvTranspose", 11, "f32:1x2x3 f32:2x1x1", "pads:is=3,3", "has no output of size -3"),
    BAD("ConvTranspose", 11, "f32:1x3x3 f32:3x1x3", "group:i=2", "do not fit a weight"),
    BAD("ConvTranspose", 11, "f32:1x1x" HUGE_ONE " f32:1x1x3", "strides:is=4", "has no output"),
    GOOD("MaxPool", 12, "f32:1x2x6", "kernel_shape:is=2 strides:is=3 ceil_mode:i=1 pads:is=0,1", "f32:1x2x2 i64:1x2x2"),
    GOOD("MaxPool", 12, "f32:1x2x0", "kernel_shape:is=2", "f32:1x2x0"),
    BAD("MaxPool", 12, "f32:1x2x6", "", "needs the attribute 'kernel_shape'"),
    BAD("MaxPool", 12, "f32:1x2x6", "kernel_shape:is=2 pads:is=2,0",
        "pads by 2, which must be less than its window of 2"),
    BAD("MaxPool", 12, "f32:1x2x2", "kernel_shape:is=3", "a window of 3 does not fit 2"),
    BAD("AveragePool", 11, "i32:1x2x2", "kernel_shape:is=1", "does not take int32"),
    GOOD("GlobalMaxPool", 7, "f32:2x3", "", "f32:2x3"),
};

static const infer_row tensors[] = {
    GOOD("MatMul", 13, "f32:5x1x2x3 f32:4x3x6", "", "f32:5x4x2x6"),
    GOOD("MatMul", 13, "f32:3 f32:3", "", "f32:"),
    GOOD("MatMul", 13, "f32:2x0 f32:0x3", "", "f32:2x3"),
    BAD("MatMul", 13, "f32:2x3 f32:2x3", "", "shapes 2x3 and 2x3 cannot be multiplied"),
    BAD("MatMul", 13, "f32:2x2x3 f32:3x3x2", "", "shapes 2x2x3 and 3x3x2 cannot be multiplied"),
    BAD("MatMul", 13, "f32: f32:2", "", "shapes scalar and 2 cannot be multiplied"),
    BAD("MatMul", 13, "f32:4294967296x1 f32:1x4294967296", "", "impossible shape 4294967296x4294967296"),
    GOOD("Gemm", 13, "f32:3x2 f32:4x3 f32:4", "transA:i=1 transB:i=1", "f32:2x4"),
    BAD("Gemm", 13, "f32:2x3 f32:2x3", "", "shapes 2x3 and 2x3 cannot be multiplied by Gemm"),
    BAD("Gemm", 13, "f32:2x3 f32:3x4 f32:2", "", "has shape 2, which does not broadcast to 2x4"),
    BAD("Gemm", 9, "f32:2x3 f32:3x4", "", "Gemm cannot have 2 inputs"),
    BAD("Gemm", 13, "f32:1x2x3 f32:3x4", "", "cannot be multiplied"),
    BAD("BatchNormalization", 15, "f32:2x3 f32:3 f32:3 f32:2 f32:3", "", "has shape 2 where 3 is needed"),
    GOOD("BatchNormalization", 15, "f16:2x3 f32:3 f32:3 f32:3 f32:3", "", "f16:2x3"),
    GOOD("BatchNormalization", 15, "f32:2x3 f32:3 f32:3 f32:3 f32:3", "training_mode:i=1", "f32:2x3"),
    NOT_DONE("BatchNormalization", 7, "f32:2x3 f32:3 f32:3 f32:3 f32:3", "spatial:i=0", "spatial=1 only"),
    BAD("LRN", 13, "f32:1x2x3", "", "needs the integer attribute 'size'"),
    BAD("LRN", 13, "f32:1x2x3", "size:i=0", "'size' of LRN is 0"),
    BAD("LayerNormalization", 17, "f32:2x3 f32:2", "", "has shape 2, which does not broadcast to 2x3"),
    BAD("LayerNormalization", 17, "f32:2x3 f32:3", "stash_type:i=7", "'stash_type' of LayerNormalization is 7"),
    BAD("InstanceNormalization", 7, "f32:1x2x3 f32:3 f32:2", "", "has shape 3 where 2 is needed"),
    BAD("Softmax", 11, "f32:5", "", "'axis' names axis 1 of a tensor of rank 1"),
    GOOD("Softmax", 13, "f32:5", "", "f32:5"),
    GOOD("Resize", 10, "f32:1x1x4 f32:3=1,1,0.6", "", "f32:1x1x2"),
    GOOD("Resize", 19, "f32:1x1x4x8 - - i64:2=8,8", "axes:is=2,3 keep_aspect_ratio_policy:s=not_larger", "f32:1x1x4x8"),
    GOOD("Resize", 19, "f32:1x1x4x8 - - i64:2=8,8", "axes:is=2,3 keep_aspect_ratio_policy:s=not_smaller",
         "f32:1x1x8x16"),
    GOOD("Resize", 13, "f32:1x1x4 f32:0 f32:3=1,1,0.1", "", "f32:1x1x0"),
    BAD("Resize", 13, "f32:1x1x4 - f32:3=1,1,0", "", "Resize cannot scale axis 2 by 0"),
    BAD("Resize", 13, "f32:1x1x4 - f32:3=1,1,nan", "", "Resize cannot scale axis 2 by nan"),
    BAD("Resize", 13, "f32:1x1x4 - f32:3=1,1,inf", "", "Resize cannot scale axis 2 by inf"),
    BAD("Resize", 13, "f32:1x1x4 - f32:3=1,1,1e38", "", "is not possible"),
    BAD("Resize", 13, "f32:1x1x4 - f32:2=1,1", "", "'scales' has 2 elements for 3 axes"),
    BAD("Resize", 13, "f32:1x1x4", "", "needs either 'scales' or 'sizes'"),
    BAD("Resize", 13, "f32:1x1x4 - f32:3=1,1,1 i64:3=1,1,4", "", "needs either 'scales' or 'sizes'"),
    BAD("Resize", 13, "f32:1x1x0 - - i64:3=1,1,4", "", "of axis 2 of shape 1x1x0 to 4 elements is not possible"),
    BAD("Resize", 13, "f32:1x1x4 - - i64:3=1,1,-4", "", "to -4 elements"),
    BAD("Resize", 13, "f32:4 - f32:1=2", "coordinate_transformation_mode:s=tf_crop_and_resize", "needs 'roi'"),
    UNKNOWN("Resize", 13, "f32:4 - f32:1", "", "scales (input 2)"),
    UNKNOWN("Resize", 13, "f32:4 - - i64:1", "", "sizes (input 3)"),
    GOOD("Resize", 10, "f32:4x4 f32:2=2,0.5", "", "f32:8x2"),
    BAD("Upsample", 9, "f32:4 f32:1=0.5", "", "Upsample cannot scale axis 0 by 0.5"),
    GOOD("Upsample", 7, "f32:4", "scales:fs=1.5", "f32:6"),
};

static void check_outputs(const infer_row *row, const op_node *n)
{
    char word[512];
    unsigned char data[8];
    const char *text = row->outputs;
    for (size_t i = 0; op_text_word(&text, ' ', word, sizeof word); i++) {
        rnl_tensor_desc want = op_text_tensor(word, data);
        const rnl_tensor_desc *got = &n->outputs[i];
        ck_assert_msg(got->dtype == want.dtype && got->rank == want.rank &&
                          memcmp(got->shape, want.shape, want.rank * sizeof *want.shape) == 0,
                      "%s(%s): output %zu is %s %s, not %s", row->op_type, row->inputs, i, rnl_dtype_name(got->dtype),
                      rnl_shape_format(got->shape, got->rank).text, word);
    }
}

static void check_row(const infer_row *row)
{
    size_t outputs = 1;
    op_text *t = malloc(sizeof *t);
    for (const char *at = row->outputs; at && (at = strchr(at, ' ')); at++)
        outputs++;
    op_text_init(t, row->op_type, row->opset, row->inputs, row->attributes, outputs);
    rnl_status status = op_node_infer(&t->n);
    ck_assert_msg(status == row->status, "%s(%s; %s): %s %s", row->op_type, row->inputs, row->attributes,
                  rnl_status_name(status), status == RNL_OK ? "" : rnl_last_error()->message);
    if (status == RNL_OK)
        check_outputs(row, &t->n);
    else
        ck_assert_msg(strstr(rnl_last_error()->message, row->message) != NULL, "%s(%s; %s): %s", row->op_type,
                      row->inputs, row->attributes, rnl_last_error()->message);
    free(t);
}

#define TABLE_TEST(table)                                                                                              \
    START_TEST(table##_rows)                                                                                           \
    {                                                                                                                  \
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                                      \
            check_row(&table[i]);                                                                                      \
    }                                                                                                                  \
    END_TEST
TABLE_TEST(elementwise)
TABLE_TEST(shapes)
TABLE_TEST(pieces)
TABLE_TEST(windows)
TABLE_TEST(tensors)

int main(void)
{
    Suite *suite = suite_create("op_infer");
    TCase *tests = tcase_create("infer");
    tcase_add_test(tests, elementwise_rows);
    tcase_add_test(tests, shapes_rows);
    tcase_add_test(tests, pieces_rows);
    tcase_add_test(tests, windows_rows);
    tcase_add_test(tests, tensors_rows);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
