# SPDX-License-Identifier: Apache-2.0
"""Known architectures as torch's exporter writes them (opset 17, BatchNormalization folded), filled with random weights.

The weights come from tools/fill_models.py: the same file each time, scaled so that signals keep their size from layer to
layer; what they predict means nothing. The batch is free.
"""

import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import fill_models  # noqa: E402

SEED = 1
LINEAR = math.sqrt(fill_models.PASSED)  # the gain where the input was not rectified: all of its variance is left
BRANCH = 0.3                            # of the last layer of a residual branch: each sum adds variances


class Graph:
    """Nodes and weights, named by counting."""

    def __init__(self, name):
        self.name, self.nodes, self.weights = name, [], []

    def add(self, operator, *inputs, **attributes):
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], output, **attributes))
        return output

    def constant(self, array):
        name = f"{self.name}.{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def filters(self, shape, gain):
        return self.constant(fill_models.filters(f"{self.name}.{len(self.weights)}", shape, SEED, gain))

    def values(self, role, shape):
        return self.constant(fill_models.values_for(f"{self.name}.{len(self.weights)}", role, shape, SEED, 1.0))

    def integers(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def scalar(self, number):
        return self.constant(np.array(number, np.float32))

    def save(self, path, source, target):
        """`source` and `target`, which the last node gives: (name, type, shape), the first size of which is the batch."""
        self.nodes[-1].output[0] = target[0]
        graph = helper.make_graph(self.nodes, self.name, [helper.make_tensor_value_info(*source)],
                                  [helper.make_tensor_value_info(*target)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True))
        onnx.save(model, path)


def convolve(g, x, shape, stride=1, groups=1, gain=1.0):
    """`shape`: outputs, inputs of a group, width of the square filter."""
    outputs, inputs, width = shape
    pad = 0 if stride == width else width // 2
    return g.add("Conv", x, g.filters((outputs, inputs, width, width), gain), g.values("shift", (outputs,)), group=groups,
                 kernel_shape=[width, width], strides=[stride, stride], pads=[pad] * 4, dilations=[1, 1])


def classify(g, x, channels, gain):
    """1000 classes from pictures."""
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    return g.add("Gemm", x, g.filters((1000, channels), gain), g.values("shift", (1000,)), transB=1)


def save_classifier(g, path):
    g.save(path, ("input", TensorProto.FLOAT, ["N", 3, 224, 224]), ("output", TensorProto.FLOAT, ["N", 1000]))


def resnet18(path):
    g = Graph("resnet18")
    x = g.add("Relu", convolve(g, "input", (64, 3, 7), 2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and outputs != 64 else 1
            y = g.add("Relu", convolve(g, x, (outputs, inputs, 3), stride))
            y = convolve(g, y, (outputs, outputs, 3), gain=BRANCH)
            if stride == 2:
                x = g.add("Conv", x, g.filters((outputs, inputs, 1, 1), 1.0), g.values("shift", (outputs,)),
                          kernel_shape=[1, 1], strides=[2, 2])
            x = g.add("Relu", g.add("Add", y, x))
            inputs = outputs
    classify(g, x, 512, 4.0)
    save_classifier(g, path)


def fire(g, x, inputs, narrow, wide):
    x = g.add("Relu", convolve(g, x, (narrow, inputs, 1)))
    parts = [g.add("Relu", convolve(g, x, (wide, narrow, width))) for width in (1, 3)]
    return g.add("Concat", *parts, axis=1)


def squeezenet1_1(path):
    g = Graph("squeezenet1_1")
    weight, bias = g.filters((64, 3, 3, 3), 1.0), g.values("shift", (64,))
    x = g.add("Relu", g.add("Conv", "input", weight, bias, kernel_shape=[3, 3], strides=[2, 2]))
    inputs = 64
    for index, (narrow, wide) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256),
                                            (64, 256))):
        if index in (0, 2, 4):
            x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        x, inputs = fire(g, x, inputs, narrow, wide), 2 * wide
    x = g.add("Relu", convolve(g, x, (1000, inputs, 1)))
    g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    save_classifier(g, path)


def clip(g, x, limits):
    return g.add("Clip", x, *limits)


def inverted_residual(g, x, inputs, outputs, stride, expand, limits):
    y, wide = x, inputs * expand
    if expand != 1:
        y = clip(g, convolve(g, y, (wide, inputs, 1), gain=LINEAR), limits)
    y = clip(g, convolve(g, y, (wide, 1, 3), stride, groups=wide), limits)
    joins = stride == 1 and inputs == outputs
    y = convolve(g, y, (outputs, wide, 1), gain=BRANCH if joins else 1.0)
    return g.add("Add", x, y) if joins else y


def mobilenetv2(path):
    g = Graph("mobilenetv2")
    limits = g.scalar(0), g.scalar(6)
    x, inputs = clip(g, convolve(g, "input", (32, 3, 3), 2), limits), 32
    for expand, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            x = inverted_residual(g, x, inputs, outputs, stride if block == 0 else 1, expand, limits)
            inputs = outputs
    x = clip(g, convolve(g, x, (1280, 320, 1), gain=LINEAR), limits)
    classify(g, x, 1280, 8.0)
    save_classifier(g, path)


