# SPDX-License-Identifier: Apache-2.0
"""Products of matrices of floats, with NaN, infinities and denormals among the factors, within the bound of any order of summing.

A sum of n products in a type of unit roundoff u is within (n + 1) u sum|a b| of the exact one, in any order; beside that, each
product that is denormal errs by half the least denormal."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import BF16, FLOATS, TableTest, rounding  # noqa: E402

MICROSOFT = "com.microsoft"


def factors(random, dtype, rows, depth, columns):
    """Numbers of order 1; in their own rows and columns NaN, infinities of both signs, zeros, denormals and large numbers."""
    a, b = random.standard_normal((rows, depth)), random.standard_normal((depth, columns))
    tiny = float(edges.ml_dtypes.finfo(dtype).tiny)
    large = min(float(edges.ml_dtypes.finfo(dtype).max), 1e300) / 64 / depth
    a[0, 1 % depth], a[1 % rows, depth // 2] = np.nan, np.inf
    a[2 % rows, 0], a[2 % rows, depth - 1] = np.inf, -np.inf
    if dtype == BF16:  # x86's instruction for these takes denormals for zeros: times infinity they would be NaN
        a[3 % rows], b[:, 3 % columns] = np.sign(a[3 % rows]) * 2 * tiny, np.sign(b[:, 3 % columns]) * 2 * tiny
    else:
        a[3 % rows], b[:, 3 % columns] = a[3 % rows] * tiny / 8, b[:, 3 % columns] * tiny / 3
    a[4 % rows] *= large
    b[depth // 2, 1 % columns] = 0  # times infinity
    b[:, 2 % columns] = 0
    b[depth // 3, 4 % columns] = -np.inf
    return a.astype(dtype), b.astype(dtype)


def product(a, b):
    """Exact enough, and the bound."""
    own = rounding(a.dtype)
    least = float(np.finfo(edges.computed_in(a.dtype)).smallest_subnormal)
    if a.dtype == BF16:
        least = float(np.finfo(np.float32).tiny)
    wide_a, wide_b = edges.widen(a), edges.widen(b)
    depth = a.shape[-1]
    with np.errstate(all="ignore"):
        finite = [np.where(np.isfinite(x), np.abs(x), 0) for x in (wide_a, wide_b)]
        most = [x.max(initial=0) for x in finite] if a.dtype == BF16 else [0, 0]
        bound = (depth + 1) * own * (finite[0] @ finite[1]) + depth * least * (1 + most[0] + most[1])
        return sum(wide_a[..., i, None] * wide_b[..., i, None, :] for i in range(depth)), bound


class MatMulTest(TableTest):
    SIZES = ((7, 13, 5), (1, 3, 1), (5, 1, 67), (1, 257, 33), (65, 67, 71))

    def test_floats(self):
        def add(table, dtype, random):
            for rows, depth, columns in self.SIZES:
                a, b = factors(random, dtype, rows, depth, columns)
                y, bound = product(a, b)
                table.add("MatMul", [a, b], [y], bound)
            table.add("MatMul", [a, b], [y], bound, constants=(1,))
            table.add("Einsum", [a, b], [y], bound, equation="ij,jk->ik")
            table.add("Gemm", [np.ascontiguousarray(a.T), b], [y], bound, transA=1)
            stack = np.stack([a, a[::-1], a])
            parts = [product(x, b) for x in stack]
            table.add("MatMul", [stack, b], [np.stack([p[0] for p in parts])], np.stack([p[1] for p in parts]))
            vector = factors(random, dtype, 1, 67, 71)[0][0]
            y, bound = product(vector[None], b)
            table.add("MatMul", [vector, b], [y[0]], bound[0])
            table.add("FusedMatMul", [a, np.ascontiguousarray(b.T)], [product(a, b)[0]], product(a, b)[1], domain=MICROSOFT,
                      transB=1)

        self.check_types(FLOATS, add)

    def test_gemm_bias(self):
        """alpha a b + beta c errs by two roundings more of the product and two of the bias."""
        def add(table, dtype, random):
            for shape in ((7, 5), (5,), (7, 1), ()):
                a, b = factors(random, dtype, 7, 13, 5)
                c = random.standard_normal(shape).astype(dtype)
                c[...] = np.where(random.integers(0, 4, shape) == 0, np.array(np.inf, dtype), c)
                y, bound = product(a, b)
                alpha, beta = float(np.float32(0.3)), -1.5
                c_wide = edges.widen(c)
                with np.errstate(all="ignore"):
                    exact = alpha * y + beta * c_wide
                    more = 4 * rounding(dtype) * (np.abs(alpha * np.nan_to_num(y, posinf=0, neginf=0)) +
                                                  1.5 * np.abs(np.where(np.isfinite(c_wide), c_wide, 0)))
                table.add("Gemm", [a, b, c], [exact], alpha * bound + more + np.zeros_like(exact), alpha=0.3, beta=beta)

        self.check_types(FLOATS, add)


if __name__ == "__main__":
    unittest.main(verbosity=2)
