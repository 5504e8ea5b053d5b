# SPDX-License-Identifier: Apache-2.0
"""The main thread through all layers: small models against numpy."""

import os
import unittest

import numpy as np
from onnx import helper

from command import CODES, CommandTest


def within(got, expected):
    """1e-4 + 1e-3 * |expected|, element by element."""
    expected = np.asarray(expected, np.float64)
    return (np.abs(got.astype(np.float64) - expected) <= 1e-4 + 1e-3 * np.abs(expected)).all()


class ReferenceTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(int.from_bytes(b"runnel", "big"))

    def matmul_add_relu(self, dtype, rows, inner, columns):
        weights = {"w": (self.rng.random((inner, columns)) - 0.5).astype(dtype),
                   "b": (self.rng.random(columns) - 0.5).astype(dtype)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
                 helper.make_node("Relu", ["u"], ["y"])]
        model = self.model(nodes, [("x", dtype, ["n", inner])], [("y", dtype, ["n", columns])], weights)
        x = (self.rng.random((rows, inner)) - 0.5).astype(dtype)
        expected = np.maximum(x.astype(np.float64) @ weights["w"].astype(np.float64) + weights["b"], 0)
        return model, x, expected

    def test_matmul_add_relu(self):
        for rows, inner, columns in ((1, 1, 1), (3, 5, 7), (1, 100, 33), (64, 64, 64), (129, 65, 31)):
            model, x, expected = self.matmul_add_relu("float32", rows, inner, columns)
            got = self.outputs(model, "-i", "x=" + self.save("x.npy", x))["y"]
            self.assertEqual((got.shape, got.dtype), (expected.shape, np.float32))
            self.assertTrue(within(got, expected), (rows, inner, columns))

    def test_the_printed_numbers(self):
        model, x, expected = self.matmul_add_relu("float32", 6, 9, 11)
        words = self.succeed("run", model, "-i", "x=" + self.save("x.npy", x)).line("y: ").split()
        self.assertEqual(words[:3], ["y:", "float32", "[6,11]"])
        printed = dict(zip(words[3::2], map(float, words[4::2])))
        for key, value in (("min", expected.min()), ("max", expected.max()), ("mean", expected.mean())):
            self.assertAlmostEqual(printed[key], value, delta=1e-4 + 1e-3 * abs(value))

    def test_half(self):
        model, x, expected = self.matmul_add_relu("float16", 5, 16, 9)
        got = self.outputs(model, "-i", "x=" + self.save("x.npy", x))["y"]
        self.assertEqual(got.dtype, np.float16)
        # Three roundings to 11 bits, the first of sums that are at most 4.
        np.testing.assert_allclose(got.astype(np.float64), expected, atol=4 * 2.0**-11, rtol=2.0**-9)

    def test_integers(self):
        for dtype in ("int32", "int64"):
            a = self.rng.integers(-1000, 1000, (3, 4)).astype(dtype)
            b = self.rng.integers(-1000, 1000, (4,)).astype(dtype)
            nodes = [helper.make_node("Mul", ["a", "b"], ["t"]), helper.make_node("Add", ["t", "a"], ["y"])]
            model = self.model(nodes, [("a", dtype, [3, 4]), ("b", dtype, [4])], [("y", dtype, [3, 4])])
            got = self.outputs(model, "-i", "a=" + self.save("a.npy", a), "-i", "b=" + self.save("b.npy", b))["y"]
            self.assertEqual(got.dtype, a.dtype)
            np.testing.assert_array_equal(got, a * b + a)

    def test_bool(self):
        a, b = (self.rng.random((2, 50)) - 0.5).astype(np.float32)
        nodes = [helper.make_node("Less", ["a", "b"], ["y"])]
        model = self.model(nodes, [("a", "float32", [50]), ("b", "float32", [50])], [("y", "bool", [50])])
        got = self.outputs(model, "-i", "a=" + self.save("a.npy", a), "-i", "b=" + self.save("b.npy", b))["y"]
        self.assertEqual(got.dtype, np.bool_)
        np.testing.assert_array_equal(got, a < b)

    def test_cast(self):
        x = np.array([-3.7, -0.5, 0, 0.5, 3.7, 100], np.float32)
        for dtype in ("int8", "int32", "int64", "float16", "float64", "bool"):
            model = self.model([helper.make_node("Cast", ["x"], ["y"], to=CODES[dtype])], [("x", "float32", [6])],
                               [("y", dtype, [6])])
            got = self.outputs(model, "-i", self.save("x.npy", x))["y"]
            self.assertEqual(got.dtype, np.dtype(dtype))
            np.testing.assert_array_equal(got, x.astype(dtype))

    def test_second_process_gives_the_same(self):
        model, x, _ = self.matmul_add_relu("float32", 7, 13, 17)
        self.save("x.npy", x)
        cache = {"RUNNEL_CACHE_DIR": self.path("cache")}
        os.mkdir(self.path("cache"))
        first = self.outputs(model, "-i", "x.npy", env=cache)["y"]
        second = self.outputs(model, "-i", "x.npy", env=cache)["y"]
        np.testing.assert_array_equal(first, second)

    def test_many_shapes(self):
        model = self.matmul_add_relu("float32", 1, 8, 4)[0]
        for rows in (1, 2, 17, 300):
            self.assertEqual(self.outputs(model, "--shape", f"x={rows}x8")["y"].shape, (rows, 4))


if __name__ == "__main__":
    unittest.main()
