# SPDX-License-Identifier: Apache-2.0
"""Normalisations, losses and activations that are fused, in each type: constant rows, NaN and infinities in some rows only,
variances that are denormal or 0, offsets much larger than the spread. References in float64 (long double of float64).

Bounds of a row of n values of mean m and deviation s, u being half a unit of the type that is computed in: the mean errs by
(n + 1) u of the mean magnitude a, so a difference from it by that and a rounding of its own: d = (n + 3) u (a + |x|). The sum of
n squares errs by (n + 3) u, and the deviation and the quotient by 3 roundings more. What is normalised errs by
d / s + (2 n + 8) u |y|, where s has the epsilon in it; the mean's error in the deviation is of second order beside d / s."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import F16, F32, F64, FLOATS, TableTest, rounding  # noqa: E402

MICROSOFT = "com.microsoft"
EPSILON = 1e-3


def rows_of(random, dtype, rows, columns):
    """Rows of order 1; then one that is constant, 0, far from 0, denormal, and with NaN and infinities in it."""
    x = random.standard_normal((rows, columns))
    tiny = float(edges.ml_dtypes.finfo(dtype).tiny)
    x[0], x[1], x[2], x[3] = 2.5, 0, x[2] + 100, x[3] * tiny / 8
    x[4, columns // 2], x[5, columns - 1], x[6, 0], x[6, 1 % columns] = np.nan, np.inf, -np.inf, np.inf
    return x.astype(dtype)


def exact(x):
    return edges.widen(x)


def normal(x, axes, scale, bias, mean=True, epsilon=EPSILON):
    """What a normalisation gives, and its bound."""
    wide, u = exact(x), rounding(x.dtype)
    n = int(np.prod([x.shape[a] for a in axes]))
    middle = wide.mean(axes, keepdims=True) if mean else 0
    spread = np.sqrt(((wide - middle) ** 2).mean(axes, keepdims=True) + np.float32(epsilon))
    y = (wide - middle) / spread
    d = (n + 3) * u * (np.abs(wide).mean(axes, keepdims=True) + np.abs(wide)) if mean else 0
    bound = np.abs(scale) * (d / spread + (2 * n + 8) * u * np.abs(y)) + 2 * u * (np.abs(y * scale) + np.abs(bias))
    return y * scale + bias, np.where(np.isfinite(bound), bound, 0).astype(np.float64)


class NormsTest(TableTest):
    def test_rows(self):
        def add(table, dtype, random):
            for columns in (1, 3, 67):
                x = rows_of(random, dtype, 9, columns)
                scale, bias = (random.standard_normal(columns).astype(dtype) for _ in range(2))
                y = normal(x, (1,), exact(scale), exact(bias))
                table.add("LayerNormalization", [x, scale, bias], [y], epsilon=EPSILON)
                plain = normal(x, (1,), exact(scale), 0, False)
                table.add("RMSNormalization", [x, scale], [plain], epsilon=EPSILON)
                table.add("SimplifiedLayerNormalization", [x, scale], [plain], epsilon=EPSILON)
                table.add("SkipLayerNormalization", [x[None], np.zeros_like(x)[None], scale, bias], [(y[0][None], y[1][None])],
                          epsilon=EPSILON, domain=MICROSOFT)
                table.add("SkipSimplifiedLayerNormalization", [x[None], np.zeros_like(x)[None], scale],
                          [(plain[0][None], plain[1][None])], epsilon=EPSILON, domain=MICROSOFT)

        self.check_types(FLOATS, add)

    def test_channels(self):
        def add(table, dtype, random):
            x = rows_of(random, dtype, 9, 35).reshape(3, 3, 5, 7)
            scale, bias = (random.standard_normal(3).astype(dtype) for _ in range(2))
            across = [exact(v)[:, None, None] for v in (scale, bias)]
            table.add("InstanceNormalization", [x, scale, bias], [normal(x, (2, 3), *across)], epsilon=EPSILON)
            groups = rows_of(random, dtype, 18, 70).reshape(9, 2, 2, 35)
            scale, bias = (random.standard_normal(4).astype(dtype) for _ in range(2))
            y, bound = normal(groups, (2, 3), exact(scale).reshape(2, 2, 1), exact(bias).reshape(2, 2, 1))
            table.add("GroupNormalization", [groups.reshape(9, 4, 35), scale, bias],
                      [(y.reshape(9, 4, 35), bound.reshape(9, 4, 35))], num_groups=2, epsilon=EPSILON)
            x = rows_of(random, dtype, 9, 35)
            y, bound = normal(x, (1,), np.ones(1), 0, True, 0)
            middle = exact(x).mean(1, keepdims=True)
            y = (exact(x) - middle) / (np.sqrt(((exact(x) - middle) ** 2).mean(1, keepdims=True)) + 1e-9)
            keep = [i for i in range(9) if i not in (0, 3)]  # of rows that vary by rounding or less, nothing can be said
            table.add("MeanVarianceNormalization", [x[keep]], [(y[keep], bound[keep])], axes=[1])

        self.check_types(FLOATS, add)

    def test_batch(self):
        """(x - mean) / sqrt(variance + epsilon) scale + bias: 6 roundings of what is subtracted, multiplied and added."""
        def add(table, dtype, random):
            x = np.ascontiguousarray(rows_of(random, dtype, 9, 5).T)
            scale, bias, mean = (random.standard_normal(9).astype(dtype) for _ in range(3))
            variance = np.array([0, 1, 1e-4, 4, np.inf, np.nan, 100, 2, 0.5]).astype(dtype)
            if dtype == F16:
                variance[4] = 60000
            wide = [exact(v) for v in (x, scale, bias, mean, variance)]
            by = wide[1] / np.sqrt(wide[4] + np.float32(EPSILON))
            y = (wide[0] - wide[3]) * by + wide[2]
            bound = 8 * rounding(dtype) * ((np.abs(wide[0]) + np.abs(wide[3])) * np.abs(by) + np.abs(wide[2]))
            table.add("BatchNormalization", [x, scale, bias, mean, variance],
                      [(y, np.where(np.isfinite(bound), bound, 0).astype(np.float64))], epsilon=EPSILON)

        self.check_types(FLOATS, add)

    def test_lengths(self):
        def add(table, dtype, random):
            x = rows_of(random, dtype, 9, 13)
            x[5, 12], x[6, :2] = 3, (1, -1)
            if dtype != F64:
                x[3] = random.standard_normal(13).astype(dtype)  # squares of denormals are zeros
            if dtype == F16:
                x[7] = 3e4  # whose norm is no float16
            for p in (1, 2):
                wide = exact(x)
                norm = (np.abs(wide) ** p).sum(1, keepdims=True) ** (1 / p)
                y = np.where(norm == 0, 0, wide / np.where(norm == 0, 1, norm))
                if dtype == F64 and p == 2:
                    x, y = np.delete(x, 3, 0), np.delete(y, 3, 0)
                table.add("LpNormalization", [x], [y], 24 * rounding(dtype) * np.where(np.isfinite(y), np.abs(y), 0).astype(
                    np.float64), p=p, axis=1)

        self.check_types(FLOATS, add)

    # ---- losses ----

    def test_losses(self):
        """Log-softmax of n scores s: 16 units of exp and log each, n of the sum, and roundings of s - max."""
        def add(table, dtype, random):
            x = random.standard_normal((7, 5)).astype(dtype)
            x[1], x[2, 0], x[3, 1], x[4, 0], x[5] = 3, -np.inf, np.nan, 3e4, -3e4
            target = np.array([0, 4, 1, 0, 1, 4, 3])
            wide = exact(x)
            shifted = wide - wide.max(1, keepdims=True)
            logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
            bound = np.where(np.isfinite(logs), (5 + 48) * rounding(dtype) * (np.abs(logs) + 1), 0).astype(np.float64)
            loss, room = -logs[np.arange(7), target], bound[np.arange(7), target]
            table.add("SoftmaxCrossEntropyLoss", [x, target], [(loss, room), (logs, bound)], reduction="none")
            kept = np.array([0, 1, 2, 4, 5, 6])
            weight = np.array([0.5, 2, 0, 1, 3]).astype(dtype)
            shares = exact(weight)[target[kept]]
            mean = (loss[kept] * shares).sum() / shares.sum()
            own = (room[kept] * shares).sum() / shares.sum() + 20 * rounding(dtype) * np.abs(loss[kept] * shares).sum()
            table.add("SoftmaxCrossEntropyLoss", [x[kept], target[kept], weight], [(mean, float(own))], reduction="mean")
            picked = -wide[np.arange(7), target]
            table.add("NegativeLogLikelihoodLoss", [x, target], [picked], 0.0, reduction="none")
            total = (picked[[0, 1, 2, 4]] * exact(weight)[target[[0, 1, 2, 4]]]).sum()
            table.add("NegativeLogLikelihoodLoss", [x[[0, 1, 2, 4]], target[[0, 1, 2, 4]], weight], [total], float(
                8 * rounding(dtype) * np.abs(total)), reduction="sum")

        self.check_types(FLOATS, add)


if __name__ == "__main__":
    unittest.main(verbosity=2)
