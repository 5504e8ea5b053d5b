# SPDX-License-Identifier: Apache-2.0
"""Nodes of older opsets and of seeded random attributes: (name, node, opset, inputs)."""
import itertools

import numpy as np
from onnx import helper

RANDOM = np.random.default_rng(20)


def ints(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def case(name, op, opset, inputs, outputs=1, **attributes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    label = f"made_{op.lower()}_{opset}_{name}"
    return label, node, opset, inputs


def elementwise():
    a = np.array([[5, -7, 3], [-1, 2, 100]])
    b = np.array([2, -3, 4])
    types = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
    for dtype, op in itertools.product(types, "Add Sub Mul Div Max Min Mod Less Equal GreaterOrEqual".split()):
        x, y = (np.abs(a), np.abs(b)) if dtype.startswith("u") else (a, b)
        extra = {"fmod": 1} if op == "Mod" and dtype.startswith("f") else {}
        yield case(dtype, op, 14, [x.astype(dtype), y.astype(dtype)], **extra)
    for dtype, op in itertools.product(types, "Abs Neg Sign Relu Identity".split()):
        if not (dtype.startswith("u") and op in ("Neg", "Relu")):
            yield case(dtype, op, 14, [a.astype(dtype)])
    wrap = np.array([2**31 - 1, -(2**31), 5], np.int32)
    for op in ("Add", "Sub", "Mul"):
        yield case("wraps", op, 14, [wrap, np.array([7, 9, -3], np.int32)])
    for op in ("Add", "Sub", "Mul", "Div"):
        yield case("old", op, 7, [floats(2, 1, 3), floats(4, 1)])
    for op in ("Max", "Min", "Sum", "Mean"):
        yield case("three", op, 8, [floats(2, 1, 3), floats(4, 1), floats(3)])
        yield case("one", op, 8, [floats(2, 3)])
    for op, opset in itertools.product(("Less", "Greater"), (7, 9)):
        yield case("old", op, opset, [floats(3, 1), floats(4)])
    yield case("old", "Equal", 7, [ints(1, 2, 3), ints(1, 0, 3)])
    yield case("old", "Pow", 7, [np.abs(floats(3)), floats(2, 1)])
    yield case("mixed", "Pow", 12, [ints(2, 3, 4), np.array([2, 0, 3], np.int32)])
    yield case("float_exponent", "Pow", 13, [ints(2, 9), np.array([0.5, 1.5], np.float32)])
    yield case("old", "PRelu", 7, [floats(2, 3), floats(3)])
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 1e-30, 88, -88], np.float32)
    for op in "Floor Ceil Round Abs Neg Sign Exp Tanh Sigmoid Relu LeakyRelu Elu Softplus Softsign Reciprocal".split():
        yield case("special", op, 13, [special])
    for op in "Max Min".split():
        yield case("special", op, 13, [special[:, None], special])
    yield case("old", "Clip", 7, [special], min=-1.0, max=1.5)
    yield case("default", "Clip", 7, [special])
    yield case("one_bound", "Clip", 11, [special, None, np.array(0.25, np.float32)])
    yield case("crossed", "Clip", 12, [ints(1, 5, 9), np.array(7), np.array(4)])
    yield case("f16_default", "Clip", 13, [special.astype(np.float16)])
    for opset in (7, 10, 12, 13):
        inputs = [floats(3, 4)] + ([np.array(0.25, np.float32)] if opset >= 12 else [])
        yield case("inference", "Dropout", opset, inputs, outputs=2 if opset > 11 else 1)


def casts():
    source = np.array([[0, 1, 2, 3.7, -3.7, 100.5, 65519, 65520, 70000, 1e-8, 3e-8, 5.96e-8, 1 / 3, 2049, 2051]])
    types = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()
    for a, b in itertools.product(types, types):
        values = source
        if np.dtype(a).kind == "f" and np.dtype(b).kind in "iu":
            high = min(np.iinfo(b).max, 60000)
            values = source[(source >= (0 if b[0] == "u" else -4)) & (source < high)]
        elif np.dtype(a).kind in "iu":
            values = source[(source >= (0 if a[0] == "u" else -4)) & (source <= np.iinfo(a).max)]
        code = helper.np_dtype_to_tensor_dtype(np.dtype(b))
        yield case(f"{a}_{b}", "Cast", 13, [np.asarray(values).astype(a)], to=code)
    wide = np.array([2**24 + 1, 2**53 + 1, 2**60 + 2**36 + 1, -(2**62) - 12345, 2**63 - 1], np.int64)
    yield case("wide_float32", "Cast", 9, [wide], to=1)
    yield case("wide_float64", "Cast", 9, [wide], to=11)
    yield case("wide_int32", "Cast", 9, [wide], to=6)
    yield case("like", "CastLike", 15, [wide, np.zeros(0, np.float32)])


