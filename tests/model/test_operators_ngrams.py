# SPDX-License-Identifier: Apache-2.0
"""TfIdfVectorizer against onnx's reference, on random pools and rows."""

import os
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402


def model(x, transposed=False, **attributes):
    nodes = [helper.make_node("TfIdfVectorizer", ["t" if transposed else "x"], ["y"], **attributes)]
    if transposed:
        nodes.insert(0, helper.make_node("Transpose", ["x"], ["t"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", runnel.CODES[x.dtype], x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=10)


class NgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(31)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_here(self, made, x):
        session = runnel.Session(self.device, made.SerializeToString())
        try:
            return session.run({"x": x})["y"]
        finally:
            session.close()

    def pool(self, counts, words):
        """Distinct n-grams of 1, 2, … items; their attributes."""
        pool, starts = [], []
        for length, count in enumerate(counts, 1):
            starts.append(len(pool))
            found = set()
            while len(found) < count:
                found.add(tuple(int(i) for i in self.random.choice(words, length)))
            pool += [item for ngram in sorted(found) for item in ngram]
        return {"pool_int64s": pool, "ngram_counts": starts, "min_gram_length": 1, "max_gram_length": len(counts),
                "ngram_indexes": [int(i) for i in self.random.permutation(sum(counts))]}

    def check(self, x, **attributes):
        for transposed in (False, True):
            made = model(x, transposed, **attributes)
            ones = [1.0] * (max(attributes["ngram_indexes"]) + 1)  # the reference asks for weights
            expected = ReferenceEvaluator(model(x, transposed, **{"weights": ones, **attributes})).run(None, {"x": x})[0]
            got = self.run_here(made, x)
            self.assertEqual((got.shape, got.dtype), (expected.shape, np.float32))
            np.testing.assert_array_equal(got, expected)

    def test_random_pools(self):
        words = np.array([-(2**63), -1, 0, 7, 2**31, 2**63 - 1])
        for counts in ((3,), (0, 11), (4, 9, 17), (2, 0, 5, 9)):
            attributes = self.pool(counts, words)
            weights = [float(w) for w in self.random.standard_normal(sum(counts))]
            for skips in (0, 1, 3, 64):
                for mode in ("TF", "IDF", "TFIDF"):
                    shape = (int(self.random.integers(1, 6)), int(self.random.integers(1, 40)))
                    x = self.random.choice(words, shape)
                    attributes["max_skip_count"] = skips
                    self.check(x, mode=mode, **attributes)
                    self.check(x[0], mode=mode, weights=weights, **attributes)

    def test_lengths(self):
        attributes = self.pool((4, 9, 17), np.arange(4))
        x = self.random.integers(0, 4, (3, 29)).astype(np.int32)
        for least in (1, 2, 3):
            for most in range(least, 4):
                attributes.update(min_gram_length=least, max_gram_length=most)
                self.check(x, mode="TF", max_skip_count=2, **attributes)

    def test_columns(self):
        attributes = self.pool((3, 2), np.arange(3))
        x = self.random.integers(0, 3, (2, 17))
        for indexes in ([9, 0, 4, 2, 7], [5, 5, 0, 5, 1], [100, 0, 0, 0, 0]):
            attributes["ngram_indexes"] = indexes
            self.check(x, mode="TF", max_skip_count=1, **attributes)
            self.check(x, mode="IDF", max_skip_count=1, **attributes)

    def test_edges(self):
        attributes = dict(self.pool((3, 2), np.arange(3)), mode="TF", max_skip_count=2**63 - 2)
        for shape in ((2, 0), (0, 3), (0,)):
            x = np.zeros(shape, np.int64)
            got = self.run_here(model(x, **attributes), x)
            self.assertEqual(got.shape, (*shape[:-1], 5))
            self.assertFalse(got.any())
        got = self.run_here(model(np.array(1), **attributes), np.array(1))
        self.assertEqual((got.shape, got.sum()), ((5,), 1))

    def test_bad_lists(self):
        good = dict(self.pool((3, 2), np.arange(3)), mode="TF", max_skip_count=0)
        x = np.zeros((2, 4), np.int64)
        for bad in ({"ngram_counts": [0, 8]}, {"ngram_counts": [-1, 3]}, {"ngram_counts": [3, 0]}, {"ngram_counts": [0, 4]},
                    {"ngram_indexes": [0, 1, 2, -3, 4]}, {"ngram_indexes": [0, 1]}, {"ngram_indexes": [2**40] * 5},
                    {"min_gram_length": 0}, {"max_gram_length": 0}, {"max_skip_count": -1}, {"mode": "COUNT"},
                    {"mode": "IDF", "weights": [1.0, 2.0]}):
            with self.assertRaises(runnel.Failure, msg=str(bad)):
                self.run_here(model(x, **{**good, **bad}), x)
        with self.assertRaises(runnel.Failure):
            self.run_here(model(np.zeros((2, 2, 2), np.int64), **good), np.zeros((2, 2, 2), np.int64))


if __name__ == "__main__":
    unittest.main()
