#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of fuzz_quantize: small models that have what the quantizer folds, joins, moves and upgrades.

Needs the package onnx. Run it only to change the corpus: python tests/fuzz/make_corpus_quantize.py tests/fuzz/corpus_quantize
"""

import sys
from pathlib import Path

import numpy as np
from make_corpus import graph, info, model
from onnx import TensorProto, helper, numpy_helper


def tensor(name, *shape, dtype=np.float32):
    return numpy_helper.from_array((np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 - 1).astype(dtype), name)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}", **attributes)


def net(nodes, tensors, shape=(1, 2, 4, 4), opset=13):
    return model(graph(nodes, tensors, [info("x", shape)], [info("y", None)]), opset)


def convolutions():
    kernel, bias, channels = tensor("w", 3, 2, 3, 3), tensor("b", 3), tensor("c", 3, 1, 1)
    conv = node("Conv", "x w b", "a", pads=[1] * 4)
    yield "conv_relu", net([conv, node("Relu", "a", "y")], [kernel, bias])
    norm = [tensor(name, 3) for name in ("s", "m", "t")]
    norm.append(numpy_helper.from_array(np.ones(3, np.float32), "v"))
    yield "conv_normalization", net([conv, node("BatchNormalization", "a s t m v", "n"), node("Clip", "n", "y")],
                                    [kernel, bias, *norm])
    for op in ("Mul", "Add", "Sub", "Div"):
        yield f"conv_{op.lower()}", net([conv, node(op, "a c", "y")], [kernel, bias, channels])
    second = tensor("k", 3, 3, 1, 1)
    yield "residual", net([conv, node("Conv", "a k", "d"), node("Add", "a d", "e"), node("MaxPool", "e", "f",
                                                                                        kernel_shape=[2, 2]),
                           node("Concat", "f f", "g", axis=1), node("Sigmoid", "g", "h"),
                           node("Conv", "h q", "y")], [kernel, bias, second, tensor("q", 1, 6, 1, 1)])
    constant = helper.make_node("Constant", [], ["w"], value=kernel)
    yield "conv_constant", net([constant, node("Conv", "x w", "y")], [])
    external = tensor("w", 3, 2, 3, 3)
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="w.bin")
    yield "conv_external", net([node("Conv", "x w", "y")], [external])


def products():
    yield "matmul", net([node("MatMul", "x w", "y")], [tensor("w", 4, 3)], (2, 4))
    yield "gemm", net([node("Gemm", "x w b", "y", transB=1)], [tensor("w", 3, 4), tensor("b", 3)], (2, 4))
    yield "chain", net([node("Gemm", "x w b", "a"), node("Relu", "a", "h"), node("MatMul", "h v", "y")],
                       [tensor("w", 4, 3), tensor("b", 1, 3), tensor("v", 3, 2)], (2, 4))


def upgrades():
    """Attributes that have become inputs by opset 13, before and behind a product."""
    weights = tensor("w", 4, 3)
    tails = {"squeeze": ("Squeeze", {"axes": [0]}), "unsqueeze": ("Unsqueeze", {"axes": [0]}),
             "sum": ("ReduceSum", {"axes": [1]}), "clip": ("Clip", {"min": 0.0, "max": 6.0}),
             "slice": ("Slice", {"starts": [0], "ends": [1], "axes": [1]}),
             "pad": ("Pad", {"pads": [0, 1, 0, 1], "value": 1.0}), "softmax": ("Softmax", {"axis": 1}),
             "dropout": ("Dropout", {"ratio": 0.5}), "flatten": ("Flatten", {"axis": 1})}
    for name, (op, attributes) in tails.items():
        yield f"opset9_{name}", net([node("MatMul", "x w", "a"), node(op, "a", "y", **attributes)], [weights], (1, 4),
                                    9)
    split = helper.make_node("Split", ["a"], ["p", "y"], axis=1, split=[1, 2])
    yield "opset11_split", net([node("MatMul", "x w", "a"), split], [weights], (1, 4), 11)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family in (convolutions, products, upgrades):
        for name, proto in family():
            (folder / f"{name}.onnx").write_bytes(proto.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
