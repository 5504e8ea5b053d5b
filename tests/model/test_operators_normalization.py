# SPDX-License-Identifier: Apache-2.0
"""Normalisations against numpy in float64: odd sizes, ranks, types, NaN, infinities, zero norms, empty tensors."""

import os
import sys
import unittest

import numpy as np
from onnx import ModelProto, TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.float64: TensorProto.DOUBLE}
BOUNDS = {np.float32: 2e-5, np.float16: 4e-3, np.float64: 1e-9}


def model(op_type, arrays, opset, out_type, **attributes):
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(n, TYPES[a.dtype.type], a.shape) for n, a in zip(names, arrays)]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TYPES[out_type], None)])
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return built.SerializeToString(), dict(zip(names, arrays))


def rms(x, scale, axis, epsilon):
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon) * scale


def group(x, scale, bias, groups, epsilon, each_channel):
    parts = x.reshape(x.shape[0], groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
    if not each_channel:
        return (parts * scale[:, None] + bias[:, None]).reshape(x.shape)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return parts.reshape(x.shape) * scale.reshape(shape) + bias.reshape(shape)


def lp(x, p, axis):
    norm = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))


class NormalizationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(5)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def values(self, dtype, *shape):
        return self.random.standard_normal(shape).astype(dtype)

    def check(self, op_type, arrays, expected, opset=28, out_type=None, **attributes):
        out_type = out_type or arrays[0].dtype.type
        data, feed = model(op_type, arrays, opset, out_type, **attributes)
        try:
            session = runnel.Session(self.device, data)
        except runnel.Failure as failure:
            if np.float64 in (a.dtype for a in arrays) and "no float64 arithmetic" in failure.message:
                return  # refused by name
            raise
        try:
            got = session.run(feed)["y"]
        finally:
            session.close()
        self.assertEqual(got.dtype, np.dtype(out_type))
        self.assertEqual(got.shape, expected.shape)
        bound = max(BOUNDS[out_type], BOUNDS[arrays[0].dtype.type] if out_type != np.float64 else 0)
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=bound, atol=bound)

    def test_rms(self):
        cases = [((5, 37), -1, (37,)), ((2, 3, 64), 2, (64,)), ((2, 3, 5, 7), -2, (5, 7)), ((1, 1), 0, (1,)),
                 ((3, 129), 0, (129,)), ((4, 7, 3), 1, (7, 1)), ((0, 5), -1, (5,)), ((2, 3, 1, 2, 1, 2, 1, 3), 5, (3,))]
        for shape, axis, scale_shape in cases:
            x, scale = self.values(np.float32, *shape), self.values(np.float32, *scale_shape)
            expected = rms(x.astype(np.float64), scale, axis, 1e-3)
            self.check("RMSNormalization", [x, scale], expected, axis=axis, epsilon=1e-3)

    def test_rms_types(self):
        for a, b in [(np.float16, np.float16), (np.float16, np.float32), (np.float32, np.float16),
                     (np.float64, np.float64)]:
            x, scale = self.values(a, 3, 33), self.values(b, 33)
            expected = rms(x.astype(np.float64), scale.astype(np.float64), -1, 1e-5)
            self.check("RMSNormalization", [x, scale], expected, out_type=b)
            self.check("SimplifiedLayerNormalization", [x, scale], expected, out_type=b, opset=17)

    def test_rms_not_finite(self):
        x = self.values(np.float32, 4, 21)
        x[0, 3], x[1, 20], x[2] = np.nan, np.inf, 0
        with np.errstate(invalid="ignore"):
            expected = rms(x.astype(np.float64), np.ones(21), -1, 1e-5)
        self.check("RMSNormalization", [x, np.ones(21, np.float32)], expected)

    def test_group(self):
        cases = [((2, 6, 5, 7), 3), ((1, 4, 9), 4), ((3, 10, 3, 2, 5), 1), ((2, 8), 4), ((0, 4, 3), 2),
                 ((2, 6, 1, 2, 1, 2, 3), 2)]
        for shape, groups in cases:
            for opset in (18, 21):
                count = shape[1] if opset >= 21 else groups
                for dtype in (np.float32, np.float16) if len(shape) == 4 else (np.float32,):
                    x, scale, bias = self.values(dtype, *shape), self.values(dtype, count), self.values(dtype, count)
                    exact = [a.astype(np.float64) for a in (x, scale, bias)]
                    expected = x.astype(np.float64) if x.size == 0 else group(*exact, groups, 1e-2, opset >= 21)
                    self.check("GroupNormalization", [x, scale, bias], expected, opset, num_groups=groups,
                               epsilon=1e-2)

    def test_group_refused(self):
        for groups in (0, 4):
            arrays = [self.values(np.float32, 2, 6, 3), self.values(np.float32, 6), self.values(np.float32, 6)]
            data, feed = model("GroupNormalization", arrays, 21, np.float32, num_groups=groups)
            with self.assertRaisesRegex(runnel.Failure, f"cannot divide 6 channels into {groups} groups"):
                runnel.Session(self.device, data).run(feed)

    def test_mean_variance(self):
        for shape, axes in [((2, 3, 5, 7), None), ((3, 11), [1]), ((2, 3, 4), [0, -1])]:
            x = self.values(np.float32, *shape) + 3
            exact, over = x.astype(np.float64), tuple(axes or (0, 2, 3))
            expected = (exact - exact.mean(over, keepdims=True)) / (exact.std(over, keepdims=True) + 1e-9)
            self.check("MeanVarianceNormalization", [x], expected, **({"axes": axes} if axes else {}))
        constant = np.full((2, 3, 4, 4), 2.5, np.float32)
        self.check("MeanVarianceNormalization", [constant], np.zeros(constant.shape))

    def test_training(self):
        for shape in ((3, 5, 4, 7), (6, 9), (2, 3, 2, 2, 2)):
            x, count = self.values(np.float32, *shape) + 2, shape[1]
            scale, bias, mean, variance = (self.values(np.float32, count) for _ in range(4))
            axes = tuple(i for i in range(len(shape)) if i != 1)
            apart = (1, -1) + (1,) * (len(shape) - 2)
            exact = x.astype(np.float64)
            now, spread = exact.mean(axes), exact.var(axes)
            y = (exact - now.reshape(apart)) / np.sqrt(spread.reshape(apart) + 1e-3) * scale.reshape(apart)
            wanted = {"y": y + bias.reshape(apart), "m": mean * 0.7 + now * 0.3, "v": variance * 0.7 + spread * 0.3}
            data, feed = model("BatchNormalization", [x, scale, bias, mean, variance], 15, np.float32, training_mode=1,
                               epsilon=1e-3, momentum=0.7)
            built = ModelProto.FromString(data)
            for name in ("m", "v"):
                built.graph.node[0].output.append(name)
                built.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
            session = runnel.Session(self.device, built.SerializeToString())
            got = session.run(feed)
            session.close()
            for name, expected in wanted.items():
                np.testing.assert_allclose(got[name], expected, rtol=2e-5, atol=2e-5)

    def test_lp(self):
        for p in (1, 2):
            for shape, axis in [((3, 17), -1), ((3, 17), 0), ((2, 5, 3, 1), 1), ((4,), 0)]:
                x = self.values(np.float32, *shape)
                self.check("LpNormalization", [x], lp(x.astype(np.float64), p, axis), p=p, axis=axis)
            x = self.values(np.float32, 4, 5)
            x[1], x[2, 0] = 0, np.nan
            self.check("LpNormalization", [x], lp(x.astype(np.float64), p, 1), p=p, axis=1)
            half = self.values(np.float16, 3, 9)
            self.check("LpNormalization", [half], lp(half.astype(np.float64), p, 1), p=p, axis=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
