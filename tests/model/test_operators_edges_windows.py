# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools, in each type that they take: NaN and infinities inside some windows only, denormals,
limits of integers, odd sizes. References in float64 (of float64: the same, its bound doubled).

Bounds: a sum of n terms is within (n + 1) u sum|terms| in any order, u being half a unit of the type that is computed in."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import ALL, BOOL, F32, FLOATS, TableTest, elements, factor, finite, image, wide  # noqa: E402
from test_operators_images import conv, conv_transpose, windows  # noqa: E402
from test_operators_vision import col2im  # noqa: E402


class WindowsTest(TableTest):
    def test_conv(self):
        cases = (((1, 3, 7, 9), (5, 3, 3, 3), 1, (1, 1), (1, 1), (1, 1, 1, 1)),
                 ((2, 5, 5, 7), (3, 5, 1, 1), 1, (1, 1), (1, 1), (0, 0, 0, 0)),
                 ((1, 5, 7, 6), (5, 1, 3, 3), 5, (2, 1), (1, 1), (1, 1, 0, 2)),
                 ((1, 4, 9), (6, 2, 3), 2, (1,), (2,), (1, 3)),
                 ((1, 2, 3, 5, 4), (3, 2, 2, 3, 1), 1, (1, 2, 1), (1, 1, 1), (1, 0, 0, 0, 1, 0)))

        def add(table, dtype, random):
            for number, (shape, kernel, groups, strides, dilations, pads) in enumerate(cases):
                if number > 2 and dtype != F32:
                    continue
                x, w = image(random, dtype, shape), random.standard_normal(kernel).astype(dtype)
                bias = random.standard_normal(kernel[0]).astype(dtype)
                bias[0] = np.inf
                y = conv(x, wide(w), wide(bias), groups, strides, dilations, pads)
                most = conv(finite(x), np.abs(wide(w)), finite(bias), groups, strides, dilations, pads)
                for constants in ((1, 2), ()):
                    table.add("Conv", [x, w, bias], [y], (np.prod(kernel[1:]) + 2) * factor(dtype) * most, constants=constants,
                              group=groups, strides=strides, dilations=dilations, pads=pads)
            w = random.standard_normal((3, 2, 3, 3)).astype(dtype)
            x = image(random, dtype, (1, 3, 4, 5))
            y = conv_transpose(wide(x), wide(w), 1, (2, 1), (1, 1), (1, 0, 0, 1))
            most = conv_transpose(finite(x), np.abs(wide(w)), 1, (2, 1), (1, 1), (1, 0, 0, 1))
            table.add("ConvTranspose", [x, w], [y], (3 * 9 + 2) * factor(dtype) * most, constants=(1,), strides=(2, 1),
                      pads=(1, 0, 0, 1))

        self.check_types(FLOATS, add)

    def test_max_pools(self):
        def add(table, dtype, random):
            for shape, kernel, strides, pads in (((2, 3, 7, 9), (3, 2), (2, 1), (1, 0, 1, 1)), ((1, 3, 11), (3,), (1,), (1, 1)),
                                                 ((1, 2, 5, 4, 5), (2, 2, 3), (1, 2, 2), (0, 0, 0, 1, 0, 1))):
                x = elements(dtype, shape)
                if dtype in FLOATS:
                    x = np.where(np.isnan(x), np.array(-np.inf, dtype), x)
                n = len(kernel)
                least = np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
                wide_x = x.astype(object) if dtype.kind in "iu" else wide(x)
                full = np.pad(wide_x, [(0, 0), (0, 0)] + list(zip(pads[:n], pads[n:])), constant_values=least)
                taps = windows(full.astype(np.float64), kernel, strides, [1] * n, [0] * 2 * n)
                y = taps.max(tuple(range(2, 2 + n)))
                table.add("MaxPool", [x], [y.astype(dtype)], 0.0 if dtype in FLOATS else None, kernel_shape=kernel,
                          strides=strides, pads=pads)
                if dtype in FLOATS:
                    table.add("GlobalMaxPool", [x], [wide(x).max(tuple(range(2, 2 + n)), keepdims=True)], 0.0)

        self.check_types(FLOATS + [np.dtype(np.int8), np.dtype(np.uint8)], add)

    def test_sums_of_windows(self):
        def add(table, dtype, random):
            for shape, kernel, strides, pads in (((2, 3, 7, 9), (3, 2), (2, 1), (1, 0, 1, 1)), ((1, 3, 11), (3,), (1,), (1, 1))):
                x, n = image(random, dtype, shape), len(kernel)
                axes, whole = tuple(range(2, 2 + n)), tuple(range(2, len(shape)))
                count = windows(np.ones(shape), kernel, strides, [1] * n, pads).sum(axes)
                taps, most = windows(x, kernel, strides, [1] * n, pads), windows(finite(x), kernel, strides, [1] * n, pads)
                for include in (0, 1):
                    over = np.prod(kernel) if include else count
                    table.add("AveragePool", [x], [taps.sum(axes) / over], (np.prod(kernel) + 2) * factor(dtype) *
                              most.sum(axes) / over, kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=include)
                size = np.prod(shape[2:])
                table.add("GlobalAveragePool", [x], [wide(x).sum(whole, keepdims=True) / size], (size + 2) * factor(dtype) *
                          finite(x).sum(whole, keepdims=True) / size)
                # Powers that underflow are zeros: as much as the root of the sum of the least numbers.
                lost = np.sqrt(np.prod(kernel) * 1.2e-38)
                # A sum's relative error is (n + 1) u, and its root's no more; OpenCL's powers err by 16 units.
                y = np.sqrt((taps**2).sum(axes))
                table.add("LpPool", [x], [y], (np.prod(kernel) + 35) * factor(dtype) * np.nan_to_num(y, posinf=0) + lost,
                          kernel_shape=kernel, strides=strides, pads=pads, p=2)
                y = np.abs(wide(x)).sum(whole, keepdims=True)
                table.add("GlobalLpPool", [x], [y], (size + 35) * factor(dtype) * np.nan_to_num(y, posinf=0), p=1)
                y = self.local(x)
                table.add("LRN", [x], [y], 60 * factor(dtype) * np.nan_to_num(np.abs(y), posinf=0, neginf=0), size=3, alpha=0.5,
                          beta=0.75, bias=1.5)

        self.check_types(FLOATS, add)

    @staticmethod
    def local(x):
        """LRN over 3 channels: 4 roundings of a sum that is at least the bias, 16 units of the power and of the quotient."""
        squares = np.pad(wide(x) ** 2, [(0, 0), (1, 1)] + [(0, 0)] * (x.ndim - 2))
        channels = x.shape[1]
        total = sum(squares[:, i : i + channels] for i in range(3))
        return wide(x) / (1.5 + 0.5 / 3 * total) ** 0.75

    def test_col2im(self):
        def add(table, dtype, random):
            (kernel, shape), arguments = ((2, 3), (5, 6)), {"strides": (1, 2), "dilations": (2, 1), "pads": (1, 0, 0, 2)}
            x = image(random, dtype, (2, 18, 12)) if dtype in FLOATS else elements(dtype, (2, 18, 12))
            exact = x.astype(np.float64) if dtype in FLOATS else x.astype(object) if dtype != BOOL else x
            blocks = col2im_of(exact, shape, kernel, arguments)
            sizes = [np.array(v, np.int64) for v in (shape, kernel)]
            if dtype in FLOATS:
                most = col2im_of(finite(x), shape, kernel, arguments)
                # The sums are of the type itself where no wider one is used: one rounding for each of 6 terms.
                own = float(edges.ml_dtypes.finfo(dtype).eps) / 2
                table.add("Col2Im", [x, *sizes], [blocks], 6 * own * most, constants=(1, 2), **arguments)
            else:
                y = blocks.astype(bool) if dtype == BOOL else edges.wrap(blocks, dtype)
                table.add("Col2Im", [x, *sizes], [y], constants=(1, 2), **arguments)

        def col2im_of(x, shape, kernel, arguments):
            return col2im(x, shape, kernel, arguments["strides"], arguments["dilations"], arguments["pads"])

        self.check_types(ALL, add)

    def test_unpool(self):
        def add(table, dtype, random):
            x = elements(dtype, (1, 3, 5, 3))
            places = random.permutation(3 * 10 * 6)[:45].reshape(x.shape)
            y = np.zeros(180, dtype)
            y[places.reshape(-1)] = x.reshape(-1)
            table.add("MaxUnpool", [x, places], [y.reshape(1, 3, 10, 6)], kernel_shape=[2, 2], strides=[2, 2])

        self.check_types(FLOATS, add)

    def test_causal_conv(self):
        def add(table, dtype, random):
            x, w = image(random, dtype, (2, 3, 7)), random.standard_normal((3, 1, 4)).astype(dtype)
            past = image(random, dtype, (2, 3, 3))
            whole = np.concatenate([wide(past), wide(x)], 2)
            y = sum(whole[:, :, i : i + 7] * wide(w)[None, :, 0, i, None] for i in range(4))
            most = sum(finite(whole)[:, :, i : i + 7] * np.abs(wide(w))[None, :, 0, i, None] for i in range(4))
            state = np.concatenate([past, x], 2)[:, :, 7:]
            table.add("CausalConvWithState", [x, w, None, past], [(y, 6 * factor(dtype) * most), (state, None)])

        self.check_types(FLOATS, add)


if __name__ == "__main__":
    unittest.main(verbosity=2)
