# SPDX-License-Identifier: Apache-2.0
"""Scatters with and without a reduction, Unique and Range, bit for bit against numpy and Python's numbers: each type, NaN,
infinities, denormals, both zeros and the limits of integers."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
from edge_table import ALL, F32, FLOATS, INTEGERS, Table, TableTest, elements  # noqa: E402

LEAST, MOST = -(2**63), 2**63 - 1


def ints(*values):
    return np.array(values, np.int64)


def scattered(data, places, updates, reduce):
    """`places`: for each element of updates an index into data."""
    result = data.copy()
    with np.errstate(all="ignore"):
        for at, to in places:
            result[to] = reduce(result[to], updates[at])
    return result


def replaced(x, y):
    return y


REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class ScatterTest(TableTest):
    def both(self, given, known, op_type, inputs, expected, **attributes):
        """The node with data from outside, and with data that is known."""
        given.add(op_type, inputs, expected, **attributes)
        known.add(op_type, inputs, expected, constants=range(len(inputs)), **attributes)

    def test_scatter(self):
        def add(given, dtype, random):
            x, updates = elements(dtype, (4, 5, 3)), elements(dtype, (2, 5, 3), 1)
            at = np.stack([np.stack([random.permutation(4)[:2] for _ in range(5)], 1) for _ in range(3)], 2)
            at = np.where(random.integers(0, 2, at.shape), at, at - 4)
            places = [(i, (at[i], i[1], i[2])) for i in np.ndindex(at.shape)]
            plain = scattered(x, places, updates, replaced)
            given.add("ScatterElements", [x, at, updates], [plain], axis=0)
            tuples = np.array([[3, -1], [0, 2], [-2, 0]])
            rows = elements(dtype, (3, 3), 2)
            spots = [((i,), tuple(t)) for i, t in enumerate(tuples)]
            given.add("ScatterND", [x, tuples, rows], [scattered(x, spots, rows, replaced)])
            past, new = elements(dtype, (2, 7, 3)), elements(dtype, (2, 3, 3), 1)
            linear, ring = past.copy(), past.copy()
            for b, start in enumerate((4, 1)):
                linear[b, start : start + 3] = new[b]
            for b, start in enumerate((6, 2)):
                ring[b, [(start + i) % 7 for i in range(3)]] = new[b]
            given.add("TensorScatter", [past, new, ints(4, 1)], [linear], axis=1)
            given.add("TensorScatter", [past, new, ints(6, 2)], [ring], axis=1, mode="circular")

        self.check_types(ALL, add)

    def test_scatter_reductions(self):
        """One update for each place: one rounding, which is numpy's. Products and sums of integers wrap."""
        def add(given, dtype, random):
            x, updates = elements(dtype, (9, 7)), elements(dtype, (9, 7), 1)
            x[0, 0] = updates[1, 0] = 0
            at = random.permutation(9)[:, None].repeat(7, 1)
            places = [(i, (at[i], i[1])) for i in np.ndindex(at.shape)]
            number = ALL.index(dtype)  # a pair of a type and a reduction is a program
            own = list(REDUCTIONS) if dtype == F32 else [list(REDUCTIONS)[(number + i) % 4] for i in range(2)]
            for name in own:
                expected = scattered(x, places, updates, REDUCTIONS[name])
                bound = 0.0 if dtype in FLOATS and name in ("max", "min") else None  # the more of two zeros is either
                given.add("ScatterElements", [x, at, updates], [expected], bound, reduction=name)
                given.add("ScatterND", [x, at[:, :1], updates], [expected], bound, reduction=name)

        self.check_types(FLOATS + INTEGERS, add)

    def test_scatter_reductions_of_bool(self):
        table = Table()
        x, updates = np.array([[0, 0], [1, 1]], bool), np.array([[0, 1], [0, 1]], bool)
        at = np.array([[0, 0], [1, 1]])
        for name, function in (("add", np.logical_or), ("mul", np.logical_and), ("max", np.logical_or), ("min", np.logical_and)):
            table.add("ScatterElements", [x, at, updates], [function(x, updates)], reduction=name)
        table.check(self, self.device)

    # ---- which are different ----

    def unique(self, x):
        """By Python's own order of exact numbers; NaN is one number and the largest."""
        numbers = [(True, 0) if v != v else (False, float(v) if x.dtype in FLOATS else int(v)) for v in x]
        order = sorted(set(numbers))
        firsts = [numbers.index(n) for n in order]
        return [x[firsts], np.array(firsts, np.int64), np.array([order.index(n) for n in numbers], np.int64),
                np.array([numbers.count(n) for n in order], np.int64)]

    def test_unique(self):
        def add(given, known, dtype, random):
            x = elements(dtype, (61,))
            values, firsts, groups, counts = self.unique(x)
            self.both(given, known, "Unique", [x], [values, firsts, groups, counts])
            by_place = np.argsort(firsts)
            rank = np.argsort(by_place)
            self.both(given, known, "Unique", [x], [x[firsts[by_place]], firsts[by_place], rank[groups], counts[by_place]], sorted=0)
            rows = np.ascontiguousarray(x[[0, 1, 0, 2, 1, 0]][:, None].repeat(3, 1))
            values, firsts, groups, counts = self.unique(rows[:, 0])
            self.both(given, known, "Unique", [rows], [rows[firsts], firsts, groups, counts], axis=0)

        self.check_types(ALL, add, tables=2)

    def test_range(self):
        table = Table(27)
        for dtype, cases in ((np.int16, ((-32768, 32767, 9999), (32767, -32768, -32767), (5, 5, 1))),
                             (np.int32, ((-(2**31), 2**31 - 1, 2**30), (2**31 - 1, 2**31 - 4, -1))),
                             (np.int64, ((LEAST, LEAST + 7, 3), (MOST - 5, MOST, 2), (2**53, 2**53 + 3, 1)))):
            for start, limit, step in cases:
                given = [np.array(v, dtype) for v in (start, limit, step)]
                expected = np.array(list(range(start, limit, step)), dtype)
                table.add("Range", given, [expected], constants=(0, 1, 2))
                table.add("Range", given, [expected])
        table.check(self, self.device)

    def test_scatter_of_opset_9(self):
        x = elements(F32, (3, 4, 5))
        table = Table(9)
        table.add("Scatter", [x, np.array([[[1, -1, 0, 2, 1]]]), x[:1, :1]], [scattered(
            x, [((0, 0, i), (p, 0, i)) for i, p in enumerate((1, 2, 0, 2, 1))], x[:1, :1], replaced)])
        table.check(self, self.device)


if __name__ == "__main__":
    unittest.main(verbosity=2)
