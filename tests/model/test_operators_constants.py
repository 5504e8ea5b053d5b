# SPDX-License-Identifier: Apache-2.0
"""The forms of Constant, and sparse tensors, which are made dense when a model is read."""

import os
import sys
import unittest

import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402


def sparse(values, indices, shape):
    named = numpy_helper.from_array(np.asarray(values), "w")
    return helper.make_sparse_tensor(named, numpy_helper.from_array(np.asarray(indices, np.int64), "i"), shape)


class ConstantsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_graph(self, nodes, sparse_initializers=()):
        graph = helper.make_graph(nodes, "constants", [], [helper.make_empty_tensor_value_info("y")],
                                  sparse_initializer=list(sparse_initializers))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            return session.run({})["y"]
        finally:
            session.close()

    def constant(self, **attribute):
        return self.run_graph([helper.make_node("Constant", [], ["c"], **attribute), helper.make_node("Neg", ["c"], ["y"])])

    def same(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertTrue(np.array_equal(got, expected))

    def test_forms(self):
        self.same(self.constant(value_float=1.5), np.float32(-1.5))
        self.same(self.constant(value_floats=[1.5, -2]), np.array([-1.5, 2], np.float32))
        self.same(self.constant(value_int=7), np.int64(-7))
        self.same(self.constant(value_ints=[7, -8]), np.array([-7, 8]))
        self.same(self.constant(value=numpy_helper.from_array(np.ones((2, 0, 3), np.float16))), np.ones((2, 0, 3), np.float16))
        for attribute in ({"value_string": "x"}, {"value_strings": ["x", "y"]}):
            with self.assertRaises(runnel.Failure) as caught:
                self.constant(**attribute)
            self.assertEqual(caught.exception.status, "UNIMPLEMENTED")

    def test_sparse(self):
        expected = np.zeros((3, 4), np.float32)
        expected[[0, 2], [3, 1]] = [-5, 6]
        values = np.array([5, -6], np.float32)
        for indices in ([3, 9], [[0, 3], [2, 1]]):
            self.same(self.constant(sparse_value=sparse(values, indices, [3, 4])), expected)
            got = self.run_graph([helper.make_node("Neg", ["w"], ["y"])], [sparse(values, indices, [3, 4])])
            self.same(got, expected)
        self.same(self.constant(sparse_value=sparse(np.zeros(0, np.int64), [], [2])), np.zeros(2, np.int64))

    def test_wrong_sparse(self):
        values = np.array([5, -6], np.float32)
        for indices, shape in (([3, 12], [3, 4]), ([-1, 2], [3, 4]), ([[0, 3], [3, 0]], [3, 4]), ([[0], [1]], [3, 4]),
                               ([1], [3, 4]), ([0, 1], [2**40, 2**40]), ([0, 1], [2**30]), ([0, 1], [-1]),
                               ([0, 1], [1] * 9), ([0, 1], [0])):
            with self.assertRaises(runnel.Failure, msg=str((indices, shape))) as caught:
                self.constant(sparse_value=sparse(values, indices, shape))
            self.assertIn("the sparse tensor of sparse_value", caught.exception.message)
        with self.assertRaises(runnel.Failure):
            self.run_graph([helper.make_node("Neg", ["w"], ["y"])], [sparse(np.array([b"a"], object), [0], [3])])


if __name__ == "__main__":
    unittest.main(verbosity=2)