def linear(g, x, inputs, outputs, gain=LINEAR):
    weight = fill_models.filters(f"{g.name}.{len(g.weights)}", (outputs, inputs), SEED, gain)
    return g.add("Add", g.values("shift", (outputs,)), g.add("MatMul", x, g.constant(weight.T)))


def layer_norm(g, x, width):
    return g.add("LayerNormalization", x, g.values("scale", (width,)), g.values("shift", (width,)), axis=-1, epsilon=1e-5)


def gelu(g, x):
    y = g.add("Erf", g.add("Div", x, g.scalar(math.sqrt(2))))
    return g.add("Mul", g.add("Mul", x, g.add("Add", y, g.scalar(1))), g.scalar(0.5))


def attend(g, query, key, value, length, width):
    """`query`, `value`: N x heads x length x size; `key`: N x heads x size x length."""
    scores = g.add("Softmax", g.add("MatMul", query, key), axis=-1)
    x = g.add("Transpose", g.add("MatMul", scores, value), perm=[0, 2, 1, 3])
    return g.add("Reshape", x, g.integers(0, length, width))


def minilm_layer(g, x, length, width, heads):
    def split(gain, perm):
        parts = g.add("Reshape", linear(g, x, width, width, gain), g.integers(0, length, heads, width // heads))
        return g.add("Transpose", parts, perm=perm)

    query, key = split(LINEAR, [0, 2, 1, 3]), split(LINEAR, [0, 2, 3, 1])
    query = g.add("Div", query, g.scalar(math.sqrt(width // heads)))
    y = attend(g, query, key, split(LINEAR, [0, 2, 1, 3]), length, width)
    x = layer_norm(g, g.add("Add", linear(g, y, width, width), x), width)
    y = linear(g, gelu(g, linear(g, x, width, 4 * width)), 4 * width, width)
    return layer_norm(g, g.add("Add", y, x), width)


def minilm(path, layers=6, width=384, heads=12, length=128, words=30522):
    """Words in, no mask; what comes out is the last layer's state of each."""
    g = Graph("minilm")
    x = g.add("Gather", g.values("shift", (words, width)), "input_ids")
    x = layer_norm(g, g.add("Add", x, g.values("shift", (1, length, width))), width)
    for _ in range(layers):
        x = minilm_layer(g, x, length, width, heads)
    g.save(path, ("input_ids", TensorProto.INT64, ["N", length]),
           ("last_hidden_state", TensorProto.FLOAT, ["N", length, width]))


def vit_layer(g, x, length, width, heads):
    size = width // heads
    y = linear(g, layer_norm(g, x, width), width, 3 * width)
    y = g.add("Transpose", g.add("Reshape", y, g.integers(0, length, 3, heads, size)), perm=[2, 0, 3, 1, 4])
    query, key, value = (g.add("Gather", y, g.constant(np.array(index)), axis=0) for index in range(3))
    query = g.add("Mul", query, g.scalar(size ** -0.5))
    key = g.add("Transpose", key, perm=[0, 1, 3, 2])
    x = g.add("Add", x, linear(g, attend(g, query, key, value, length, width), width, width))
    y = gelu(g, linear(g, layer_norm(g, x, width), width, 4 * width))
    return g.add("Add", x, linear(g, y, 4 * width, width))


def vit_tiny(path, layers=12, width=192, heads=3):
    """ViT-Ti/16 for pictures of 224 x 224: 196 patches and the token of the class."""
    g = Graph("vit_tiny")
    patches = convolve(g, "input", (width, 3, 16), 16, gain=LINEAR)
    patches = g.add("Transpose", g.add("Reshape", patches, g.integers(0, width, 196)), perm=[0, 2, 1])
    batch = g.add("Slice", g.add("Shape", "input"), g.integers(0), g.integers(1), g.integers(0))
    token = g.add("Expand", g.values("shift", (1, 1, width)), g.add("Concat", batch, g.integers(1, width), axis=0))
    x = g.add("Add", g.add("Concat", token, patches, axis=1), g.values("shift", (1, 197, width)))
    for _ in range(layers):
        x = vit_layer(g, x, 197, width, heads)
    x = g.add("Gather", layer_norm(g, x, width), g.constant(np.array(0)), axis=1)
    g.add("Gemm", x, g.filters((1000, width), LINEAR), g.values("shift", (1000,)), transB=1)
    save_classifier(g, path)


BUILDERS = {"resnet18": resnet18, "squeezenet1_1": squeezenet1_1, "mobilenetv2": mobilenetv2, "minilm": minilm,
            "vit_tiny": vit_tiny}


def build(name, path):
    """Writes the model unless it is there."""
    if not os.path.exists(path):
        BUILDERS[name](path + ".part")
        os.replace(path + ".part", path)
    return path
