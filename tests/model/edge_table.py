# SPDX-License-Identifier: Apache-2.0
"""Tables of nodes with what they must give, on top of edges.py: all of a table are one model.

An output is expected bit for bit (any NaN is any other), or as float64 (of float64: as float64 or long double) with a bound:
how far a result may be from the exact number beside its one rounding to the type in which it is stored. NaN has to be where
it is expected, and an infinity where the exact number, or one within the bound, rounds to it."""

import unittest

import edges
import numpy as np
import runnel
from edges import BF16, BOOL, F16, F32, F64, FLOATS, INTEGERS  # noqa: F401

ALL = FLOATS + INTEGERS + [BOOL]
STORED = [np.dtype(runnel.DTYPES[code]) for code in range(17, 27)]  # moved and cast, no arithmetic
BITS = {np.dtype(runnel.DTYPES[code]): bits for code, bits in ((21, 4), (22, 4), (23, 4), (25, 2), (26, 2))}
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def usable(device, dtypes):
    """Those of the types that the device computes in."""
    return [dtype for dtype in dtypes if edges.has_type(device, dtype)]


def elements(dtype, shape, seed=0):
    """Two thirds of them a type's edges, the rest any bits, in any order."""
    dtype, random, count = np.dtype(dtype), np.random.default_rng(seed), int(np.prod(shape))
    bits = 1 if dtype == BOOL else BITS.get(dtype, 8)
    result = np.frombuffer(random.bytes(max(1, count * dtype.itemsize)), np.uint8) & (2**bits - 1)
    result = result[: count * dtype.itemsize].copy().view(dtype)
    if dtype not in STORED:
        own = edges.edge_values(dtype)
        places = random.permutation(count)[: -(-count * 2 // 3)]
        result[places] = own[(np.arange(places.size) + random.integers(own.size)) % own.size]
    return result.reshape(shape)


def rounding(dtype):
    """What one operation in the type that is computed in errs at most, relative to its result."""
    return float(np.finfo(edges.computed_in(dtype)).eps) / 2


def image(random, dtype, shape, nan=True, infinite=True):
    """Numbers of order 1, some denormal; few that are not finite, so that most windows have none."""
    x = random.standard_normal(shape)
    flat = x.reshape(-1)
    picked = random.permutation(flat.size)
    flat[picked[: flat.size // 9]] *= float(edges.ml_dtypes.finfo(dtype).tiny) / 4
    flat[picked[-1]] = np.nan if nan else 0
    if infinite:
        flat[picked[-2]], flat[picked[-3]] = np.inf, -np.inf
    return x.astype(dtype)


def wide(x):
    return x.astype(np.float64)


def finite(x):
    return np.where(np.isfinite(wide(x)), np.abs(wide(x)), 0)


def factor(dtype):
    """Roundings: the reference's own, in float64, count too where that is the type."""
    return rounding(dtype) * (2 if dtype == F64 else 1)


def bits_differ(got, expected):
    word = WORDS[expected.dtype.itemsize]
    got, expected = np.ascontiguousarray(got), np.ascontiguousarray(expected)
    low = np.array(2 ** BITS[expected.dtype] - 1 if expected.dtype in BITS else np.iinfo(word).max, word)
    differ = (got.view(word) ^ expected.view(word)) & low != 0
    if expected.dtype in BITS or expected.dtype.kind in "iub":
        return differ
    with np.errstate(all="ignore"):
        return differ & ~(np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64)))


def beyond(got, expected, bound):
    """Elements further than the bound from what is expected."""
    own = edges.Precision(got.dtype)
    with np.errstate(all="ignore"):
        wide, exact = got.astype(np.longdouble), np.asarray(expected).astype(np.longdouble)
        allowed = bound + own.unit(exact) * (0.5 + 1e-6)
        near = np.abs(wide - exact) <= allowed
        ends = own.largest + own.unit(own.largest) / 2
        over = np.isinf(wide) & (np.sign(wide) == np.sign(exact)) & (np.abs(exact) + allowed >= ends)
    return ~(near | over | (wide == exact) | (np.isnan(wide) & np.isnan(exact)))


class Table:
    def __init__(self, opset=edges.OPSET):
        self.opset, self.cases = opset, []

    def add(self, op_type, inputs, expected, bound=None, dtype=None, constants=(), domain="", **attributes):
        """inputs: arrays, None for one left out; `constants`: which of them are initialisers. expected: a list of arrays, or
        (array, bound) where outputs have bounds of their own. dtype: of outputs with a bound; the first input's if None."""
        inputs = [None if a is None else np.asarray(a) for a in inputs]
        expected = [e if isinstance(e, tuple) else (e, bound) for e in expected]
        dtype = np.dtype(dtype or inputs[0].dtype)
        self.cases.append((op_type, inputs, [(np.asarray(e), b) for e, b in expected], dtype, constants, domain, attributes))

    def run(self, device, cases):
        batch = edges.Batch(self.opset)
        for op_type, inputs, expected, dtype, constants, domain, attributes in cases:
            sources = [batch.weight(a) if i in constants and a is not None else a for i, a in enumerate(inputs)]
            types = [e.dtype if b is None else dtype for e, b in expected]
            batch.add(op_type, sources, types, domain, **attributes)
        results = iter(batch.run(device))
        return [[next(results) for _ in case[2]] for case in cases]

    def wrong(self, case, results, device):
        """What is wrong with a case's outputs, in lines."""
        op_type, inputs, expected, dtype, _, _, attributes = case
        kinds = ", ".join("-" if a is None else f"{a.dtype}{list(a.shape)}" for a in inputs)
        for i, (got, (want, bound)) in enumerate(zip(results, expected)):
            told = f"{op_type} of {kinds} {attributes}, output {i}"
            if got.shape != want.shape or (bound is None and got.dtype != want.dtype):
                yield f"{told}: {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
                continue
            if bound is not None and edges.flushes(device, dtype):
                bound = bound + 2 * float(np.finfo(np.float32).tiny)
            differ = bits_differ(got, want) if bound is None else beyond(got, want, bound)
            if differ.any():
                at = tuple(int(n) for n in np.argwhere(differ)[0])
                room = "" if bound is None else f" within {np.broadcast_to(bound, want.shape)[at]}"
                yield f"{told}: {int(differ.sum())} of {differ.size}, as at {at}: {got[at]!r} instead of {want[at]!r}{room}"

    def check(self, test, device):
        """Runs all and names all that is wrong; where the model cannot be run, each node by itself."""
        failures = []
        try:
            for case, results in zip(self.cases, self.run(device, self.cases)):
                failures += self.wrong(case, results, device)
        except runnel.Failure as whole:
            for case in self.cases:
                try:
                    failures += self.wrong(case, self.run(device, [case])[0], device)
                except runnel.Failure as failure:
                    failures.append(f"{case[0]} of {[str(a.dtype) for a in case[1] if a is not None]} {case[6]}: {failure}")
            failures = failures or [f"each node runs, all together do not: {whole}"]
        if failures:
            test.fail("\n" + "\n".join(failures[:40]))


class TableTest(unittest.TestCase):
    """A test case of tables on the device under test."""

    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def check_types(self, dtypes, add, opset=edges.OPSET, tables=1):
        """A table, or several, for each type that the device computes in: add(table, …, dtype, random) fills them."""
        for dtype in usable(self.device, dtypes):
            with self.subTest(dtype=str(dtype)):
                made = [Table(opset) for _ in range(tables)]
                with np.errstate(all="ignore"):
                    add(*made, dtype, np.random.default_rng(7))
                for table in made:
                    if table.cases:
                        table.check(self, self.device)
