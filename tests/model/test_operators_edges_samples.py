# SPDX-License-Identifier: Apache-2.0
"""What samples images between pixels, in each type: NaN and infinities under some samples only, denormals, odd sizes. References
in float64 (of float64: the same, its bound doubled)."""

import os
import sys
import unittest

import numpy as np
from onnx.reference.ops.op_roi_align import RoiAlign

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import FLOATS, TableTest, factor, finite, image, wide  # noqa: E402
from test_operators_vision import deform_conv, grid_sample  # noqa: E402


class SamplesTest(TableTest):
    def test_grid_sample(self):
        """Places err by 4 roundings of their size; that moves a result by as much of the largest difference of neighbours."""
        def add(table, dtype, random):
            x = image(random, dtype, (2, 3, 5, 7))
            grid = random.uniform(-1.4, 1.4, (2, 4, 3, 2)).astype(dtype)
            for mode, gain in (("linear", 2), ("cubic", 8)):
                for padding in ("zeros", "border", "reflection"):
                    y = grid_sample(x, grid, mode, padding, 0)
                    bound = gain * 16 * factor(dtype) * 7 * finite(x).max()
                    table.add("GridSample", [x, grid], [y], bound, mode=mode, padding_mode=padding)

        self.check_types(FLOATS, add)

    def test_resize(self):
        """To twice the size between pixels' middles: weights are quarters, so that only products and sums are rounded."""
        def add(table, dtype, random):
            x = image(random, dtype, (1, 2, 5, 7))
            at = (np.arange(14) + 0.5) / 2 - 0.5
            low, share = np.clip(np.floor(at), 0, 6).astype(int), np.clip(at, 0, 6) - np.floor(np.clip(at, 0, 6))
            high = np.minimum(low + 1, 6)

            def doubled(v):
                return v[..., low] * (1 - share) + np.where(share > 0, v[..., high] * share, 0)

            table.add("Resize", [x, None, np.array([1, 1, 1, 2], np.float32)], [doubled(wide(x))],
                      4 * factor(dtype) * doubled(finite(x)), constants=(2,), mode="linear")

        self.check_types(FLOATS, add)

    def test_deform_conv(self):
        def add(table, dtype, random):
            x, w = image(random, dtype, (1, 2, 5, 6)), random.standard_normal((3, 2, 3, 2)).astype(dtype)
            offset = random.uniform(-2, 2, (1, 12, 5, 5)).astype(dtype)
            mask = random.uniform(0.1, 1, (1, 6, 5, 5)).astype(dtype)
            arguments = ((1, 0, 1, 0), (1, 1), (1, 1), 1, 1)
            y = deform_conv(wide(x), w, offset, None, wide(mask), *arguments)
            # Places err by 3 roundings of at most 8; 12 taps of 4 pixels, each stored in the type before it is multiplied.
            own = float(edges.ml_dtypes.finfo(dtype).eps) / 2
            bound = 12 * (64 * factor(dtype) + own) * finite(x).max() * np.abs(wide(w)).max()
            table.add("DeformConv", [x, w, offset, None, mask], [y], bound, pads=arguments[0])

        self.check_types(FLOATS, add)

    def test_regions(self):
        def add(table, dtype, random):
            x = image(random, dtype, (2, 3, 7, 9))
            rois = np.array([[0.3, 0.7, 6.1, 5.3], [1.7, 2.9, 2.3, 3.1], [-1.3, 0.2, 7.7, 6.1]]).astype(dtype)
            images = np.array([1, 0, 1])
            for mode in ("avg", "max"):
                clean = image(random, dtype, (2, 3, 7, 9), False, False) if mode == "max" else x
                arguments = {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": 2}
                y = RoiAlign.eval(wide(clean), wide(rois), images, **arguments)
                table.add("RoiAlign", [clean, rois, images], [y], 64 * factor(dtype) * finite(clean).max() * 9, **arguments)
            x = np.where(np.isnan(x), np.array(-1, dtype), x)
            regions = np.array([[1, 0, 0, 6, 5], [0, 2, 3, 2, 3], [1, 1, 1, 8, 6]]).astype(dtype)
            y = np.stack([[[[self.bin(x[int(r[0]), c], r[1:], i, j) for j in range(2)] for i in range(3)] for c in range(3)]
                          for r in wide(regions)])
            table.add("MaxRoiPool", [x, regions], [y.astype(dtype)], 0.0, pooled_shape=[3, 2])

        self.check_types(FLOATS, add)

    @staticmethod
    def bin(plane, region, i, j):
        """Of whole coordinates, as the first paper has it: bins overlap where sizes do not divide."""
        left, top, right, bottom = (int(r) for r in region)
        tall, broad = (bottom - top + 1) / 3, (right - left + 1) / 2
        rows = slice(int(np.floor(i * tall)) + top, int(np.ceil((i + 1) * tall)) + top)
        columns = slice(int(np.floor(j * broad)) + left, int(np.ceil((j + 1) * broad)) + left)
        return wide(plane[rows, columns]).max()

    def test_affine_grid(self):
        def add(table, dtype, random):
            theta = random.standard_normal((2, 2, 3)).astype(dtype)
            theta[0, 0, 2], theta[1, 1, 2] = np.inf, np.nan
            size = np.array([2, 3, 5, 7])
            axes = [(2 * np.arange(s) + 1) / s - 1 for s in (5, 7)]
            grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones((5, 7))], -1)
            y = sum(wide(theta)[:, None, None, :, k] * grid[None, ..., None, k] for k in range(3))
            # Coordinates are the type's own, or float32's: 3 roundings each, beside 3 products and 2 sums.
            own = float(edges.ml_dtypes.finfo(dtype).eps) / 2
            table.add("AffineGrid", [theta, size], [y], 8 * own * finite(theta).sum(), constants=(1,))

        self.check_types(FLOATS, add)


if __name__ == "__main__":
    unittest.main(verbosity=2)
