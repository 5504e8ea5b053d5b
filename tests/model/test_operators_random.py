# SPDX-License-Identifier: Apache-2.0
"""Random numbers: moments, Kolmogorov and Smirnov's distance, seeds, and that runs differ."""

import math
import os
import sys
import unittest

import ml_dtypes
import numpy as np
from onnx import AttributeProto, TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]
INFO = helper.make_tensor_value_info


def info(name, array=None):
    if array is not None:
        return INFO(name, runnel.CODES[array.dtype], array.shape)
    made = INFO(name, TensorProto.UNDEFINED, None)
    made.ClearField("type")
    return made


def make(nodes, outputs, inputs=(), initializers=(), opset=22):
    graph = helper.make_graph(nodes, "g", list(inputs), [info(name) for name in outputs], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def normal_cdf(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def distance(values, cdf):
    """Kolmogorov and Smirnov's, times the root of the count: above 1.95 in one of a thousand samples."""
    x = np.sort(values.astype(np.float64).ravel())
    expected, count = cdf(x), x.size
    return math.sqrt(count) * max((np.arange(1, count + 1) / count - expected).max(),
                                  (expected - np.arange(count) / count).max())


class RandomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.has_fp64 = cls.can_run_doubles()

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    @classmethod
    def can_run_doubles(cls):
        node = helper.make_node("RandomUniform", [], ["y"], shape=[1], dtype=TensorProto.DOUBLE)
        try:
            runnel.Session(cls.device, make([node], ["y"])).close()
            return True
        except runnel.Failure:
            return False

    def types(self, *kinds):
        return [kind for kind in kinds or FLOATS if self.has_fp64 or kind != np.float64]

    def runs(self, data, feed, count=1):
        """The outputs of so many runs of one session."""
        session = runnel.Session(self.device, data)
        try:
            return [session.run(feed) for _ in range(count)]
        finally:
            session.close()

    def one(self, op_type, *arrays, **attributes):
        names = [f"x{i}" for i in range(len(arrays))]
        node = helper.make_node(op_type, names, ["y"], **attributes)
        data = make([node], ["y"], [info(n, a) for n, a in zip(names, arrays)])
        return self.runs(data, dict(zip(names, arrays)))[0]["y"]

    def check_uniform(self, got, low, high):
        unit = (got.astype(np.float64) - low) / (high - low)
        self.assertGreaterEqual(unit.min(), 0)
        self.assertLessEqual(unit.max(), 1)
        self.assertAlmostEqual(unit.mean(), 0.5, delta=4 * math.sqrt(1 / 12 / unit.size))
        self.assertAlmostEqual(unit.var(), 1 / 12, delta=4 * math.sqrt(1 / 180 / unit.size))
        # A half type's rounding moves what lies between two of its numbers.
        coarse = {2: math.sqrt(unit.size) * 2.0**-9}.get(got.dtype.itemsize, 0)
        self.assertLess(distance(unit, lambda x: np.clip(x, 0, 1)), 1.95 + coarse)

    def check_normal(self, got, mean, scale):
        unit = (got.astype(np.float64) - mean) / scale
        self.assertAlmostEqual(unit.mean(), 0, delta=4 / math.sqrt(unit.size))
        self.assertAlmostEqual(unit.var(), 1, delta=4 * math.sqrt(2 / unit.size))
        self.assertAlmostEqual((unit**3).mean(), 0, delta=4 * math.sqrt(15 / unit.size))
        self.assertAlmostEqual((unit**4).mean(), 3, delta=4 * math.sqrt(96 / unit.size))
        coarse = {2: math.sqrt(unit.size) * 2.0**-8}.get(got.dtype.itemsize, 0)
        self.assertLess(distance(unit, normal_cdf), 1.95 + coarse)

    def test_uniform(self):
        for number, dtype in enumerate(self.types()):
            got = self.one("RandomUniform", shape=[3, 1, 6007], dtype=runnel.CODES[np.dtype(dtype)], seed=1.0 + number)
            self.assertEqual((got.shape, got.dtype), ((3, 1, 6007), np.dtype(dtype)))
            self.check_uniform(got, 0, 1)
        got = self.one("RandomUniform", shape=[20011], low=-7.5, high=2.25, seed=5.0)
        self.assertEqual(got.dtype, np.float32)
        self.check_uniform(got, -7.5, 2.25)
        self.assertLess(got.max(), 2.25)

    def test_normal(self):
        for number, dtype in enumerate(self.types()):
            got = self.one("RandomNormal", shape=[17, 1013], dtype=runnel.CODES[np.dtype(dtype)], seed=11.0 + number)
            self.assertEqual(got.dtype, np.dtype(dtype))
            self.check_normal(got, 0, 1)
        self.check_normal(self.one("RandomNormal", shape=[20011], mean=3.5, scale=0.125, seed=2.0), 3.5, 0.125)

    def test_neighbours_are_independent(self):
        x = self.one("RandomNormal", shape=[30001], seed=3.0)
        for lag in (1, 2, 3, 4, 64, 256):
            self.assertLess(abs(np.mean(x[lag:] * x[:-lag])), 4 / math.sqrt(x.size - lag))

    def test_shapes(self):
        for shape in ([], [0], [3, 0], [1] * 8, [5], [2, 3, 1, 2, 1, 3, 1, 1]):
            node = helper.make_node("RandomUniform", [], ["y"])
            node.attribute.append(helper.make_attribute("shape", shape, attr_type=AttributeProto.INTS))
            self.assertEqual(self.runs(make([node], ["y"]), {})[0]["y"].shape, tuple(shape))
        with self.assertRaises(runnel.Failure):
            self.one("RandomUniform", shape=[2, -1])
        with self.assertRaises(runnel.Failure):
            self.one("RandomUniform", shape=[2], dtype=TensorProto.INT32)
        with self.assertRaises(runnel.Failure):
            self.one("RandomUniform")

    def test_like(self):
        for dtype in self.types():
            x = np.zeros((41, 401), dtype)
            for op_type in ("RandomUniformLike", "RandomNormalLike"):
                got = self.one(op_type, x, seed=4.0)
                self.assertEqual((got.shape, got.dtype), (x.shape, x.dtype))
        x = np.zeros((41, 401), np.int8)
        self.check_normal(self.one("RandomNormalLike", x, dtype=TensorProto.FLOAT, seed=8.0), 0, 1)
        with self.assertRaises(runnel.Failure):
            self.one("RandomNormalLike", x)

    def test_seeds(self):
        node = helper.make_node("RandomNormal", [], ["y"], shape=[101], seed=42.0)
        first, again = self.runs(make([node], ["y"]), {}, 3), self.runs(make([node], ["y"]), {}, 3)
        for a, b in zip(first, again):
            np.testing.assert_array_equal(a["y"], b["y"])
        self.assertEqual(len(np.unique(np.concatenate([run["y"] for run in first]))), 303)
        other = helper.make_node("RandomNormal", [], ["y"], shape=[101], seed=43.0)
        self.assertFalse((self.runs(make([other], ["y"]), {})[0]["y"] == first[0]["y"]).any())

    def test_without_seed_sessions_differ(self):
        nodes = [helper.make_node("RandomUniform", [], [name], shape=[101], dtype=TensorProto.FLOAT) for name in "ab"]
        runs = [run for _ in range(2) for run in self.runs(make(nodes, ["a", "b"]), {}, 2)]
        values = np.concatenate([run[name] for run in runs for name in "ab"])
        self.assertGreater(len(np.unique(values)), values.size - 8)  # 2**24 numbers: some meet

    def test_iterations_differ(self):
        body = helper.make_graph(
            [helper.make_node("RandomUniform", [], ["r"], shape=[33]), helper.make_node("Identity", ["c"], ["d"])],
            "body", [INFO("i", TensorProto.INT64, []), INFO("c", TensorProto.BOOL, [])],
            [INFO("d", TensorProto.BOOL, []), INFO("r", TensorProto.FLOAT, [33])])
        node = helper.make_node("Loop", ["n", ""], ["y"], body=body)
        count = np.array(5, np.int64)
        got = self.runs(make([node], ["y"], [info("n", count)]), {"n": count})[0]["y"]
        self.assertEqual(got.shape, (5, 33))
        self.assertGreater(len(np.unique(got)), 5 * 33 - 3)

    def test_parts_of_a_larger_tensor(self):
        nodes = [helper.make_node("RandomUniform", [], ["a"], shape=[2, 3, 5], seed=1.0),
                 helper.make_node("RandomUniform", [], ["b"], shape=[2, 4, 5], seed=1.0),
                 helper.make_node("Concat", ["a", "b"], ["y"], axis=1)]
        got = self.runs(make(nodes, ["y"]), {})[0]["y"]
        self.assertEqual(len(np.unique(got)), got.size)
        alone = self.runs(make(nodes[:1], ["a"]), {})[0]["a"]
        np.testing.assert_array_equal(got[:, :3], alone)  # whatever its layout

    def test_bernoulli(self):
        for dtype in self.types():
            p = np.linspace(0, 1, 7).astype(dtype)[:, None].repeat(3001, 1)
            got = self.one("Bernoulli", p, seed=6.0)
            self.assertEqual(got.dtype, p.dtype)
            self.assertTrue(np.isin(got.astype(np.float32), [0, 1]).all())
            np.testing.assert_allclose(got.astype(np.float64).mean(1), p[:, 0].astype(np.float64), atol=4 * 0.5 / 3001**0.5)
            self.assertFalse(got[0].any())
            self.assertTrue(got[-1].all())
        p = np.array([0, 1, np.nan, np.inf, -np.inf, 1e-45], np.float32)
        for code in (TensorProto.BOOL, TensorProto.INT64, TensorProto.UINT8, TensorProto.FLOAT16, TensorProto.BFLOAT16):
            got = self.one("Bernoulli", p, dtype=code)
            self.assertEqual(runnel.CODES[got.dtype], code)
            np.testing.assert_array_equal(got.astype(np.float32), [0, 1, 0, 1, 0, 0])

    def dropout(self, x, ratio, mode=True, seed=3):
        """Around two Relus, which must not take it for an identity."""
        nodes = [helper.make_node("Relu", ["x"], ["a"]),
                 helper.make_node("Dropout", ["a", "ratio" if ratio is not None else "", "mode"], ["b", "mask"], seed=seed),
                 helper.make_node("Relu", ["b"], ["y"])]
        constants = [helper.make_tensor("mode", TensorProto.BOOL, [], [mode])]
        if ratio is not None:
            constants.append(helper.make_tensor("ratio", TensorProto.FLOAT, [], [ratio]))
        got = self.runs(make(nodes, ["y", "mask"], [info("x", x)], constants), {"x": x})[0]
        return got["y"], got["mask"]

    def test_dropout_in_training(self):
        for dtype in self.types():
            x = np.random.default_rng(1).uniform(1, 2, (31, 401)).astype(dtype)
            for ratio in (None, 0.1, 0.75):
                y, mask = self.dropout(x, ratio)
                share = 0.5 if ratio is None else ratio
                self.assertEqual((y.dtype, mask.dtype, mask.shape), (x.dtype, np.bool_, x.shape))
                self.assertAlmostEqual(mask.mean(), 1 - share, delta=4 * 0.5 / mask.size**0.5)
                scaled = (x.astype(np.float64) / (1 - share)).astype(dtype).astype(np.float64)
                bound = {2: 2.0**-7}.get(x.dtype.itemsize, 1e-6)
                np.testing.assert_allclose(y.astype(np.float64), np.where(mask, scaled, 0), rtol=bound)
        for ratio, mode in ((0.0, True), (0.5, False)):
            y, mask = self.dropout(x, ratio, mode)
            np.testing.assert_array_equal(y, x)
            self.assertTrue(mask.all())
        y, mask = self.dropout(x, 1.0)
        self.assertFalse(y.any() or mask.any())
        self.assertEqual(self.dropout(np.zeros((0, 3), np.float32), 0.5)[1].shape, (0, 3))

    def test_multinomial(self):
        weights = np.array([[0.5, 0.0, 0.25, 0.125, 0.125, 0.0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
        with np.errstate(divide="ignore"):
            logits = np.log(weights) + np.array([[3.0], [-80.0], [0.0]])
        for dtype in self.types():
            for code, kind in ((TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64)):
                got = self.one("Multinomial", logits.astype(dtype), sample_size=4001, dtype=code, seed=9.0)
                self.assertEqual((got.shape, got.dtype), ((3, 4001), np.dtype(kind)))
                for row, expected in zip(got, weights):
                    found = np.bincount(row, minlength=6) / 4001
                    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / 4001**0.5)
                    self.assertFalse(found[expected == 0].any())
        self.assertEqual(self.one("Multinomial", np.zeros((5, 3), np.float32)).shape, (5, 1))
        self.assertEqual(self.one("Multinomial", np.zeros((0, 3), np.float32), sample_size=2).shape, (0, 2))
        with self.assertRaises(runnel.Failure):
            self.one("Multinomial", np.zeros((2, 0), np.float32))
        broken = self.one("Multinomial", np.full((1, 3), np.nan, np.float32), sample_size=5)
        self.assertTrue(((broken >= 0) & (broken < 3)).all())


if __name__ == "__main__":
    unittest.main()