def shapes():
    x = floats(2, 1, 3, 1)
    yield case("attribute", "Squeeze", 7, [x], axes=[1])
    yield case("negative", "Squeeze", 11, [x], axes=[-1, 1])
    yield case("all", "Squeeze", 11, [x])
    yield case("all", "Squeeze", 13, [x])
    yield case("attribute", "Unsqueeze", 7, [x], axes=[0, 3])
    yield case("negative", "Unsqueeze", 11, [x], axes=[-1, 0])
    yield case("old", "Reshape", 7, [x, ints(0, -1)])
    yield case("empty", "Reshape", 14, [floats(0, 4), ints(2, 0)], allowzero=1)
    yield case("scalar", "Reshape", 13, [floats(1, 1), ints()])
    for opset, axis in ((7, 0), (7, 4), (9, 2), (11, -3), (13, -4)):
        yield case(f"axis{axis}", "Flatten", opset, [x], axis=axis)
    for start, end in ((-100, 2), (1, 100), (3, 1), (-3, -1)):
        yield case(f"{start}_{end}", "Shape", 15, [x], start=start, end=end)
    yield case("old", "Shape", 7, [x])
    yield case("scalar", "Size", 7, [np.array(3.0, np.float32)])
    yield case("empty", "Size", 13, [floats(0, 3)])
    yield case("default", "Transpose", 7, [x])
    yield case("bool", "Transpose", 13, [RANDOM.integers(0, 2, (2, 3, 4)).astype(bool)], perm=[2, 0, 1])
    yield case("both", "Expand", 8, [floats(3, 1), ints(2, 1, 4)])
    yield case("smaller", "Expand", 13, [floats(2, 3), ints(1)])
    yield case("zero", "Expand", 13, [floats(1), ints(0)])
    yield case("zero", "Tile", 13, [floats(2, 3), ints(0, 2)])
    yield case("int8", "Tile", 13, [np.arange(6, dtype=np.int8).reshape(2, 3), ints(2, 2)])
    yield case("default", "ConstantOfShape", 9, [ints(2, 3)])
    value = helper.make_tensor("value", 7, [1], [-5])
    yield case("int64", "ConstantOfShape", 9, [ints(0, 3)], value=value)
    yield case("scalar", "ConstantOfShape", 9, [ints()], value=value)
    for values in ((10, 4, -2), (0, 5, 2), (3, 3, 1), (3, 9, 3), (5, 0, 1), (0, -7, -3)):
        for dtype in (np.int64, np.int32, np.int16, np.float32, np.float64):
            yield case(f"{values}_{np.dtype(dtype).name}", "Range", 11, [np.array(v, dtype) for v in values])
    yield case("fractions", "Range", 11, [np.array(v, np.float32) for v in (0.0, 1.05, 0.1)])
    yield case("block", "DepthToSpace", 7, [floats(1, 8, 2, 3)], blocksize=2)
    yield case("block", "SpaceToDepth", 7, [floats(1, 2, 6, 3)], blocksize=3)


def joining():
    for opset, axis in ((7, 1), (11, -1), (13, 0)):
        parts = [floats(2, 3), floats(2, 3), floats(2, 3)]
        yield case(f"axis{axis}", "Concat", opset, parts, axis=axis)
    yield case("uneven", "Concat", 13, [ints(1, 2), ints(), ints(3)], axis=0)
    yield case("equal", "Split", 7, [floats(6, 2)], outputs=3)
    yield case("sizes", "Split", 11, [floats(2, 6)], outputs=3, axis=-1, split=[1, 2, 3])
    yield case("equal", "Split", 13, [floats(6, 2)], outputs=2)
    yield case("input", "Split", 13, [floats(6, 2), ints(0, 6)], outputs=2)
    yield case("uneven", "Split", 18, [floats(7)], outputs=4, num_outputs=4)
    for dtype in (np.int32, np.int64):
        yield case(np.dtype(dtype).name, "Gather", 11, [floats(2, 4, 3), np.array([[-1, 0], [2, -4]], dtype)], axis=1)
    yield case("scalar", "Gather", 7, [ints(5, 6, 7), np.array(2)])
    yield case("empty", "Gather", 13, [floats(3, 2), np.zeros((0, 2), np.int64)])


