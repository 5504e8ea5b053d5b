# SPDX-License-Identifier: Apache-2.0
"""Operators that sample and rearrange images, against references in float64 and onnxruntime: odd sizes, positions far
outside, NaN, empty lists of regions, images that lie channels last in memory."""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx.reference.ops.op_affine_grid import AffineGrid
from onnx.reference.ops.op_roi_align import RoiAlign

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
import single_node  # noqa: E402


def onnxruntime_of(op_type, inputs, opset, outputs=1, **attributes):
    arrays = [np.asarray(i) for i in inputs]
    session = onnxruntime.InferenceSession(single_node.model(op_type, arrays, attributes, opset, outputs))
    got = session.run(None, {f"x{i}": v for i, v in enumerate(arrays)})
    return got[0] if outputs == 1 else got


# ---- GridSample in float64, by the definition ------------------------------------------------------------------------


def reflected(x, low, high):
    if high <= low:
        return low if not low <= x <= high else x
    while x < low or x > high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def cubic(t):
    t, a = abs(t), -0.75
    return ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def taps(position, size, mode, padding, align):
    """(index or None, weight) pairs."""
    low, high = (0, size - 1) if align else (-0.5, size - 0.5)
    x = (position + 1) / 2 * (size - 1) if align else ((position + 1) * size - 1) / 2
    if mode == "nearest":
        x = np.rint(x)
    if x < low or x > high:
        x = min(max(x, 0), size - 1) if padding == "border" else reflected(x, low, high) if padding == "reflection" else x
    first = int(np.floor(x))
    for i in {"nearest": [int(x)], "linear": [first, first + 1], "cubic": range(first - 1, first + 3)}[mode]:
        weight = 1 if mode == "nearest" else 1 - abs(x - i) if mode == "linear" else cubic(x - i)
        if padding == "border":
            i = min(max(i, 0), size - 1)
        elif padding == "reflection":
            i = min(max(int(reflected(i, low, high)), 0), size - 1)
        yield (i if 0 <= i < size else None), weight


def grid_sample(x, grid, mode, padding, align):
    result = np.zeros(x.shape[:2] + grid.shape[1:-1])
    for at in np.ndindex(*grid.shape[:-1]):
        places = [((), 1.0)]
        for size, position in zip(x.shape[2:], grid[at][::-1].astype(np.float64)):
            along = list(taps(position, size, mode, padding, align))
            places = [(p + (i,), w * v) for p, w in places for i, v in along if i is not None]
        for place, weight in places:
            result[(at[0], slice(None)) + at[1:]] += weight * x[(at[0], slice(None)) + place].astype(np.float64)
    return result


# ---- others ----------------------------------------------------------------------------------------------------------


