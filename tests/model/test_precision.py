# SPDX-License-Identifier: Apache-2.0
"""float32 models with bfloat16 factors, against onnxruntime's float32.

The networks are linear or nearly so: rounding a value by 2^-9 of itself changes a result by at most 2^-9 of what the
network gives for absolute inputs, weights and biases. Inputs, weights and results are rounded in each layer.
"""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

F32, BF16 = 1, 2


class Net:
    """Nodes with random weights; `absolute` makes the network of absolute values."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.depth = [], [], 0

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights.append((name, self.random.standard_normal(shape).astype(np.float32)))
        return name

    def add(self, op_type, *inputs, layer=True, output=None, **attributes):
        output = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], **attributes))
        self.depth += layer
        return output

    def conv(self, source, filters, channels, size=1, groups=1, bias=True, **attributes):
        inputs = [source, self.weight(filters, channels // groups, size, size)] + ([self.weight(filters)] if bias else [])
        pads = attributes.pop("pads", [size // 2] * 4)
        return self.add("Conv", *inputs, group=groups, pads=pads, **attributes)

    def constant(self, values):
        name = f"c{len(self.weights)}"
        self.weights.append((name, np.array(values, np.int64)))
        return name

    def model(self, shape, outputs, absolute=False):
        def value(array):
            return np.abs(array) if absolute and array.dtype == np.float32 else array

        def rows(names, shapes):
            return [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in zip(names, shapes)]

        graph = helper.make_graph(self.nodes, "net", rows(["x"], [shape]), rows(outputs, [None] * len(outputs)),
                                  [numpy_helper.from_array(value(array), name) for name, array in self.weights])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return made.SerializeToString()


class PrecisionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_with(self, model, x, precision):
        session = runnel.Session(self.device, model, precision=precision)
        try:
            return session.run({"x": x}), session.model_stats().weight_bytes
        finally:
            session.close()

    @staticmethod
    def expect(model, x):
        return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})

    def check(self, net, shape, outputs=("y",)):
        x = net.random.standard_normal(shape).astype(np.float32)
        model = net.model(shape, outputs)
        expected = self.expect(model, x)
        largest = self.expect(net.model(shape, outputs, absolute=True), np.abs(x))
        got, bytes_now = self.run_with(model, x, BF16)
        plain, bytes_plain = self.run_with(model, x, F32)
        growth = (1 + 2.0**-9) ** (3 * net.depth) * 1.0001 - 1
        for name, right, most in zip(outputs, expected, largest):
            self.assertEqual(got[name].dtype, np.float32)
            self.assertLessEqual(float(np.max(np.abs(got[name] - right) / most)), growth)
        if bytes_now == bytes_plain:  # the device cannot
            for name in outputs:
                np.testing.assert_array_equal(got[name], plain[name])
        return bytes_now < bytes_plain, got, plain

    def test_products(self):
        net = Net()
        t = net.add("MatMul", "x", net.weight(24, 40))
        t = net.add("Add", t, net.weight(40))
        t = net.add("Relu", t, layer=False)
        t = net.add("MatMul", t, net.weight(40, 24))
        t = net.add("Add", t, "x")
        net.add("MatMul", t, net.weight(24, 7), output="y")
        self.check(net, (2, 9, 24))

    def test_gemm(self):
        net = Net(1)
        t = net.add("Gemm", "x", net.weight(33, 16), net.weight(33), transB=1)
        t = net.add("Relu", t, layer=False)
        t = net.add("Gemm", t, net.weight(33, 18), net.weight(18))  # odd: float32
        net.add("Gemm", t, net.weight(18, 20), net.weight(20), alpha=0.5, beta=2.0, output="y")
        self.check(net, (5, 16))

    def bottleneck(self, net, source, channels):
        t = net.add("Relu", net.conv(source, 8, channels), layer=False)
        t = net.add("Relu", net.conv(t, 8, 8, 3), layer=False)
        t = net.conv(t, channels, 8)
        return net.add("Relu", net.add("Add", t, source), layer=False)

    def test_residual_network(self):
        net = Net(2)
        t = net.add("Relu", net.conv("x", 20, 3, 3, strides=[2, 2]), layer=False)
        t = net.add("MaxPool", t, kernel_shape=[2, 2], strides=[2, 2], layer=False)
        t = self.bottleneck(net, self.bottleneck(net, t, 20), 20)
        t = net.add("Flatten", net.add("GlobalAveragePool", t), layer=False)
        net.add("Gemm", t, net.weight(20, 10), net.weight(10), output="y")
        self.check(net, (2, 3, 21, 18))

    def test_winograd(self):
        """Where it is chosen it reads and writes bfloat16 and multiplies float32."""
        net = Net(3)
        t = net.conv("x", 32, 32)
        t = net.conv(net.conv(t, 32, 32, 3), 32, 32, 3)
        net.conv(t, 8, 32)
        net.nodes[-1].output[0] = "y"
        self.check(net, (1, 32, 24, 24))

    def test_inverted_residual(self):
        net = Net(4)
        t = net.conv("x", 12, 4)
        t = net.add("Relu", net.conv(t, 12, 12, 3, groups=12), layer=False)
        t = net.conv(t, 6, 12)
        t = net.add("Relu", net.conv(t, 36, 6, bias=False), layer=False)
        t = net.add("Relu", net.conv(t, 36, 36, 3, groups=36, strides=[2, 2]), layer=False)
        net.conv(t, 6, 36)
        net.nodes[-1].output[0] = "y"
        self.check(net, (1, 4, 9, 11))

    def test_groups_and_windows(self):
        net = Net(5)
        t = net.conv("x", 24, 16, 3, groups=2, strides=[2, 1])
        t = net.conv(t, 10, 24, 3, dilations=[2, 2], pads=[2, 2, 2, 2])
        t = net.conv(t, 10, 10, 5, groups=5)
        net.conv(t, 17, 10)
        net.nodes[-1].output[0] = "y"
        self.check(net, (2, 16, 10, 9))

    def test_other_readers(self):
        """Values between convolutions that others read as well, and outputs of the graph among them."""
        net = Net(6)
        a = net.conv("x", 8, 8)
        b = net.add("Relu", net.conv(a, 8, 8), layer=False)
        c = net.add("Concat", a, b, axis=1, layer=False)
        d = net.conv(c, 12, 16)
        net.add("Transpose", d, perm=[0, 2, 3, 1], layer=False, output="turned")
        e = net.add("Slice", d, net.constant([1]), net.constant([9]), net.constant([1]), layer=False)
        net.conv(e, 5, 8)
        net.nodes[-1].output[0] = "y"
        f = net.add("Reshape", b, net.constant([2, 8, 30]), layer=False)
        net.add("MatMul", f, net.weight(30, 9), output="rows")
        net.add("AveragePool", d, kernel_shape=[2, 2], output="pooled")
        net.add("Identity", b, layer=False, output="same")
        self.check(net, (2, 8, 5, 6), ("y", "turned", "rows", "pooled", "same"))

    def test_padded(self):
        net = Net(7)
        a = net.conv("x", 8, 8)
        b = net.add("Pad", a, net.constant([0, 0, 1, 2, 0, 0, 0, 1]), layer=False)
        net.conv(b, 9, 8, 3, pads=[0, 0, 0, 0])
        net.nodes[-1].output[0] = "y"
        self.check(net, (1, 8, 6, 7))

    def test_branches(self):
        """A graph within the graph has the root's precision."""
        net = Net(8)
        weight = net.weight(8, 8)
        inner = helper.make_graph([helper.make_node("MatMul", ["t0", weight], ["z"])], "inner", [],
                                  [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
        t = net.add("MatMul", "x", net.weight(8, 8))
        total = net.add("ReduceMax", net.add("Abs", t, layer=False), layer=False, keepdims=0)
        zero = net.weight()
        condition = net.add("GreaterOrEqual", total, net.add("Sub", zero, zero, layer=False), layer=False)
        net.add("If", condition, output="y", then_branch=inner, else_branch=inner)
        self.check(net, (4, 8))

    def attend(self, net, source, width, heads):
        """Attention that is written out; queries and the others as heads."""
        def split(value, perm):
            t = net.add("Reshape", value, net.constant([0, 0, heads, width // heads]))
            return net.add("Transpose", t, perm=perm)

        scale = net.weight(1)
        net.weights[-1] = (scale, np.array([(width // heads) ** -0.5], np.float32))
        q, k, v = (net.add("MatMul", source, net.weight(width, width)) for _ in range(3))
        scores = net.add("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        shares = net.add("Softmax", net.add("Mul", scores, scale), axis=-1)
        t = net.add("Transpose", net.add("MatMul", shares, split(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        return net.add("MatMul", net.add("Reshape", t, net.constant([0, 0, width])), net.weight(width, width))

    def test_encoder(self):
        """Attention and normalizations are not linear: what is off is some roundings of the largest value."""
        width = 48
        net = Net(12)
        t = net.add("LayerNormalization", "x", net.weight(width), net.weight(width))
        t = net.add("Add", self.attend(net, t, width, 3), t)
        t = net.add("LayerNormalization", t, net.weight(width), net.weight(width))
        t = net.add("Add", net.add("MatMul", t, net.weight(width, width)), t)
        net.add("LayerNormalization", t, net.weight(width), net.weight(width), output="y")
        net.weights = [(name, array * np.float32(width**-0.5) if array.ndim == 2 else array)
                       for name, array in net.weights]
        model, x = net.model((2, 21, width), ["y"]), net.random.standard_normal((2, 21, width)).astype(np.float32)
        right, = self.expect(model, x)
        got, _ = self.run_with(model, x, BF16)
        off = np.abs(got["y"] - right) / np.abs(right).max()
        self.assertLessEqual(float(off.max()), 2.0**-7)
        self.assertLessEqual(float(off.mean()), 2.0**-10)

    def test_special_values(self):
        """NaN and infinity stay within their rows."""
        net = Net(9)
        net.add("MatMul", "x", net.weight(16, 20), output="y")
        x = net.random.standard_normal((5, 16)).astype(np.float32)
        x[1, 3], x[2, 7], x[3, 0] = np.nan, np.inf, 3e38
        got, _ = self.run_with(net.model((5, 16), ["y"]), x, BF16)
        self.assertTrue(np.isnan(got["y"][1]).all())
        self.assertFalse(np.isfinite(got["y"][2]).any())
        self.assertTrue(np.isfinite(got["y"][[0, 4]]).all())

    def test_without_the_instruction(self):
        net = Net(10)
        net.add("MatMul", "x", net.weight(16, 20), output="y")
        model, x = net.model((5, 16), ["y"]), net.random.standard_normal((5, 16)).astype(np.float32)
        plain, bytes_plain = self.run_with(model, x, F32)
        os.environ["RUNNEL_INSTRUCTIONS"] = "off"
        try:
            got, bytes_now = self.run_with(model, x, BF16)
        finally:
            del os.environ["RUNNEL_INSTRUCTIONS"]
        self.assertEqual(bytes_now, bytes_plain)
        np.testing.assert_array_equal(got["y"], plain["y"])

    def test_no_such_precision(self):
        net = Net(11)
        net.add("MatMul", "x", net.weight(16, 20), output="y")
        with self.assertRaisesRegex(runnel.Failure, "no precision has number 7"):
            runnel.Session(self.device, net.model((5, 16), ["y"]), precision=7)


if __name__ == "__main__":
    unittest.main()
