# SPDX-License-Identifier: Apache-2.0
"""Operators that index, against numpy: duplicates, negative and wrong indices, all types, sizes of 0, odd shapes."""

import os
import sys
import unittest

import numpy as np
from onnx import helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

OPSET = 28
TYPES = [np.float32, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]


def some(rng, dtype, shape, low=-9, high=10):
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.dtype(dtype).kind == "u":
        low = 0
    return rng.integers(low, high, shape).astype(dtype)


class IndexingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.rng = np.random.default_rng(7)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, op_type, inputs, outputs=1, opset=OPSET, constants=(), **attributes):
        """One node; inputs whose index is in `constants` are initialisers."""
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
        given = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if n and i not in constants}
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for n, x in given.items()]
        fixed = [helper.make_tensor(names[i], helper.np_dtype_to_tensor_dtype(inputs[i].dtype), inputs[i].shape,
                                    inputs[i].tobytes(), raw=True) for i in constants]
        results = [helper.make_tensor_value_info(f"y{i}", 0, None) for i in range(outputs)]
        node = helper.make_node(op_type, names, [r.name for r in results], **attributes)
        model = helper.make_model(helper.make_graph([node], "g", infos, results, fixed),
                                  opset_imports=[helper.make_opsetid("", opset)])
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            got = session.run(given)
            return [got[r.name] for r in results] if outputs > 1 else got["y0"]
        finally:
            session.close()

    def check(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(got, expected)

    def test_gather_elements(self):
        for i, dtype in enumerate(TYPES):
            data = some(self.rng, dtype, (5, 4, 7))
            index_type = (np.int64, np.int32)[i % 2]
            for axis in (0, 1, -1):
                shape = list(data.shape)
                shape[axis] = 9
                indices = self.rng.integers(-data.shape[axis], data.shape[axis], shape).astype(index_type)
                self.check(self.run_node("GatherElements", [data, indices], axis=axis),
                           np.take_along_axis(data, indices, axis))
        data = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.check(self.run_node("GatherElements", [data, np.array([[2, -1]])], axis=1), data[:1, [2, 3]])  # fewer rows
        self.check(self.run_node("GatherElements", [data, np.array([[9, -9]])], axis=1), data[:1, [3, 0]])  # the nearest
        self.check(self.run_node("GatherElements", [data, np.zeros((0, 4), np.int64)]), data[:0])

    def test_gather_nd(self):
        for dtype in TYPES:
            data = some(self.rng, dtype, (3, 4, 5, 2))
            for batch, tuple_size, outer in ((0, 1, (6,)), (0, 4, (2, 3)), (1, 2, (3, 7)), (2, 1, (3, 4, 3)), (0, 3, ())):
                sizes = data.shape[batch:batch + tuple_size]
                indices = np.stack([self.rng.integers(-n, n, outer) for n in sizes], -1)
                expected = np.empty(outer + data.shape[batch + tuple_size:], dtype)
                for at in np.ndindex(outer):
                    expected[at] = data[at[:batch] + tuple(indices[at])]
                self.check(self.run_node("GatherND", [data, indices], batch_dims=batch), expected)
        self.check(self.run_node("GatherND", [data, np.zeros((0, 2), np.int64)]), data[:0, 0])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.check(self.run_node("GatherND", [x, np.array([[7, -8], [-9, 1]])]), x[[1, 0], [0, 1]])

    REDUCTIONS = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}

    def reductions_of(self, dtype):
        """Each type and each reduction, but not each pair: a pair is a program."""
        at = TYPES.index(dtype)
        return [(name, function) for i, (name, function) in enumerate(self.REDUCTIONS.items())
                if name == "none" or (dtype != np.bool_ and (at < 1 or at % 4 + 1 == i))]

    def test_scatter_elements(self):
        for i, dtype in enumerate(TYPES):
            data = some(self.rng, dtype, (4, 6, 3))
            axis = i % 3
            shape = [3, 5, 2]
            shape[axis] = 11  # each place several times
            indices = self.rng.integers(-data.shape[axis], data.shape[axis], shape).astype((np.int32, np.int64)[i % 2])
            updates = some(self.rng, dtype, shape, -2, 3)
            for name, reduce in self.reductions_of(dtype):
                expected = data.copy()
                with np.errstate(all="ignore"):
                    for at in np.ndindex(*shape):
                        to = list(at)
                        to[axis] = indices[at]
                        expected[tuple(to)] = reduce(expected[tuple(to)], updates[at])
                with self.subTest(name, dtype=dtype):
                    self.check(self.run_node("ScatterElements", [data, indices, updates], axis=axis, reduction=name), expected)
        x = np.zeros((2, 3), np.float32)
        got = self.run_node("ScatterElements", [x, np.array([[5, -4, 1]]), np.ones((1, 3), np.float32)], axis=0)
        self.check(got, np.array([[0, 0, 0], [0, 0, 1]], np.float32))  # what is out of range is left out
        self.check(self.run_node("ScatterElements", [x, np.zeros((0, 3), np.int64), x[:0]]), x)

    def test_scatter_nd(self):
        for dtype in TYPES:
            data = some(self.rng, dtype, (4, 3, 5))
            for tuple_size, outer in ((1, (9,)), (2, (2, 6)), (3, (40,))):
                indices = np.stack([self.rng.integers(-n, n, outer) for n in data.shape[:tuple_size]], -1)
                updates = some(self.rng, dtype, outer + data.shape[tuple_size:], -2, 3)
                for name, reduce in self.reductions_of(dtype):
                    expected = data.copy()
                    with np.errstate(all="ignore"):
                        for at in np.ndindex(outer):
                            to = tuple(indices[at])
                            expected[to] = reduce(expected[to], updates[at])
                    with self.subTest(name, dtype=dtype, tuple=tuple_size):
                        self.check(self.run_node("ScatterND", [data, indices, updates], reduction=name), expected)
        x = np.array([1, np.nan, 3, -np.inf], np.float32)
        got = self.run_node("ScatterND", [x, np.array([[0], [1], [-1], [9]]), np.array([np.nan, 1, 2, 3], np.float32)],
                            reduction="max")
        self.check(got, np.array([np.nan, np.nan, 3, 2], np.float32))

    def test_refusals(self):
        x = np.zeros((2, 3), np.float32)
        for op_type, inputs, attributes, words in (
                ("GatherElements", [x, np.zeros((2,), np.int64)], {}, "rank"),
                ("GatherElements", [x, np.zeros((3, 3), np.int64)], {"axis": 1}, "shape"),
                ("GatherND", [x, np.zeros((2, 3), np.int64)], {}, "tuples"),
                ("ScatterND", [x, np.zeros((2, 1), np.int64), x.T.copy()], {}, "shape"),
                ("ScatterElements", [x, np.zeros((1, 3), np.int64), x], {}, "shape"),
                ("ScatterElements", [x, np.zeros((2, 3), np.int64), x], {"reduction": "mean"}, "reduction")):
            with self.subTest(op_type), self.assertRaisesRegex(runnel.Failure, words):
                self.run_node(op_type, inputs, **attributes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