def deform_conv(x, w, offset, bias, mask, pads, strides, dilations, group, offset_group):
    n, channels, height, width = x.shape
    filters, _, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    padded = np.zeros((n, channels, height + 6, width + 6))
    padded[:, :, 3:-3, 3:-3] = x
    columns = np.zeros((n, channels, kh, kw, oh, ow))
    for b, c, i, j, h, v in np.ndindex(*columns.shape):
        tap = (c // (channels // offset_group) * kh + i) * kw + j
        y = h * strides[0] - pads[0] + i * dilations[0] + float(offset[b, 2 * tap, h, v])
        z = v * strides[1] - pads[1] + j * dilations[1] + float(offset[b, 2 * tap + 1, h, v])
        y, z = min(max(y, -2), height + 1), min(max(z, -2), width + 1)
        top, left = int(np.floor(y)), int(np.floor(z))
        for di, dj in np.ndindex(2, 2):
            weight = (1 - abs(y - top - di)) * (1 - abs(z - left - dj))
            columns[b, c, i, j, h, v] += weight * padded[b, c, top + di + 3, left + dj + 3]
        if mask is not None:
            columns[b, c, i, j, h, v] *= mask[b, tap, h, v]
    result = np.zeros((n, filters, oh, ow))
    for f in range(filters):
        g = f // (filters // group)
        own = columns[:, g * (channels // group) : (g + 1) * (channels // group)]
        result[:, f] = np.einsum("ncijhw,cij->nhw", own, w[f].astype(np.float64)) + (0 if bias is None else bias[f])
    return result


def col2im(x, image, block, strides, dilations, pads):
    n, spatial = x.shape[0], len(image)
    taps_count = int(np.prod(block))
    counts = [(s + pads[i] + pads[i + spatial] - dilations[i] * (b - 1) - 1) // strides[i] + 1
              for i, (s, b) in enumerate(zip(image, block))]
    blocks = x.reshape((n, x.shape[1] // taps_count) + tuple(block) + tuple(counts))
    result = np.zeros(blocks.shape[:2] + tuple(image), x.dtype)
    for tap in np.ndindex(*block):
        for at in np.ndindex(*counts):
            place = tuple(a * s + t * d - p for a, s, t, d, p in zip(at, strides, tap, dilations, pads))
            if all(0 <= q < size for q, size in zip(place, image)):
                result[(slice(None), slice(None)) + place] += blocks[(slice(None), slice(None)) + tap + at]
    return result


class VisionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, *arguments, **named):
        return single_node.run(self.device, *arguments, **named)

    def test_grid_sample(self):
        random = np.random.default_rng(1)
        for shape, out in (((2, 3, 5, 7), (4, 3)), ((1, 5, 1, 4), (3, 3)), ((1, 2, 3, 4, 5), (2, 3, 2)), ((2, 3, 6), (5,))):
            x = random.standard_normal(shape).astype(np.float32)
            grid = random.uniform(-1.6, 1.6, (shape[0],) + out + (len(out),)).astype(np.float32)
            for mode in ("nearest", "linear", "cubic"):
                for padding in ("zeros", "border", "reflection"):
                    for align in (0, 1):
                        got = self.run_node("GridSample", [x, grid], mode=mode, padding_mode=padding, align_corners=align)
                        what = f"{shape} {mode} {padding} {align}"
                        single_node.close(self, got, grid_sample(x, grid, mode, padding, align), 2e-5, what)

    def test_grid_sample_channels_last(self):
        random = np.random.default_rng(2)
        x = random.standard_normal((2, 8, 5, 6)).astype(np.float32)
        grid = random.uniform(-1.2, 1.2, (2, 3, 4, 2)).astype(np.float32)
        for mode in ("bilinear", "nearest", "bicubic"):
            got = self.run_node("GridSample", [x, grid], opset=16, channels_last=True, mode=mode)
            plain = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
            single_node.close(self, got, grid_sample(x, grid, plain, "zeros", 0), 2e-5, mode)

    def test_grid_sample_types(self):
        random = np.random.default_rng(3)
        x = random.integers(-100, 100, (1, 2, 4, 5))
        grid = random.uniform(-1.3, 1.3, (1, 3, 3, 2)).astype(np.float16)
        expected = grid_sample(x, grid, "nearest", "border", 1)
        for dtype in (np.int8, np.uint8, np.int16, np.int64, np.uint32, np.float16, np.bool_):
            got = self.run_node("GridSample", [x.astype(dtype), grid.astype(np.float32)], mode="nearest",
                                padding_mode="border", align_corners=1)
            self.assertTrue(np.array_equal(got, expected.astype(np.int64).astype(dtype)), dtype)
        x = (x / 100).astype(np.float16)
        got = self.run_node("GridSample", [x, grid])
        single_node.close(self, got, grid_sample(x, grid, "linear", "zeros", 0), 1e-3)
        with self.assertRaises(runnel.Failure) as caught:
            self.run_node("GridSample", [np.ones((1, 1, 2, 2), np.int32), np.zeros((1, 1, 1, 2), np.float32)])
        self.assertIn("interpolates floats", caught.exception.message)

    def test_grid_sample_special(self):
        x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
        far = np.array([[1e30, 0], [-1e30, 0], [np.inf, 0], [0, -np.inf], [3e9, 3e9], [5, 0]], np.float32)[None, None]
        for mode in ("nearest", "linear", "cubic"):
            self.assertTrue((self.run_node("GridSample", [x, far], mode=mode) == 0).all(), mode)
            got = self.run_node("GridSample", [x, far], mode=mode, padding_mode="border", align_corners=1)
            self.assertTrue(np.allclose(got, [[[[8, 5, 8, 2.5, 12, 8]]]]) or mode == "nearest", mode)
            self.run_node("GridSample", [x, far], mode=mode, padding_mode="reflection")  # anything, in bounds
        nan = np.full((1, 1, 2, 2), np.nan, np.float32)
        for padding in ("zeros", "border", "reflection"):
            for mode in ("linear", "cubic"):
                got = self.run_node("GridSample", [x, nan], mode=mode, padding_mode=padding)
                self.assertTrue(np.isnan(got).all(), f"{mode} {padding}")
            got = self.run_node("GridSample", [x, nan], mode="nearest", padding_mode=padding)
            self.assertTrue(np.isin(got, [0] + list(x.ravel())).all())
        x[0, 0, 1, 1] = np.nan
        got = self.run_node("GridSample", [x, np.array([[[[-1 / 4, 0], [0.75, 0.5]]]], np.float32)], align_corners=1)
        self.assertEqual(np.isnan(got).tolist(), [[[[True, False]]]])
        self.assertEqual(self.run_node("GridSample", [x, np.zeros((1, 0, 3, 2), np.float32)]).shape, (1, 1, 0, 3))

    def test_affine_grid(self):
        random = np.random.default_rng(4)
        for size in ((2, 3, 5, 7), (1, 1, 4, 3), (2, 3, 3, 4, 5), (3, 1, 2, 6, 4)):
            spatial = len(size) - 2
            theta = random.standard_normal((size[0], spatial, spatial + 1)).astype(np.float32)
            for align in (0, 1):
                got = self.run_node("AffineGrid", [theta, np.array(size)], constants=(1,), align_corners=align)
                axes = [np.linspace(-1, 1, s) if align else (2 * np.arange(s) + 1) / s - 1 for s in size[2:]]
                grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size[2:])], -1)
                expected = np.einsum("nij,...j->n...i", theta.astype(np.float64), grid)
                single_node.close(self, got, expected, 1e-6, str(size))
                reference = AffineGrid.eval(theta, np.array(size), align_corners=align)
                self.assertTrue(np.allclose(got, reference, atol=1e-4))
        for theta, size in (((1, 2, 3), (1, 1, 2)), ((2, 2, 3), (1, 1, 2, 2)), ((1, 3, 4), (1, 1, 2, 2))):
            with self.assertRaises(runnel.Failure):
                self.run_node("AffineGrid", [np.ones(theta, np.float32), np.array(size)], constants=(1,))

    def regions(self, random, count, size):
        low = random.uniform(-size * 0.3, size, (count, 2))
        return np.concatenate([low, low + random.uniform(-2, size, (count, 2))], 1).astype(np.float32)

    def test_roi_align(self):
        random = np.random.default_rng(5)
        x = random.standard_normal((3, 5, 11, 13)).astype(np.float32)
        rois = self.regions(random, 9, 24)
        images = random.integers(0, 3, 9)
        for mode in ("avg", "max"):
            for half in ("half_pixel", "output_half_pixel"):
                for ratio, scale in ((0, 0.5), (2, 0.5), (3, 0.37)):
                    attributes = {"mode": mode, "coordinate_transformation_mode": half, "output_height": 3,
                                  "output_width": 4, "sampling_ratio": ratio, "spatial_scale": scale}
                    expected = RoiAlign.eval(x, rois, images, **attributes)
                    for last in (False, True):
                        got = self.run_node("RoiAlign", [x, rois, images], channels_last=last, **attributes)
                        single_node.close(self, got, expected, 2e-5, str(attributes))
        empty = [x, np.zeros((0, 4), np.float32), np.zeros(0, np.int64)]
        self.assertEqual(self.run_node("RoiAlign", empty, opset=10, output_height=2).shape, (0, 5, 2, 1))

    def test_roi_align_hostile(self):
        x = np.ones((2, 1, 4, 4), np.float32)
        rois = np.array([[0, 0, 1e9, 1e9], [-1e30, -1e30, 1e30, 1e30], [np.nan] * 4, [np.inf] * 4,
                         [-np.inf, 0, np.inf, 1], [0, 0, 4, 4], [3, 3, 0, 0]], np.float32)
        images = np.array([0, 1, 0, 99, -5, 2**40, -(2**62)])
        for mode in ("avg", "max"):
            for half in ("half_pixel", "output_half_pixel"):
                got = self.run_node("RoiAlign", [x, rois, images], mode=mode, coordinate_transformation_mode=half)
                self.assertTrue((np.nan_to_num(got) <= 1).all())
        self.run_node("MaxRoiPool", [x, np.concatenate([images[:, None].astype(np.float32), rois], 1)], pooled_shape=[2, 2])

    def test_max_roi_pool(self):
        random = np.random.default_rng(6)
        x = random.standard_normal((3, 5, 11, 13)).astype(np.float32)
        rois = np.concatenate([random.integers(0, 3, (9, 1)), self.regions(random, 9, 24)], 1).astype(np.float32)
        for shape, scale in (((3, 4), 0.5), ((1, 1), 1.0), ((7, 2), 0.3)):
            attributes = {"pooled_shape": shape, "spatial_scale": scale}
            expected = onnxruntime_of("MaxRoiPool", [x, rois], 16, **attributes)
            for last in (False, True):
                got = self.run_node("MaxRoiPool", [x, rois], opset=16, channels_last=last, **attributes)
                self.assertTrue(np.array_equal(got, expected), shape)
        self.assertEqual(self.run_node("MaxRoiPool", [x, rois[:0]], pooled_shape=[2, 2]).shape, (0, 5, 2, 2))

    def test_deform_conv(self):
        random = np.random.default_rng(7)
        for channels, filters, group, offset_group, kernel, strides, dilations, pads, masked in (
                (4, 6, 2, 1, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), True), (4, 4, 1, 2, (2, 3), (2, 1), (1, 2), (0, 1, 1, 2), False),
                (6, 3, 3, 3, (1, 1), (1, 2), (1, 1), (0, 0, 0, 0), True), (3, 5, 1, 1, (3, 2), (1, 1), (2, 1), (2, 0, 0, 1), False)):
            x = random.standard_normal((2, channels, 7, 6)).astype(np.float32)
            w = random.standard_normal((filters, channels // group) + kernel).astype(np.float32)
            out = [(s + pads[i] + pads[i + 2] - d * (k - 1) - 1) // t + 1
                   for i, (s, k, t, d) in enumerate(zip((7, 6), kernel, strides, dilations))]
            taps_count = offset_group * kernel[0] * kernel[1]
            offset = random.uniform(-3, 3, (2, 2 * taps_count, *out)).astype(np.float32)
            bias = random.standard_normal(filters).astype(np.float32) if masked else None
            mask = random.uniform(0, 1, (2, taps_count, *out)).astype(np.float32) if masked else None
            expected = deform_conv(x, w, offset, bias, mask, pads, strides, dilations, group, offset_group)
            for last in (False, True):
                got = self.run_node("DeformConv", [x, w, offset, bias, mask], channels_last=last, group=group,
                                    offset_group=offset_group, strides=strides, dilations=dilations, pads=pads)
                single_node.close(self, got, expected, 2e-6 * taps_count, f"{kernel} {last}")
        offset[0, 0, 0, 0] = np.inf
        offset[1] = -1e30
        got = self.run_node("DeformConv", [x, w, offset, None, None], strides=strides, dilations=dilations, pads=pads)
        self.assertTrue((got[1] == 0).all())

    def test_col2im(self):
        random = np.random.default_rng(8)
        for image, block, strides, dilations, pads in (
                ((7,), (3,), (2,), (1,), (1, 0)), ((5, 6), (2, 3), (1, 2), (2, 1), (1, 0, 0, 2)),
                ((4, 5, 3), (2, 1, 3), (1, 2, 1), (1, 1, 1), (0, 0, 1, 1, 0, 1)), ((2, 2, 3, 2), (1, 2, 2, 1), (1,) * 4, (1,) * 4, (0,) * 8)):
            spatial = len(image)
            blocks = np.prod([(s + pads[i] + pads[i + spatial] - dilations[i] * (b - 1) - 1) // strides[i] + 1
                              for i, (s, b) in enumerate(zip(image, block))])
            for dtype in (np.float32, np.int8, np.float16):
                x = random.integers(-9, 9, (2, 3 * np.prod(block), blocks)).astype(dtype)
                got = self.run_node("Col2Im", [x, np.array(image), np.array(block)], opset=18, constants=(1, 2),
                                    strides=strides, dilations=dilations, pads=pads)
                self.assertTrue(np.array_equal(got, col2im(x, image, block, strides, dilations, pads)), image)
        for bad in ((5, 6), (0, 4), (3, 3)):
            with self.assertRaises(runnel.Failure):
                self.run_node("Col2Im", [x, np.array(bad), np.array(block)[:2]], opset=18, constants=(1, 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