def slices():
    yield case("attributes", "Slice", 7, [floats(4, 5)], starts=[1, -3], ends=[3, 1000])
    yield case("axes", "Slice", 9, [floats(4, 5, 2)], starts=[-2], ends=[-1], axes=[1])
    for i in range(60):
        shape = RANDOM.integers(0, 6, RANDOM.integers(1, 4))
        count = int(RANDOM.integers(1, len(shape) + 1))
        axes = RANDOM.permutation(len(shape))[:count]
        bounds = RANDOM.integers(-8, 9, (2, count))
        steps = RANDOM.choice([-3, -2, -1, 1, 2, 3], count)
        dtype = RANDOM.choice([np.int32, np.int64])
        lists = [x.astype(dtype) for x in (bounds[0], bounds[1], axes, steps)]
        yield case(f"random{i}", "Slice", int(RANDOM.choice([10, 11, 13])), [floats(*shape), *lists])
    big = 2**63 - 1
    yield case("backwards", "Slice", 13, [floats(5), ints(-1), ints(-big - 1), ints(0), ints(-1)])
    yield case("far", "Slice", 13, [floats(5), ints(1), ints(big), ints(0), ints(big)])
    yield case("far_back", "Slice", 13, [floats(5), ints(-100), ints(-big), ints(0), ints(-2)])
    yield case("no_axes", "Slice", 10, [floats(3, 4), ints(1, 2), ints(2, 4)])
    yield case("steps", "Slice", 13, [floats(3, 4), ints(1, 2), ints(2, 4), None, ints(1, 2)])


def pads():
    for mode in ("constant", "reflect", "edge"):
        extra = {"value": 1.5} if mode == "constant" else {}
        yield case(mode, "Pad", 7, [floats(3, 4)], mode=mode, pads=[1, 0, 2, 3], **extra)
        yield case(f"{mode}_crop", "Pad", 7, [floats(3, 5)], mode=mode, pads=[-1, -2, 0, 1], **extra)
        yield case(mode, "Pad", 11, [floats(3, 4), ints(0, 2, 1, 1)], mode=mode)
        yield case(mode, "Pad", 13, [floats(3, 4), ints(0, -2, 1, 1)], mode=mode)
        yield case(f"{mode}_axes", "Pad", 18, [floats(3, 4), ints(2, 1), None, ints(-1)], mode=mode)
    yield case("wrap", "Pad", 19, [floats(3, 4), ints(4, 9, 3, 2)], mode="wrap")
    yield case("int", "Pad", 13, [np.arange(4), ints(1, 2), np.array(7)])
    yield case("beyond", "Pad", 13, [np.arange(5), ints(-6, 3)])


def reductions():
    ops = "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()
    x = np.abs(floats(2, 3, 4)) + 0.1
    for op, opset in itertools.product(ops, (7, 11, 13)):
        if op != "Sum" or opset < 13:
            yield case("axes", f"Reduce{op}", opset, [x], axes=[1] if opset < 11 else [-1, 0], keepdims=opset % 2)
            yield case("all", f"Reduce{op}", opset, [x])
    for op in ops:
        opset = 13 if op == "Sum" else 18
        yield case("input", f"Reduce{op}", opset, [x, ints(0, 2)], keepdims=0)
        yield case("noop", f"Reduce{op}", opset, [x], noop_with_empty_axes=1)
        yield case("empty_axes", f"Reduce{op}", opset, [x, ints()])
        for dtype in (np.int32, np.int64):
            yield case(np.dtype(dtype).name, f"Reduce{op}", opset, [np.array([[3, 5, -7], [1, 1, 12]], dtype), ints(1)])
    for op in ("Max", "Min"):
        for dtype in (np.int8, np.uint8):
            yield case(np.dtype(dtype).name, f"Reduce{op}", 18, [np.array([[3, 5, 7], [1, 1, 12]], dtype), ints(1)])
    yield case("empty", "ReduceSum", 13, [floats(2, 0, 3), ints(1)])
    yield case("empty", "ReduceProd", 18, [floats(2, 0), ints(1)])


def matrices():
    pairs = [((3,), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((5, 1, 2, 3), (4, 3, 2)), ((1, 3), (3, 1))]
    for a, b in pairs:
        yield case(f"{len(a)}d_{len(b)}d", "MatMul", 9, [floats(*a), floats(*b)])
    for opset, ta, tb, c in ((7, 0, 1, (4,)), (9, 1, 0, (2, 1)), (11, 1, 1, None), (13, 0, 0, ())):
        inputs = [floats(*((3, 2) if ta else (2, 3))), floats(*((4, 3) if tb else (3, 4)))]
        inputs += [] if c is None else [floats(*c)]
        yield case(f"{ta}{tb}", "Gemm", opset, inputs, transA=ta, transB=tb, alpha=0.5)
    for opset in (7, 9, 13):
        yield case("inference", "BatchNormalization", opset, [floats(2, 3, 4), *(np.abs(floats(4, 3)))])
        yield case("default", "Softmax", opset, [floats(2, 3, 4)])
        yield case("axis", "LogSoftmax", opset, [floats(2, 3, 4)], axis=2)
    yield case("axis1", "LayerNormalization", 17, [floats(2, 3, 4), floats(3, 4), floats(4)], axis=1, outputs=3)


def window_attributes(spatial, kernel, opset, pool):
    attributes = {"strides": RANDOM.integers(1, 4, spatial).tolist()}
    auto = RANDOM.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], p=[0.55, 0.15, 0.15, 0.15])
    if auto == "NOTSET":
        attributes["pads"] = [int(RANDOM.integers(0, k)) for k in kernel * 2]
    else:
        attributes["auto_pad"] = str(auto)
    if pool and opset >= 10:
        attributes["ceil_mode"] = int(RANDOM.integers(0, 2))
    return attributes


