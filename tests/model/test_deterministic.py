# SPDX-License-Identifier: Apache-2.0
"""RUNNEL_DETERMINISTIC: an item's result has the same bits alone and in any batch, at any place of it."""

import os
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from runnel import EACH, Device, Library, Session  # noqa: E402

ITEMS = 16
BATCHES = ([5], [11], [5, 0], [9, 2, 5], [6, 5, 4, 3, 2, 1, 0], [8, 9, 10, 11, 12, 13, 14, 5], list(range(15, -1, -1)))


class Net:
    """A graph under construction; weights are random, and the same in each run."""

    def __init__(self, seed=1):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], []
        self.count = 0

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        depth = np.prod(shape[1:]) if len(shape) != 2 else shape[0]
        return self.constant((self.random.standard_normal(shape) / np.sqrt(depth)).astype(np.float32))

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        domain = attributes.pop("domain", "")
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, channels, filters, size, groups=1, bias=True, **more):
        pads = [size // 2] * 4
        inputs = [x, self.weight(filters, channels // groups, size, size)]
        if bias:
            inputs.append(self.weight(filters, 1))
            self.constants[-1].dims[:] = [filters]
        return self.add("Conv", *inputs, kernel_shape=[size, size], pads=pads, group=groups, **more)

    def save(self, *outputs):
        infos = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def images():
    """Plain, depthwise and single-pixel convolutions, pooling, a classifier."""
    net = Net()
    x = net.input("x", ["n", 3, 28, 28])
    x = net.add("Relu", net.conv(x, 3, 32, 3))
    x = net.add("Relu", net.conv(x, 32, 64, 3))
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Clip", net.conv(x, 64, 128, 1), net.constant(np.float32(0)), net.constant(np.float32(6)))
    y = net.add("Clip", net.conv(y, 128, 128, 3, groups=128), net.constant(np.float32(0)), net.constant(np.float32(6)))
    x = net.add("Add", net.conv(y, 128, 64, 1), x)
    x = net.add("AveragePool", net.conv(x, 64, 96, 3, strides=[2, 2]), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = net.add("InstanceNormalization", x, net.weight(96, 1), net.weight(96, 1))
    for constant in net.constants[-2:]:
        constant.dims[:] = [96]
    x = net.add("ConvTranspose", x, net.weight(96, 32, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Resize", x, "", net.constant(np.float32([1, 1, 1.5, 1.5])), mode="linear")
    x = net.add("LRN", x, size=5)
    x = net.add("GlobalAveragePool", x)
    x = net.add("Gemm", net.add("Flatten", x), net.weight(32, 40), net.weight(40), transB=0)
    return net.save((net.add("Softmax", x), TensorProto.FLOAT))


def encoder(heads=4, width=64, tokens=12, kind=TensorProto.FLOAT):
    """Attention as exporters write it, normalisations, GELU; and products of vectors that only a batch makes many."""
    net = Net(2)
    size = width // heads
    x = net.input("x", ["n", tokens, width])

    def dense(value, rows, columns):
        return net.add("Add", net.add("MatMul", value, net.weight(rows, columns)), net.weight(columns))

    def split(value, order):
        value = net.add("Reshape", value, net.constant(np.int64([0, 0, heads, size])))
        return net.add("Transpose", value, perm=order)

    for _ in range(2):
        q, k, v = (dense(x, width, width) for _ in range(3))
        scores = net.add("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        scores = net.add("Mul", scores, net.constant(np.float32(size**-0.5)))
        y = net.add("MatMul", net.add("Softmax", scores), split(v, [0, 2, 1, 3]))
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.constant(np.int64([0, 0, width])))
        x = net.add("LayerNormalization", net.add("Add", x, dense(y, width, width)), net.weight(width),
                    net.weight(width))
        y = dense(x, width, 4 * width)
        y = net.add("Mul", y, net.add("Add", net.add("Erf", net.add("Mul", y, net.constant(np.float32(0.7)))),
                                      net.constant(np.float32(1))))
        x = net.add("Add", x, dense(y, 4 * width, width))
    token = net.add("Gather", x, net.constant(np.int64(0)), axis=1)
    mean = net.add("ReduceMean", x, net.constant(np.int64([1])), keepdims=0)
    both = net.add("Tanh", net.add("Add", token, mean))
    table = net.add("Add", net.weight(width, 90), net.input("zero", []))  # not constant for the library
    return net.save((net.add("Softmax", net.add("MatMul", both, table)), TensorProto.FLOAT))


def halves():
    """float16, where what is fused is not rounded: broadcasting over a batch of one must not fuse more."""
    net = Net(5)
    x = net.add("Cast", net.input("x", ["n", 10, 32]), to=TensorProto.FLOAT16)

    def half(*shape):
        return net.constant((net.random.standard_normal(shape) / 4).astype(np.float16))

    x = net.add("Add", x, half(1, 10, 32))
    y = net.add("Mul", net.add("MatMul", x, half(32, 48)), half(1, 10, 48))
    y = net.add("Sigmoid", net.add("Add", y, half(10, 1)))
    y = net.add("ReduceSum", net.add("Exp", y), net.constant(np.int64([1])))
    y = net.add("LayerNormalization", y, half(48), half(48))
    y = net.add("MatMul", net.add("Reshape", y, net.constant(np.int64([0, -1]))), half(48, 20))
    return net.save((net.add("Cast", net.add("Softmax", y), to=TensorProto.FLOAT), TensorProto.FLOAT))


def choices():
    """Sizes at which a batch decides between Strassen's algorithm, Winograd's way and plain sums, on CPUs."""
    net = Net(6)
    x = net.add("Relu", net.conv(net.input("x", ["n", 256, 8, 8]), 256, 256, 1))
    x = net.add("Relu", net.conv(x, 256, 64, 3))
    x = net.add("Relu", net.conv(x, 64, 64, 3))
    x = net.add("Reshape", x, net.constant(np.int64([0, 16, 256])))
    return net.save((net.add("Tanh", net.add("MatMul", x, net.weight(256, 256))), TensorProto.FLOAT))


def recurrent():
    net = Net(3)
    x = net.add("Transpose", net.input("x", ["n", 6, 20]), perm=[1, 0, 2])
    y, last, _ = net.add("LSTM", x, net.weight(2, 96, 20), net.weight(2, 96, 24), net.weight(2, 192), hidden_size=24,
                         direction="bidirectional", outputs=3)
    y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.constant(np.int64([0, 0, 48])))
    z, _ = net.add("GRU", y, net.weight(1, 60, 48), net.weight(1, 60, 20), hidden_size=20, outputs=2)
    z = net.add("Transpose", net.add("Squeeze", z, net.constant(np.int64([1]))), perm=[1, 0, 2])
    return net.save((z, TensorProto.FLOAT), (net.add("Transpose", last, perm=[1, 0, 2]), TensorProto.FLOAT))


def quantised():
    """8-bit convolutions and products with floats before and behind."""
    net = Net(4)
    scale, zero = net.constant(np.float32(0.05)), net.constant(np.uint8(128))
    weight_scale, weight_zero = net.constant(np.float32(0.01)), net.constant(np.int8(0))

    def bytes_of(*shape):
        return net.constant(net.random.integers(-90, 90, shape).astype(np.int8))

    x = net.add("QuantizeLinear", net.input("x", ["n", 8, 12, 12]), scale, zero)
    x = net.add("QLinearConv", x, scale, zero, bytes_of(32, 8, 3, 3), weight_scale, weight_zero, scale, zero,
                pads=[1, 1, 1, 1])
    x = net.add("QLinearConv", x, scale, zero, bytes_of(32, 1, 3, 3), weight_scale, weight_zero, scale, zero, group=32)
    x = net.add("QLinearConv", x, scale, zero, bytes_of(48, 32, 1, 1), weight_scale, weight_zero, scale, zero)
    y = net.add("GlobalAveragePool", net.add("DequantizeLinear", x, scale, zero))
    y = net.add("QuantizeLinear", net.add("Flatten", y), scale, zero)
    y = net.add("QLinearMatMul", y, scale, zero, bytes_of(48, 36), weight_scale, weight_zero, scale, zero)
    y = net.add("DequantizeLinear", y, scale, zero)
    packed = net.constant(net.random.integers(0, 255, (24, 2, 16)).astype(np.uint8))
    scales = net.constant(net.random.random(48).astype(np.float32))
    padded = net.add("Pad", y, net.constant(np.int64([0, 0, 0, 28])))
    y = net.add("MatMulNBits", padded, packed, scales, K=64, N=24, bits=4, block_size=32, domain="com.microsoft")
    return net.save((net.add("Sigmoid", y), TensorProto.FLOAT))


class DeterministicTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.setdefault("RUNNEL_DETERMINISTIC", "1")
        cls.device = Device(Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()
        del os.environ["RUNNEL_DETERMINISTIC"]

    def check(self, model, *shape, more=None):
        items = np.random.default_rng(7).standard_normal((ITEMS, *shape)).astype(np.float32)
        session = Session(self.device, model)
        try:
            alone = {}
            for batch in BATCHES:
                results = session.run({"x": items[batch], **(more or {})})
                for at, item in enumerate(batch):
                    for name, result in results.items():
                        first = alone.setdefault((name, item), result[at].tobytes())
                        self.assertEqual(first, result[at].tobytes(), f"{name}: item {item} in a batch of {len(batch)}")
        finally:
            session.close()

    @unittest.skipIf(EACH > 1, "compiles for long")
    def test_images(self):
        self.check(images(), 3, 28, 28)

    @unittest.skipIf("RUNNEL_TEST_SMALL" in os.environ, "compiles for long")
    def test_encoder(self):
        self.check(encoder(), 12, 64, more={"zero": np.float32(0)})

    def test_halves(self):
        self.check(halves(), 10, 32)

    @unittest.skipIf("RUNNEL_TEST_SMALL" in os.environ, "computes for long")
    def test_choices(self):
        self.check(choices(), 256, 8, 8)

    @unittest.skipIf(EACH > 1, "compiles for long")
    def test_recurrent(self):
        self.check(recurrent(), 6, 20)

    def test_quantised(self):
        self.check(quantised(), 8, 12, 12)


if __name__ == "__main__":
    unittest.main()
