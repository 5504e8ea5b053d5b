# SPDX-License-Identifier: Apache-2.0
"""Det against numpy in float64: sizes, types, matrices that need pivots or are singular, NaN and infinities."""

import os
import sys
import unittest

import ml_dtypes
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
import single_node  # noqa: E402

SHAPES = ((2, 2), (1, 1), (3, 5, 5), (2, 3, 1, 4, 4), (7, 3, 3), (0, 3, 3), (2, 0, 0), (17, 17), (33, 2, 2))


class DetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(3)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def det(self, x, **options):
        return single_node.run(self.device, "Det", [x], **options)

    def check(self, x, bound, **options):
        got, expected = self.det(x, **options), np.asarray(np.linalg.det(x.astype(np.float64)))
        self.assertEqual((got.shape, got.dtype), (x.shape[:-2], x.dtype))
        # An error of the product is one of its factors, each as large as a row may be (Hadamard's bound).
        scale = np.prod(np.linalg.norm(x.astype(np.float64), axis=-1), axis=-1)
        self.assertTrue((np.abs(got.astype(np.float64) - expected) <= bound * scale).all(), f"{x.shape} {x.dtype}")

    def test_sizes_and_types(self):
        for shape in SHAPES:
            values = 0.3 * self.random.standard_normal(shape)  # for halves not to overflow
            self.check(values.astype(np.float32), 1e-6)
            self.check(values.astype(np.float16), 1e-3)
            self.check(values.astype(ml_dtypes.bfloat16), 8e-3)

    def test_doubles(self):
        try:
            self.check(self.random.standard_normal((3, 6, 6)), 1e-14)
        except runnel.Failure as failure:
            self.assertIn("float64", failure.message)

    def test_layouts(self):
        self.check(self.random.standard_normal((2, 3, 4, 4)).astype(np.float32), 1e-6, channels_last=True)

    def test_pivots_and_none(self):
        ones = np.ones((4, 4), np.float32)
        cases = [(np.eye(4)[::-1], 1), (np.eye(4)[[1, 0, 2, 3]], -1), (np.triu(ones) * 2, 16), (ones, 0), (0 * ones, 0),
                 ([[0, 1], [1, 0]], -1), ([[1e-30, 1], [1, 1]], -1)]
        for matrix, expected in cases:
            self.assertEqual(self.det(np.array(matrix, np.float32)), expected)

    def test_special_values(self):
        for value in (np.nan, np.inf, -np.inf):
            x = self.random.standard_normal((2, 3, 3)).astype(np.float32)
            x[1, 2, 0] = value
            got = self.det(x)
            self.assertTrue(np.isfinite(got[0]) and not np.isfinite(got[1]), f"{value}: {got}")

    def test_refusals(self):
        for shape in ((3,), (2, 3), (2, 3, 4)):
            with self.assertRaises(runnel.Failure) as caught:
                self.det(np.zeros(shape, np.float32))
            self.assertIn("square", caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