def pools():
    for i in range(120):
        op = str(RANDOM.choice(["MaxPool", "AveragePool"]))
        opset = int(RANDOM.choice([7, 8, 10, 11, 12, 19, 22]))
        spatial = int(RANDOM.integers(1, 4))
        kernel = RANDOM.integers(1, 4, spatial).tolist()
        attributes = window_attributes(spatial, kernel, opset, True)
        # onnxruntime's pooling forgets the dilation where it pads by itself: not a reference for that.
        if opset >= (19 if op == "AveragePool" else 10) and i % 2 and "SAME" not in attributes.get("auto_pad", ""):
            attributes["dilations"] = RANDOM.integers(1, 3, spatial).tolist()
        x = floats(1, 2, *RANDOM.integers(6, 11, spatial))
        outputs = 2 if op == "MaxPool" and opset >= 8 and i % 3 == 0 else 1
        yield case(f"random{i}", op, opset, [x], outputs=outputs, kernel_shape=kernel, **attributes)


def convolutions():
    for i in range(80):
        opset = int(RANDOM.choice([7, 11, 22]))
        spatial, group = int(RANDOM.integers(1, 4)), int(RANDOM.integers(1, 3))
        kernel = RANDOM.integers(1, 4, spatial).tolist()
        attributes = window_attributes(spatial, kernel, opset, False)
        attributes["dilations"] = RANDOM.integers(1, 3, spatial).tolist()
        size = RANDOM.integers(6, 10, spatial)
        yield case(f"random{i}", "Conv", opset, [floats(1, 2 * group, *size), floats(3 * group, 2, *kernel),
                   floats(3 * group)], group=group, **attributes)
    for i in range(60):
        opset = int(RANDOM.choice([7, 11, 22]))
        spatial, group = int(RANDOM.integers(1, 3)), int(RANDOM.integers(1, 3))
        kernel = RANDOM.integers(1, 5, spatial).tolist()
        attributes = window_attributes(spatial, [min(k, 2) for k in kernel], opset, False)
        if i % 3 == 0:
            attributes["output_padding"] = [int(RANDOM.integers(0, s)) for s in attributes["strides"]]
        size = RANDOM.integers(2, 6, spatial)
        if i % 3 == 1:
            full = [s * (n - 1) + k for s, n, k in zip(attributes["strides"], size.tolist(), kernel)]
            attributes["output_shape"] = [int(f - RANDOM.integers(0, k)) for f, k in zip(full, kernel)]
            attributes.pop("pads", None)
        yield case(f"random{i}", "ConvTranspose", opset, [floats(1, 2 * group, *size), floats(2 * group, 3, *kernel)],
                   group=group, **attributes)


def resizes():
    none = np.zeros(0, np.float32)
    for op, opset in (("Upsample", 9), ("Resize", 10)):
        yield case("nearest", op, opset, [floats(1, 2, 3, 5), np.array([1, 1, 1.5, 2], np.float32)])
        yield case("linear", op, opset, [floats(1, 2, 3, 5), np.array([1, 1, 2.4, 2], np.float32)], mode="linear")
    yield case("attribute", "Upsample", 7, [floats(1, 2, 3, 5)], scales=[1.0, 1.0, 2.0, 3.0])
    yield case("down", "Resize", 10, [floats(1, 1, 4, 7), np.array([1, 1, 0.6, 0.3], np.float32)])
    for i in range(40):
        opset = int(RANDOM.choice([11, 13, 18, 19]))
        mode = str(RANDOM.choice(["nearest", "linear", "cubic"]))
        x = floats(1, 1, *RANDOM.integers(4, 9, 2))
        roi = none if opset < 13 or i % 2 else None
        if i % 3:
            scales = np.array([1, 1, *RANDOM.uniform(0.3, 3, 2)], np.float32)
            inputs = [x, roi, scales]
        else:
            sizes = ints(1, 1, *RANDOM.integers(2, 15, 2))
            inputs = [x, roi, none if opset < 13 else None, sizes]
        yield case(f"random{i}", "Resize", opset, inputs, mode=mode)


def old_cases():
    for group in (elementwise, casts, shapes, joining, slices, pads, reductions, matrices, pools, convolutions,
                  resizes):
        yield from group()
