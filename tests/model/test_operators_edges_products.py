# SPDX-License-Identifier: Apache-2.0
"""Products of integers, exact and wrapped to their type; quantised ones at the limits of bytes and past those of int32."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import F32, INTEGERS, Table, TableTest  # noqa: E402

WIDE = [np.dtype(t) for t in (np.int32, np.int64, np.uint32, np.uint64)]
BYTES = (np.uint8, np.int8)
MICROSOFT = "com.microsoft"


def limits(random, dtype, shape):
    """Mostly a type's ends."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, info.max // 2 + 1], dtype)
    return np.where(random.integers(0, 4, shape) > 0, random.choice(ends, shape), random.integers(
        info.min, info.max, shape, dtype, endpoint=True)).astype(dtype)


def wrapped(a, b, dtype):
    return edges.wrap(edges.exactly(a) @ edges.exactly(b), dtype)


def wide(array):
    return array.astype(np.int64)


class ProductsTest(TableTest):
    def test_integers(self):
        def add(table, dtype, random):
            for rows, depth, columns in ((7, 13, 5), (1, 3, 1), (5, 1, 67), (1, 257, 33)):
                a, b = limits(random, dtype, (rows, depth)), limits(random, dtype, (depth, columns))
                y = wrapped(a, b, dtype)
                table.add("Einsum", [a, b], [y], equation="ij,jk->ik")
                if dtype in WIDE:
                    table.add("MatMul", [a, b], [y])
                    table.add("MatMul", [np.stack([a, a]), b], [np.stack([y, y])], constants=(1,))
                    c = limits(random, dtype, (columns,))
                    sums = edges.wrap(edges.exactly(y) * 2 + edges.exactly(c) * 3, dtype)
                    table.add("Gemm", [a, np.ascontiguousarray(b.T), c], [sums], transB=1, alpha=2.0, beta=3.0)

        self.check_types(INTEGERS, add)

    # ---- bytes ----

    def test_integer_matrices(self):
        random = np.random.default_rng(1)
        table = Table()
        for a_type in BYTES:
            for b_type in BYTES:
                for rows, depth, columns in ((7, 13, 5), (1, 67, 33), (5, 257, 1)):
                    a, b = limits(random, a_type, (rows, depth)), limits(random, b_type, (depth, columns))
                    za, zb = limits(random, a_type, ()), limits(random, b_type, (columns,))
                    y = ((wide(a) - wide(za)) @ (wide(b) - wide(zb))).astype(np.int32)
                    table.add("MatMulInteger", [a, b, za, zb], [y])
                    table.add("MatMulInteger", [a, b, za, zb], [y], constants=(1, 2, 3))
                x = limits(random, a_type, (2, 3, 5, 7))
                w = limits(random, b_type, (5, 3, 3, 3))
                y = self.convolved(wide(x) - wide(za), wide(w) - wide(zb[0]))
                table.add("ConvInteger", [x, w, za, zb[0]], [y.astype(np.int32)], pads=[1] * 4)
                table.add("ConvInteger", [x, w, za, zb[0]], [y.astype(np.int32)], pads=[1] * 4, constants=(1, 2, 3))
        table.check(self, self.device)

    @staticmethod
    def convolved(x, w):
        """3 x 3 with a border of zeros."""
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        height, width = x.shape[2] - 2, x.shape[3] - 2
        return sum(np.einsum("nchw,mc->nmhw", x[:, :, i : i + height, j : j + width], w[:, :, i, j])
                   for i in range(3) for j in range(3))

    def test_sums_past_int32(self):
        """The specification lets sums overflow in 32 bits: they wrap."""
        table = Table()
        for a_type, b_type, a_value, b_value in ((np.uint8, np.uint8, 255, 255), (np.uint8, np.int8, 255, -128),
                                                 (np.int8, np.uint8, -128, 255), (np.int8, np.int8, -128, -128)):
            depth = 2**31 // abs(a_value * b_value) + 5
            a, b = np.full((2, depth), a_value, a_type), np.full((depth, 3), b_value, b_type)
            a[1, 5:] = 1
            y = (wide(a) @ wide(b)).astype(np.int32)
            table.add("MatMulInteger", [a, b], [y])
            if a_type == b_type:
                x, w = np.ascontiguousarray(a.T)[None, :, :, None], np.ascontiguousarray(b.T)[:, :, None, None]
                table.add("ConvInteger", [x, w], [y.T[None, :, :, None]])
        table.check(self, self.device)

    def test_quantised(self):
        """Scales that are powers of 2: quotients are exact, so ties go to even and the rest saturates."""
        random = np.random.default_rng(2)
        table = Table()
        kinds = [(t, u, v) for t in BYTES for u in BYTES for v in BYTES]
        for number, (a_type, b_type, y_type) in enumerate(kinds):
            info = np.iinfo(y_type)
            scale = [np.array(s, np.float32) for s in (0.5, 0.25, (1, 64, 4096)[number % 3])]
            a, b = limits(random, a_type, (7, 13)), limits(random, b_type, (13, 5))
            za, zb, zy = (limits(random, t, ()) for t in (a_type, b_type, y_type))
            sums = (wide(a) - wide(za)) @ (wide(b) - wide(zb))
            y = np.clip(np.rint(sums / 8 / scale[2]) + wide(zy), info.min, info.max).astype(y_type)
            table.add("QLinearMatMul", [a, scale[0], za, b, scale[1], zb, scale[2], zy], [y])
            x, w = limits(random, a_type, (1, 3, 5, 7)), limits(random, b_type, (5, 3, 3, 3))
            bias = np.array([2**30, -(2**30), 12345, -1, 0], np.int32)
            sums = self.convolved(wide(x) - wide(za), wide(w) - wide(zb)) + wide(bias)[:, None, None]
            y = np.clip(np.rint(sums / 8 / scale[2]) + wide(zy), info.min, info.max).astype(y_type)
            table.add("QLinearConv", [x, scale[0], za, w, scale[1], zb, scale[2], zy, bias], [y], pads=[1] * 4,
                      constants=(1, 2, 3, 4, 5, 6, 7, 8) if number % 2 else ())
        table.check(self, self.device)

    def test_microsoft_quantised(self):
        random = np.random.default_rng(3)
        table = Table(17)
        one, half = np.array(1, np.float32), np.array(0.5, np.float32)
        for a_type, b_type in ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)):
            info = np.iinfo(a_type)
            a, b = limits(random, a_type, (5, 33)), limits(random, b_type, (33, 7))
            za, zb, zy = limits(random, a_type, ()), limits(random, b_type, (7,)), limits(random, a_type, ())
            c = np.array([2**30, -(2**30), 3, 0, -1, 2**24, -7], np.int32)
            sums = (wide(a) - wide(za)) @ (wide(b) - wide(zb)) + wide(c)
            scales = np.full(7, 0.5, np.float32)
            table.add("QGemm", [a, half, za, b, scales, zb, c], [sums / 4], 4 * 2**-24 * np.abs(sums / 4), F32,
                      domain=MICROSOFT, alpha=1.0)
            y = np.clip(np.rint(sums / 1024) + wide(zy), info.min, info.max).astype(a_type)
            table.add("QGemm", [a, half, za, b, scales, zb, c, np.array(256, np.float32), zy], [y], domain=MICROSOFT)
            bias = np.array([np.inf, -np.inf, np.nan, 0, 1e30, -1, 2], np.float32)
            plain = (wide(a) - wide(za)) @ (wide(b) - wide(zb)) / 4
            table.add("MatMulIntegerToFloat", [a, b, half, scales, za, zb, bias], [plain + bias.astype(np.float64)],
                      4 * 2**-24 * np.abs(plain), F32, domain=MICROSOFT)
            p, q = limits(random, a_type, (3, 33)), limits(random, a_type, (3, 33))
            zp, zq = limits(random, a_type, ()), limits(random, a_type, ())
            both = (wide(p) - wide(zp)) * 0.5 + (wide(q) - wide(zq))
            table.add("QLinearAdd", [p, half, zp, q, one, zq, one, zy], [np.clip(
                np.rint(both) + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT)
            both = (wide(p) - wide(zp)) * (wide(q) - wide(zq)) * 0.5
            table.add("QLinearMul", [p, half, zp, q, one, zq, one, zy], [np.clip(
                np.rint(both) + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT)
            joined = np.concatenate([np.rint((wide(p) - wide(zp)) * 0.5), wide(q) - wide(zq)], 1)
            table.add("QLinearConcat", [one, zy, p, half, zp, q, one, zq], [np.clip(
                joined + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT, axis=1)
            image = limits(random, a_type, (1, 3, 4, 4))
            means = (wide(image) - wide(zp)).reshape(1, 3, 2, 2, 2, 2).sum((3, 5)) / 4
            table.add("QLinearAveragePool", [image, one, zp, one, zy], [np.clip(
                np.rint(means) + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT, kernel_shape=[2, 2],
                      strides=[2, 2])
            means = (wide(image) - wide(zp)).sum((2, 3), keepdims=True) / 16
            table.add("QLinearGlobalAveragePool", [image, one, zp, one, zy], [np.clip(
                np.rint(means) + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT)
            leaked = (wide(p) - wide(zp)) * np.where(wide(p) < wide(zp), 0.25, 1)
            table.add("QLinearLeakyRelu", [p, one, zp, one, zy], [np.clip(
                np.rint(leaked) + wide(zy), info.min, info.max).astype(a_type)], domain=MICROSOFT, alpha=0.25)
        table.check(self, self.device)

    def test_dynamic_quantised(self):
        """a is 0 and 255 steps of 2: its quantisation is exact."""
        random = np.random.default_rng(4)
        table = Table(17)
        steps = random.integers(0, 256, (5, 13))
        steps[0, :2] = 0, 255
        a, b = (steps * 2).astype(np.float32), limits(random, np.int8, (13, 3))
        zb = limits(random, np.int8, (3,))
        y = (steps * 2) @ (wide(b) - wide(zb)) * 0.5
        table.add("DynamicQuantizeMatMul", [a, b, np.full(3, 0.5, np.float32), zb], [y], 4 * 2**-24 * np.abs(y),
                  domain=MICROSOFT)
        table.check(self, self.device)


if __name__ == "__main__":
    unittest.main(verbosity=2)
