# SPDX-License-Identifier: Apache-2.0
"""Reductions, ArgMax and ArgMin, sums so far and softmax at the edges of each type, on the device and on the host; and that each
operator of these families is in a table at each type that the library has it for."""

import unittest

import edge_binary
import edge_reduce
import edge_unary
import edges
import numpy as np
from edges import FLOATS, runnel


class EdgesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def check_all(self, batch, cases, dtype):
        """cases: (name, place, reference, x, units)"""
        results = batch.run(self.device)
        where = "host" if batch.constant else "device"
        may_flush = not batch.constant and edges.flushes(self.device, dtype)
        for name, place, reference, x, units in cases:
            with self.subTest(f"{name} of {dtype} on the {where}"):
                edges.check(self, f"{name} of {dtype} on the {where}", results[place], reference, [x], units, may_flush, False)

    def check_reductions(self, dtype, constant):
        batch, cases = edges.Batch(constant=constant), []
        for row in edges.taken(edge_reduce.ROWS, dtype):
            x = row.data(dtype, edge_reduce.SHAPE)
            for axes in edge_reduce.AXES:
                for keep in (0, 1):
                    given = [x] + ([batch.weight(np.array(axes, np.int64))] if axes is not None else [])
                    place = batch.add(row.op_type, given, dtype, keepdims=keep)
                    cases.append((f"{row.op_type} over {axes}", place, row.reference_of(dtype, axes, bool(keep)), x,
                                  row.units_of(dtype, axes)))
        self.check_all(batch, cases, dtype)

    def check_args(self, dtype):
        """The first NaN is the largest and the smallest; of equals the first or the last."""
        batch, cases = edges.Batch(), []
        x = edges.values(dtype, 5 * 17).reshape(5, 17)
        for op_type, find in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            place = batch.add(op_type, [x], np.int64, axis=1, keepdims=0)
            cases.append((op_type, place, lambda x, find=find: find(x, axis=1), x, 0))
        self.check_all(batch, cases, dtype)

    def check_softmax(self, dtype):
        """exp of a difference, that rounds, over a sum of 17; minus infinity gives 0, infinity and NaN a NaN."""
        x = edges.values(dtype, 67 * 17, -30, 30, seed=3).reshape(67, 17)
        x[1, 2], x[3, 4], x[5, 6], x[5, 7] = np.nan, np.inf, -np.inf, -np.inf

        def parts(x):
            with np.errstate(all="ignore"):
                shifted = x - np.max(x, axis=1, keepdims=True)
                return shifted, np.sum(np.exp(shifted), axis=1, keepdims=True)

        def softmax_units(work, exact, x):
            shifted, _ = parts(x)
            return 30 + 2 * np.abs(shifted)

        def log_units(work, exact, x):
            shifted, total = parts(x)
            return 4 + (40 * 2.0 ** -work.bits + work.unit(shifted) + work.unit(np.log(total))) / work.unit(exact)

        batch = edges.Batch()
        cases = [("Softmax", batch.add("Softmax", [x], dtype), lambda x: np.exp(parts(x)[0]) / parts(x)[1], x, softmax_units),
                 ("LogSoftmax", batch.add("LogSoftmax", [x], dtype), lambda x: parts(x)[0] - np.log(parts(x)[1]), x, log_units)]
        self.check_all(batch, cases, dtype)

    def test_coverage(self):
        """An operator of the tables is in them at each type that the library lists for it."""
        tables = {}
        for row in edge_unary.ROWS + edge_binary.ROWS:
            tables.setdefault((row.domain, row.op_type), set()).update(row.types)
        claimed, missing = edges.claimed(self.device.library), []
        for key, types in tables.items():
            self.assertIn(key, claimed)
            missing += [f"{key[1]} of {dtype}" for dtype in claimed[key] if dtype not in types]
        self.assertEqual(missing, [])


def add_tests():
    for dtype in edges.FLOATS + edges.INTEGERS + [edges.BOOL]:
        def test(self, dtype=dtype):
            if not edges.has_type(self.device, dtype):
                self.skipTest(f"the device has no {dtype}")
            if any(dtype in row.types for row in edge_reduce.ROWS):
                self.check_reductions(dtype, constant=False)
                self.check_reductions(dtype, constant=True)
            if dtype != edges.BOOL:
                self.check_args(dtype)
            if dtype in FLOATS:
                self.check_softmax(dtype)
        setattr(EdgesTest, f"test_{dtype}", test)


add_tests()
if __name__ == "__main__":
    unittest.main(verbosity=2)
