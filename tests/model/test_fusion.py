# SPDX-License-Identifier: Apache-2.0
"""What becomes one step: small graphs, compared with onnxruntime, and the number of their steps, counted by launches."""

import os
import sys
import unittest
from unittest import mock

import numpy as np
import onnxruntime
from onnx import TensorProto

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_views import Net, runnel  # noqa: E402

ACROSS = 2  # turning an image round where it comes in, and where it goes out


class FusionNet(Net):
    def scalar(self, value):
        return self.constant(np.float32(value))

    def batch_norm(self, x, count):
        random = self.random
        vectors = [random.uniform(0.5, 1.5, count), random.standard_normal(count), random.standard_normal(count),
                   random.uniform(0.5, 2, count)]
        return self.add("BatchNormalization", x, *[self.constant(v.astype(np.float32)) for v in vectors])

    def hard_swish(self, x):
        gate = self.add("Clip", self.add("Add", x, self.scalar(3)), self.scalar(0), self.scalar(6))
        return self.add("Div", self.add("Mul", x, gate), self.scalar(6))

    def gelu(self, x):
        half = self.add("Add", self.add("Erf", self.add("Div", x, self.scalar(np.sqrt(2)))), self.scalar(1))
        return self.add("Mul", self.add("Mul", x, half), self.scalar(0.5))


class FusionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_and_count(self, model, feed):
        session = runnel.Session(self.device, model)
        try:
            session.run(feed)
            before = self.device.stats().kernels_launched
            got = session.run(feed)
            return got, self.device.stats().kernels_launched - before
        finally:
            session.close()

    def products_take_chains(self):
        """They are a library's on GPUs, which ends with nothing."""
        net = FusionNet()
        net.output(net.add("Relu", net.add("MatMul", net.input(3, 8), net.weight(8, 8))))
        return self.run_and_count(net.model(), net.feed)[1] == 1

    def check(self, net, *outputs, steps=None, rtol=1e-4):
        net.output(*outputs)
        model = net.model()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, net.feed)
        got, launched = self.run_and_count(model, net.feed)
        for name, value in zip(net.outputs, expected):
            self.assertEqual(got[name].shape, value.shape, name)
            scale = max(1.0, float(np.abs(value).max(initial=0)))
            np.testing.assert_allclose(got[name], value, rtol=rtol, atol=rtol * scale / 10, err_msg=name)
        if steps is not None:
            self.assertEqual(launched, steps)

    # ---- behind a convolution ----

    def test_batch_norm_and_activation(self):
        for groups, transposed in ((1, False), (3, False), (12, False), (1, True), (3, True)):
            net = FusionNet()
            x = net.input(2, 12, 7, 5)
            if transposed:
                x, channels = net.add("ConvTranspose", x, net.weight(12, 6, 3, 3), group=groups), 6 * groups
            else:
                x, channels = net.conv(x, 12, 12, groups=groups), 12
            x = net.add("Mul", net.batch_norm(x, channels), net.weight(channels, 1, 1))
            self.check(net, net.add("Relu", net.add("Add", x, net.weight(channels, 1, 1))), steps=1 + ACROSS)

    def test_constants_before_a_bias(self):
        net = FusionNet()
        x = net.add("ConvTranspose", net.input(1, 5, 6, 6), net.weight(5, 7, 2, 2))
        x = net.batch_norm(net.add("Add", x, net.weight(1, 7, 1, 1)), 7)
        x = net.add("Sub", net.weight(7, 1, 1), net.add("Neg", net.add("Div", x, net.scalar(3))))
        self.check(net, net.add("Sigmoid", x), steps=1 + ACROSS)

    def test_written_out_activations(self):
        for kind in ("hard_swish", "gelu"):
            net = FusionNet()
            x = net.conv(net.input(1, 3, 9, 8), 3, 13, 1)
            self.check(net, getattr(net, kind)(net.batch_norm(x, 13)), steps=1 + ACROSS)

    def test_value_read_twice_within(self):
        net = FusionNet()
        x = net.conv(net.input(1, 3, 9, 8), 3, 16)
        self.check(net, net.add("Mul", x, net.add("Sigmoid", x)), steps=1 + ACROSS)

    def test_value_read_outside(self):
        net = FusionNet()
        x = net.conv(net.input(1, 3, 9, 8), 3, 16)
        pooled = net.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)
        self.check(net, net.add("Add", net.add("Relu", x), pooled), steps=1 + 1 + 1 + ACROSS)

    def test_inner_output(self):
        net = FusionNet()
        x = net.conv(net.input(1, 3, 9, 8), 3, 16)
        y = net.add("Relu", x)
        self.check(net, x, net.add("Tanh", y), steps=2 + 1 + ACROSS)

    def test_residual(self):
        net = FusionNet()
        x = net.add("Relu", net.conv(net.input(2, 3, 9, 8), 3, 16))
        y = net.add("Relu", net.batch_norm(net.conv(x, 16, 24), 24))
        y = net.batch_norm(net.conv(y, 24, 16), 16)
        self.check(net, net.add("Relu", net.add("Sum", y, x)), steps=3 + ACROSS)

    def test_two_convolutions_meet(self):
        net = FusionNet()
        x = net.input(2, 4, 9, 8)
        a = net.batch_norm(net.conv(x, 4, 10), 10)
        b = net.batch_norm(net.conv(x, 4, 10, 1), 10)
        self.check(net, net.add("Relu", net.add("Add", a, b)), steps=2 + ACROSS)

    # ---- around a depthwise convolution ----

    def depthwise(self, net, x, channels, kernel=3, stride=1):
        return net.conv(x, channels, channels, kernel, groups=channels, strides=[stride] * 2)

    @mock.patch.dict(os.environ, RUNNEL_CONV="block")  # on any number of threads
    def test_inverted_residual(self):
        net = FusionNet()
        x = net.add("Relu", net.conv(net.input(2, 3, 13, 9), 3, 10))
        y = net.hard_swish(net.batch_norm(net.conv(x, 10, 37, 1), 37))
        y = net.add("Relu", net.batch_norm(self.depthwise(net, y, 37), 37))
        y = net.add("Add", net.batch_norm(net.conv(y, 37, 10, 1), 10), x)
        y = net.add("Relu", net.conv(y, 10, 20, 1))
        y = net.add("Sigmoid", self.depthwise(net, y, 20, 5, 2))
        self.check(net, net.conv(y, 20, 7, 1), steps=3 + ACROSS)

    @mock.patch.dict(os.environ, RUNNEL_CONV="block")  # on any number of threads
    def test_separable_convolutions(self):
        net = FusionNet()
        x = net.add("Relu", self.depthwise(net, net.input(1, 8, 12, 11), 8))
        x = net.add("Relu", net.conv(x, 8, 17, 1))
        x = net.add("Relu", self.depthwise(net, x, 17, stride=2))
        self.check(net, net.add("Relu", net.conv(x, 17, 18, 1)), steps=2 + ACROSS)

    @mock.patch.dict(os.environ, RUNNEL_CONV="block")  # on any number of threads
    def test_depthwise_result_that_others_read(self):
        net = FusionNet()
        x = net.add("Relu", net.conv(net.input(1, 5, 12, 11), 5, 24, 1))
        x = net.add("Relu", self.depthwise(net, x, 24))
        gate = net.add("Sigmoid", net.add("GlobalAveragePool", x))
        self.check(net, net.conv(net.add("Mul", x, gate), 24, 6, 1), steps=5 + ACROSS)

    def test_neighbours_of_a_depthwise_convolution_that_are_read_outside(self):
        net = FusionNet()
        x = net.add("Relu", net.conv(net.input(1, 5, 12, 11), 5, 24, 1))
        y = self.depthwise(net, x, 24)
        self.check(net, x, y, net.conv(y, 24, 6, 1))

    def test_weights_of_a_block_that_are_computed(self):
        net = FusionNet()
        x = net.add("Relu", net.conv(net.input(1, 5, 12, 11), 5, 24, 1))
        x = net.add("Conv", x, net.input(24, 1, 3, 3), group=24, pads=[1] * 4)
        self.check(net, net.conv(x, 24, 6, 1))

    # ---- operands and weights ----

    def test_computed_side(self):
        net = FusionNet()
        side = net.add("Sigmoid", net.input(2, 1, 9, 8))
        x = net.conv(net.input(2, 4, 9, 8), 4, 1)
        self.check(net, net.add("Mul", x, side), steps=1 + 1)

    def test_operands_that_lie_otherwise(self):
        net = FusionNet()
        x = net.conv(net.input(2, 4, 9, 9), 4, 10)
        turned = net.add("Transpose", net.input(2, 10, 9, 9), perm=[0, 1, 3, 2])
        x = net.add("Add", x, turned)
        x = net.add("Mul", x, net.add("Sigmoid", net.input(10, 9, 1)))
        self.check(net, net.add("Sub", x, net.weight(9)))

    def test_weights_that_are_shared(self):
        net = FusionNet()
        x, weight = net.input(1, 4, 6, 6), net.weight(8, 4, 3, 3)
        parts = [net.batch_norm(net.add("Conv", x, weight), 8), net.batch_norm(net.add("Conv", x, weight), 8),
                 net.add("Conv", x, weight)]
        self.check(net, *parts)

    def test_weights_that_are_computed(self):
        net = FusionNet()
        x, weight = net.input(1, 4, 6, 6), net.add("Tanh", net.input(8, 4, 3, 3))
        self.check(net, net.add("Relu", net.batch_norm(net.add("Conv", x, weight), 8)))

    def test_bias_that_is_computed(self):
        net = FusionNet()
        x, bias = net.input(1, 4, 6, 6), net.add("Tanh", net.input(8))
        x = net.add("Conv", x, net.weight(8, 4, 3, 3), bias)
        self.check(net, net.add("Relu", net.batch_norm(x, 8)), steps=1 + 1 + ACROSS)

    # ---- chains ----

    def test_batch_norm_alone(self):
        net = FusionNet()
        x = net.batch_norm(net.input(2, 7, 5, 4), 7)
        x = net.add("Add", net.add("Mul", x, net.weight(7, 1, 1)), net.weight(7, 1, 1))
        self.check(net, net.add("Relu", x), steps=1)

    def test_long_chain(self):
        net = FusionNet()
        x = net.input(2, 7, 5, 4)
        for i in range(30):
            x = net.add(("Sigmoid", "Tanh", "Neg", "Abs")[i % 4], x)
        self.check(net, x, steps=3)

    def test_many_operands(self):
        net = FusionNet()
        x = net.input(2, 30)
        for _ in range(9):
            x = net.add("Add", x, net.input(2, 30))
        self.check(net, x, steps=3)

    def test_wide_sums(self):
        for kind in ("Sum", "Mean", "Max", "Min"):
            net = FusionNet()
            x = net.add("Sigmoid", net.input(3, 5))
            y = net.add(kind, x, net.input(3, 1), net.input(5), net.weight(3, 5))
            self.check(net, net.add("Neg", y), steps=1)

    def test_shapes_that_grow(self):
        net = FusionNet()
        x = net.add("Tanh", net.add("Neg", net.input(5)))
        y = net.add("Add", x, net.input(4, 5))
        self.check(net, net.add("Abs", y), steps=2)

    def test_squares_and_quotients(self):
        net = FusionNet()
        x = net.add("Pow", net.input(3, 5), net.scalar(2))
        self.check(net, net.add("Div", net.add("Add", x, net.scalar(1)), net.scalar(7)), steps=1)

    def test_casts(self):
        net = FusionNet()
        x = net.add("Sigmoid", net.add("Mul", net.input(3, 40), net.scalar(100)))
        half = net.add("Cast", x, to=TensorProto.FLOAT16)
        self.check(net, net.add("Sub", net.add("Cast", half, to=TensorProto.FLOAT), x), rtol=1e-6)

    def test_halves(self):
        def half(net, value):
            return net.constant(value.astype(np.float16))

        normal = np.random.default_rng(5).standard_normal
        net = FusionNet()
        x = net.add("Cast", net.input(2, 6, 7, 5), to=TensorProto.FLOAT16)
        x = net.add("Conv", x, half(net, normal((10, 6, 3, 3)) / 8), half(net, normal(10)))
        x = net.add("BatchNormalization", x, *[half(net, np.abs(normal(10)) + 0.5) for _ in range(4)])
        x = net.add("Relu", net.add("Add", x, half(net, normal((10, 1, 1)))))
        y = net.add("MatMul", x, half(net, normal((3, 9)) / 2))
        y = net.add("Mul", net.add("Add", y, half(net, normal(9))), half(net, normal(())))
        self.check(net, *[net.add("Cast", v, to=TensorProto.FLOAT) for v in (x, y)], rtol=2e-2)

    # ---- normalisation ----

    def norm(self, net, x, square, axis):
        mean = net.add("ReduceMean", x, axes=[axis])
        centred = net.add("Sub", x, mean)
        squares = net.add("Pow", centred, net.scalar(2)) if square == "Pow" else net.add("Mul", centred, centred)
        variance = net.add("Add", net.add("ReduceMean", squares, axes=[axis]), net.scalar(1e-3))
        return net.add("Div", centred, net.add("Sqrt", variance))

    def test_written_out_norm(self):
        for square in ("Pow", "Mul"):
            for axis, shape in ((-1, (12,)), (1, (1, 7, 1)), (0, (5, 1, 12))):
                net = FusionNet()
                x = net.add("Tanh", net.input(5, 7, 12))
                x = net.add("Mul", self.norm(net, x, square, axis), net.weight(*shape))
                self.check(net, net.add("Add", x, net.weight(12)))
        net = FusionNet()
        self.check(net, self.norm(net, net.input(5, 7, 12), "Pow", -1), steps=1)

    def test_norm_of_an_image(self):
        net = FusionNet()
        x = net.conv(net.input(2, 3, 6, 5), 3, 9)
        self.check(net, net.add("Mul", self.norm(net, x, "Pow", 1), net.weight(1, 9, 1, 1)))

    # ---- matrix products ----

    def test_product_with_constant(self):
        for shape in ((6, 20), (2, 5, 20), (2, 3, 4, 20), (2, 1, 3, 2, 20)):
            net = FusionNet()
            x = net.add("MatMul", net.input(*shape), net.weight(20, 24))
            x = net.add("Add", net.gelu(net.add("Add", x, net.weight(24))), net.input(*shape[:-1], 24))
            self.check(net, x)

    def test_constants_worked_out_before(self):
        net = FusionNet()
        half = net.constant((net.random.standard_normal((90, 80)) / 9).astype(np.float16))
        weight = net.add("Mul", net.add("Cast", net.add("Transpose", half, perm=[1, 0]), to=TensorProto.FLOAT), net.weight(90))
        bias = net.add("Concat", net.add("Neg", net.weight(40)), net.weight(50), axis=0)
        x = net.add("MatMul", net.input(3, 80), weight)
        self.check(net, net.add("Relu", net.add("Add", x, bias)), steps=1 if self.products_take_chains() else None)
        net = FusionNet()
        weight = net.reshape(net.add("Slice", net.weight(4, 4096), net.constant(np.array([0])), net.constant(np.array([144 * 7])),
                                     net.constant(np.array([1]))), 16, 28, 3, 3)
        x = net.add("Conv", net.input(1, 28, 5, 5), weight)
        self.check(net, net.batch_norm(x, 16), steps=1 + ACROSS)

    def test_product_with_turned_factor(self):
        net = FusionNet()
        x = net.add("Transpose", net.input(20, 6), perm=[1, 0])
        self.check(net, net.add("Relu", net.add("MatMul", x, net.weight(20, 24))))

    def test_computed_product(self):
        net = FusionNet()
        x = net.add("MatMul", net.input(2, 3, 6, 20), net.input(2, 3, 20, 6))
        self.check(net, net.add("Add", net.add("Mul", x, net.scalar(0.25)), net.input(6)))

    def test_gemm(self):
        for shape in ((), (1,), (24,), (1, 24), (6, 1), (6, 24)):
            for turned in (0, 1):
                net = FusionNet()
                b = net.weight(*((24, 20) if turned else (20, 24)))
                x = net.add("Gemm", net.input(6, 20), b, net.weight(*shape), alpha=0.5, beta=3.0, transB=turned)
                self.check(net, net.add("Relu", net.add("Mul", x, net.scalar(2))))

    # ---- Pad ----

    def test_pad_before_windows(self):
        net = FusionNet()
        x = net.pad(net.input(1, 3, 9, 8), [0, 0, 1, 2, 0, 0, 0, 3], 0.0)
        self.check(net, net.conv(x, 3, 8), net.conv(x, 3, 8, 1), steps=1 + 2 + 2)
        net = FusionNet()
        x = net.pad(net.input(1, 3, 9, 8), [0, 0, 1, 2, 0, 0, 0, 3])
        self.check(net, net.add("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2]), steps=1 + 1 + 1)

    def test_pad_that_stays(self):
        for pads, value, mode in (([0, 1, 1, 0, 0, 0, 1, 0], 0.0, "constant"), ([0, 0, 1, 1, 0, 0, 1, 1], 1.0, "constant"),
                                  ([0, 0, 1, 1, 0, 0, 1, 1], None, "edge"), ([0, 0, -1, 1, 0, 0, 1, 1], 0.0, "constant")):
            net = FusionNet()
            x = net.pad(net.input(1, 3, 9, 8), pads, value, mode)
            self.check(net, net.conv(x, 3 + pads[1], 8))
        net = FusionNet()
        x = net.pad(net.add("Neg", net.add("Abs", net.input(1, 3, 9, 8))), [0, 0, 1, 1, 0, 0, 1, 1])
        self.check(net, net.add("MaxPool", x, kernel_shape=[3, 3]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
