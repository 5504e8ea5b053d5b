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

    def test_arg(self):
        special = np.array([[1, np.nan, 5, np.nan, -np.inf], [3, 3, -1, -1, 3], [np.inf, -np.inf, 0, np.inf, -np.inf]],
                           np.float32)
        cases = [some(self.rng, t, (3, 5, 4)) for t in (np.float32, np.float16, np.int8, np.uint16, np.int64, np.uint64)]
        cases += [special, special.astype(np.float16), np.array([-2**63, 2**63 - 1, 2**63 - 1]), np.float32([7])]
        for x in cases:
            for axis in range(-1, x.ndim):
                for op_type, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
                    for last in (0, 1):
                        expected = function(x, axis)
                        if last:
                            expected = x.shape[axis] - 1 - function(np.flip(x, axis), axis)
                        for keep in (0, 1):
                            got = self.run_node(op_type, [x], axis=axis, keepdims=keep, select_last_index=last)
                            result = np.asarray(expected, np.int64)
                            self.check(got, np.expand_dims(result, axis) if keep else result)
        long = self.rng.standard_normal((2, 50000)).astype(np.float32)
        self.check(self.run_node("ArgMax", [long], axis=1, keepdims=0), np.argmax(long, 1))
        self.check(self.run_node("ArgMax", [long[:0]], axis=1, keepdims=0), np.zeros(0, np.int64))

    def test_hardmax(self):
        x = self.rng.standard_normal((3, 4, 5)).astype(np.float32)
        x[0, 0] = 2  # ties: the first
        for opset, axis in ((13, -1), (13, 1), (11, 1), (11, 2), (11, -3), (9, 0)):
            shape = x.shape if opset >= 13 else (int(np.prod(x.shape[:axis % 3])), -1)
            rows = x.reshape(shape)
            at = axis % 3 if opset >= 13 else 1
            expected = (np.expand_dims(np.argmax(rows, at), at) == np.arange(rows.shape[at]).reshape(
                [-1 if i == at else 1 for i in range(rows.ndim)])).astype(np.float32).reshape(x.shape)
            self.check(self.run_node("Hardmax", [x], opset=opset, axis=axis), expected)

    def top(self, x, k, axis, largest):
        """By sorting Python's numbers; NaN above all, the first of equal ones first."""
        x = np.moveaxis(x, axis, -1)
        places = np.empty(x.shape[:-1] + (k,), np.int64)
        for at in np.ndindex(x.shape[:-1]):
            row = x[at].tolist()
            order = sorted(range(len(row)), key=lambda i: (row[i] != row[i], 0 if row[i] != row[i] else row[i],
                                                           -i if largest else i), reverse=bool(largest))
            places[at] = order[:k]
        return np.moveaxis(np.take_along_axis(x, places, -1), -1, axis), np.moveaxis(places, -1, axis)

    def test_topk(self):
        special = np.array([1, np.nan, 5, np.nan, -np.inf, 5, np.inf, 0, -0.0, 1], np.float32)
        cases = [(some(self.rng, t, (3, 17, 4)), axis) for t, axis in zip(TYPES[:-1], (0, 1, 2, -1, 1, 1, 2, 1, 0, 1))]
        cases += [(special, 0), (np.array([2**63 - 1, -2**63, 5, 2**63 - 1]), 0), (np.float32([[3]]), 1)]
        for x, axis in cases:
            size = x.shape[axis]
            for k in sorted({0, 1, min(2, size), size // 2, size}):
                for largest in (0, 1):
                    values, places = self.run_node("TopK", [x, np.array([k])], 2, axis=axis, largest=largest)
                    expected = self.top(x, k, axis, largest)
                    self.check(places, expected[1])
                    self.check(values, expected[0])
        x = self.rng.standard_normal((2, 50000)).astype(np.float32)
        values, places = self.run_node("TopK", [x, np.array([50])], 2, constants=(1,))
        self.check(places, np.argsort(-x, 1, kind="stable")[:, :50])
        values, _ = self.run_node("TopK", [x[:1, :3000], np.array([3000])], 2)
        self.check(values, -np.sort(-x[:1, :3000], 1))
        values, _ = self.run_node("TopK", [x[:, :20]], 2, opset=9, k=3)
        self.check(values, -np.sort(-x[:, :20], 1)[:, :3])
        with self.assertRaisesRegex(runnel.Failure, "TopK takes 4 elements"):
            self.run_node("TopK", [special[:3], np.array([4])], 2)

    def test_cumulative(self):
        def expected(x, axis, exclusive, reverse, product):
            wide = x.astype(np.float64) if x.dtype.kind == "f" else x
            wide = np.flip(wide, axis) if reverse else wide
            result = (np.cumprod if product else np.cumsum)(wide, axis, dtype=wide.dtype)
            if exclusive:
                result = np.roll(result, 1, axis)
                result[tuple(slice(0, 1) if i == axis % x.ndim else slice(None) for i in range(x.ndim))] = int(product)
            return (np.flip(result, axis) if reverse else result).astype(x.dtype)

        for dtype in (np.float32, np.float16, np.int32, np.int64, np.uint32):
            x = some(self.rng, dtype, (4, 7, 3), -3, 4)
            if dtype in (np.int32, np.int64):
                x[0, 0] = np.iinfo(dtype).max  # wraps
            for axis, exclusive, reverse, product in ((0, 0, 0, 0), (1, 1, 0, 0), (-1, 0, 1, 0), (1, 1, 1, 0), (1, 0, 0, 1),
                                                      (0, 1, 1, 1)):
                got = self.run_node("CumProd" if product else "CumSum", [x, np.array(axis, (np.int32, np.int64)[exclusive])],
                                    exclusive=exclusive, reverse=reverse)
                self.check(got, expected(x, axis, exclusive, reverse, product))
        x = self.rng.standard_normal((2, 50000)).astype(np.float32) + 1
        got = self.run_node("CumSum", [x, np.array(1)], constants=(1,))
        np.testing.assert_allclose(got, np.cumsum(x.astype(np.float64), 1), rtol=2e-7)
        x = np.array([1, np.inf, 2, -np.inf, 3], np.float32)
        self.check(self.run_node("CumSum", [x, np.array(0)]), np.array([1, np.inf, np.inf, np.nan, np.nan], np.float32))
        self.check(self.run_node("CumSum", [x[:0], np.array(0)]), x[:0])

    def test_trilu(self):
        for dtype in (np.float32, np.float16, np.int64, np.uint8, np.bool_):
            x = some(self.rng, dtype, (2, 3, 5, 7), 1, 9)
            for k in (None, 0, 2, -3, 7, -6, 100, -2**40):
                for upper in (0, 1):
                    inputs = [x] + ([] if k is None else [np.array(k)])
                    expected = (np.triu if upper else np.tril)(x, max(-99, min(99, k or 0)))
                    self.check(self.run_node("Trilu", inputs, upper=upper), expected)

    def test_eye_like(self):
        for dtype in (np.float32, np.int8, np.bool_, np.uint64, np.float16):
            for shape in ((4, 6), (6, 4), (1, 1), (0, 3)):
                for k in (0, 2, -3, 9, -9):
                    got = self.run_node("EyeLike", [np.zeros(shape, np.int32)], k=k, dtype=helper.np_dtype_to_tensor_dtype(
                        np.dtype(dtype)))
                    self.check(got, np.eye(*shape, k=k, dtype=dtype))

    def test_one_hot(self):
        for index_type in (np.int64, np.int32, np.uint8, np.float32):
            indices = np.array([[0, 3, 5], [4, 1, 99]], index_type)
            if np.dtype(index_type).kind != "u":
                indices[0, 1], indices[1, 1] = -2, -6  # of 5: the fourth; none
            for values in (np.float32([0.5, 2]), np.int64([-1, 7]), np.array([False, True]))[:3 if index_type == np.int64 else 1]:
                for axis in (0, 1, -1):
                    shifted = np.where(indices < 0, indices.astype(np.int64) + 5, indices.astype(np.int64))
                    at = axis % 3
                    grid = np.arange(5).reshape([5 if i == at else 1 for i in range(3)])
                    expected = np.where(np.expand_dims(shifted, at) == grid, values[1], values[0])
                    got = self.run_node("OneHot", [indices, np.array(5), values], constants=(1,), axis=axis)
                    self.check(got, expected.astype(values.dtype))
        self.check(self.run_node("OneHot", [np.int64(2), np.array([4]), np.float32([0, 1])], constants=(1,)),
                   np.float32([0, 0, 1, 0]))
        self.check(self.run_node("OneHot", [np.int64([1]), np.float32([0]), np.float32([0, 1])], constants=(1,)),
                   np.zeros((1, 0), np.float32))

    def test_reverse_sequence(self):
        for dtype in (np.float32, np.int8, np.float16, np.int64):
            x = some(self.rng, dtype, (5, 4, 3))
            for time, batch in ((0, 1), (1, 0)):
                lengths = np.array([0, 1, x.shape[time], 2, 3][:x.shape[batch]])
                expected = x.copy()
                for b, length in enumerate(lengths):
                    to = [slice(None)] * 3
                    to[batch], to[time] = b, slice(0, length)
                    expected[tuple(to)] = np.flip(x[tuple(to)], 0)
                self.check(self.run_node("ReverseSequence", [x, lengths], time_axis=time, batch_axis=batch), expected)
        self.check(self.run_node("ReverseSequence", [x, np.array([99, -5, 2**40, 1])]),
                   np.stack([x[::-1, 0], x[:, 1], x[::-1, 2], x[:, 3]], 1))

    def test_tensor_scatter(self):
        for dtype in (np.float32, np.float16, np.int8):
            past, update = some(self.rng, dtype, (3, 2, 6, 4)), some(self.rng, dtype, (3, 2, 4, 4))
            for mode, starts in (("linear", [0, 1, 2]), ("circular", [5, 0, 13]), ("linear", None), ("linear", [-1, 4, 99])):
                expected = past.copy()
                for b in range(3):
                    for i in range(4):
                        place = (starts[b] if starts else 0) + i
                        place = place % 6 if mode == "circular" else place
                        if place < 6 and (starts or [0] * 3)[b] >= 0:  # what does not fit is left out
                            expected[b, :, place] = update[b, :, i]
                inputs = [past, update] + ([np.array(starts)] if starts else [])
                self.check(self.run_node("TensorScatter", inputs, mode=mode), expected)

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
