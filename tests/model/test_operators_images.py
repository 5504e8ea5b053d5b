# SPDX-License-Identifier: Apache-2.0
"""Pad, Tile, Resize, CenterCropPad, pooling and convolution where they are rarely used: many axes, long paddings, float64,
integers, no elements; against numpy in float64 and onnxruntime."""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx.reference.ops.op_center_crop_pad import CenterCropPad

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
import single_node  # noqa: E402


def onnxruntime_of(op_type, inputs, opset, constants=(), **attributes):
    model = single_node.model(op_type, inputs, attributes, opset, 1, constants)
    feed = {f"x{i}": v for i, v in enumerate(inputs) if v is not None and i not in constants}
    return onnxruntime.InferenceSession(model).run(None, feed)[0]


def padded(x, pads, strides):
    """Zeros around an image, and room behind for windows that begin late."""
    spatial = x.ndim - 2
    return np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + spatial] + strides[i]) for i in range(spatial)])


def windows(x, kernel, strides, dilations, pads):
    """N x C x taps x results, in float64."""
    spatial = x.ndim - 2
    wide = padded(x.astype(np.float64), pads, strides)
    counts = [(s + pads[i] + pads[i + spatial] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
              for i, s in enumerate(x.shape[2:])]
    result = np.zeros(x.shape[:2] + tuple(kernel) + tuple(counts))
    for tap in np.ndindex(*kernel):
        cut = tuple(slice(t * d, t * d + (c - 1) * s + 1, s) for t, d, c, s in zip(tap, dilations, counts, strides))
        result[(slice(None), slice(None)) + tap] = wide[(slice(None), slice(None)) + cut]
    return result


def conv(x, w, bias, groups, strides, dilations, pads):
    kernel, per = w.shape[2:], w.shape[1]
    columns = windows(x, kernel, strides, dilations, pads)
    columns = columns.reshape(columns.shape[:2] + (-1,) + columns.shape[2 + len(kernel) :])
    result = np.zeros((x.shape[0], w.shape[0]) + columns.shape[3:])
    for f in range(w.shape[0]):
        first = f // (w.shape[0] // groups) * per
        result[:, f] = np.einsum("nct...,ct->n...", columns[:, first : first + per], w[f].reshape(per, -1)) + bias[f]
    return result


def conv_transpose(x, w, groups, strides, dilations, pads):
    spatial, per, inputs = x.ndim - 2, w.shape[1], x.shape[1] // groups
    full = [(s - 1) * t + d * (k - 1) + 1 for s, t, d, k in zip(x.shape[2:], strides, dilations, w.shape[2:])]
    result = np.zeros((x.shape[0], per * groups) + tuple(full))
    for tap in np.ndindex(*w.shape[2:]):
        cut = tuple(slice(t * d, t * d + (s - 1) * r + 1, r) for t, d, s, r in zip(tap, dilations, x.shape[2:], strides))
        for g in range(groups):
            own = slice(g * inputs, (g + 1) * inputs)
            part = np.einsum("nc...,cm->nm...", x[:, own], w[(own, slice(None)) + tap])
            result[(slice(None), slice(g * per, (g + 1) * per)) + cut] += part
    return result[(slice(None), slice(None)) + tuple(slice(pads[i], f - pads[i + spatial]) for i, f in enumerate(full))]


class ImagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        try:
            single_node.run(cls.device, "Add", [np.ones(1), np.ones(1)])
            cls.has_f64 = True
        except runnel.Failure:
            cls.has_f64 = False

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, *arguments, **named):
        return single_node.run(self.device, *arguments, **named)

    def test_pad(self):
        random = np.random.default_rng(1)
        for shape, before, after in (((5,), (17,), (23,)), ((1, 3), (4, 0), (3, 8)), ((3, 4), (-1, 5), (9, -2)),
                                     ((2, 3, 2), (1, 0, 7), (0, 6, 1)), ((4,), (-2,), (6,))):
            for dtype in (np.float32, np.int8, np.float16, np.bool_, np.int64):
                x = random.integers(-9, 9, shape).astype(dtype)
                cut = x[tuple(slice(max(0, -b), s + min(0, a)) for b, a, s in zip(before, after, shape))]
                amounts = [(max(0, b), max(0, a)) for b, a in zip(before, after)]
                for mode in ("constant", "reflect", "edge", "wrap"):
                    expected = np.pad(cut, amounts, mode=mode)
                    for constants in ((1,), (0, 1)):  # on the device; while planning
                        got = self.run_node("Pad", [x, np.array(before + after)], 19, constants=constants, mode=mode)
                        self.assertTrue(np.array_equal(got, expected), f"{shape} {dtype} {mode}")

    def test_tile(self):
        x = np.arange(48, dtype=np.int16).reshape(2, 1, 2, 2, 1, 3, 2, 1)
        for repeats in ((2, 3, 2, 2, 4, 1, 2, 3), (1, 1, 1, 1, 1, 2, 1, 1), (1, 5, 1, 1, 2, 1, 1, 3), (2, 1, 1, 0, 1, 1, 1, 1)):
            got = self.run_node("Tile", [x, np.array(repeats)], 13, constants=(1,))
            self.assertTrue(np.array_equal(got, np.tile(x, repeats)), repeats)

    def test_resize(self):
        random = np.random.default_rng(2)
        x = random.standard_normal((3, 4, 5, 6)).astype(np.float32)
        for mode in ("nearest", "linear", "cubic"):
            scales = np.array([1.5, 0.75, 2, 1.3], np.float32)
            got = self.run_node("Resize", [x, None, scales], 13, constants=(2,), mode=mode)
            inner = np.array([1, 1, 2, 1.3], np.float32)
            first = onnxruntime_of("Resize", [x, None, inner], 13, (2,), mode=mode)
            turned = np.ascontiguousarray(first.transpose(2, 3, 0, 1))
            both = onnxruntime_of("Resize", [turned, None, np.float32([1, 1, 1.5, 0.75])], 13, (2,), mode=mode)
            single_node.close(self, got, both.transpose(2, 3, 0, 1), 1e-5, mode)
        mixed = np.array([1, 1, 2, 0.5], np.float32)
        got = self.run_node("Resize", [x, mixed], 10, constants=(1,))
        self.assertTrue(np.array_equal(got, onnxruntime_of("Resize", [x, mixed], 10, (1,))))
        for dtype in (np.int8, np.uint8, np.int32):
            whole = random.integers(0, 100, (1, 2, 5, 7)).astype(dtype)
            scales = np.array([1, 1, 2, 0.5], np.float32)  # exact, for results are cut off to integers
            got = self.run_node("Resize", [whole, None, scales], 13, constants=(2,), mode="linear")
            self.assertTrue(np.array_equal(got, onnxruntime_of("Resize", [whole, None, scales], 13, (2,), mode="linear")))

    def test_center_crop_pad(self):
        x = np.arange(5 * 6 * 7, dtype=np.float16).reshape(5, 6, 7)
        for shape, axes in (((8, 3, 9), None), ((2, 2), [0, -1]), ((0, 4), [1, 2]), ((9,), [1]), ((5, 6, 7), None)):
            attributes = {} if axes is None else {"axes": axes}
            expected = CenterCropPad.eval(x, np.array(shape), **attributes)
            got = self.run_node("CenterCropPad", [x, np.array(shape)], 18, constants=(1,), **attributes)
            self.assertTrue(np.array_equal(got, expected), shape)
        self.assertTrue((self.run_node("CenterCropPad", [x[:0], np.array([2])], 18, constants=(1,), axes=[0]) == 0).all())

    def test_lp_pool(self):
        random = np.random.default_rng(3)
        for shape in ((2, 5, 9), (2, 8, 7, 6), (1, 3, 4, 5, 6)):
            n = len(shape) - 2
            x = random.standard_normal(shape).astype(np.float32)
            x.flat[7] = np.nan
            for p in (1, 2, 3, 6):
                for last, values in ((False, x), (True, np.nan_to_num(x))):
                    taps = windows(values, [2] * n, [2] * n, [2] * n, [1] * 2 * n)
                    expected = (np.abs(taps) ** p).sum(tuple(range(2, 2 + n))) ** (1 / p)
                    got = self.run_node("LpPool", [values], 18, channels_last=last, p=p, kernel_shape=[2] * n,
                                        strides=[2] * n, dilations=[2] * n, pads=[1] * 2 * n)
                    single_node.close(self, got, expected, 1e-5, f"{shape} {p} {last}")
                whole = (np.abs(x.astype(np.float64)) ** p).sum(tuple(range(2, 2 + n)), keepdims=True) ** (1 / p)
                single_node.close(self, self.run_node("GlobalLpPool", [x], p=p), whole, 1e-5, f"{shape} {p}")
        flat = random.standard_normal((2, 3)).astype(np.float32)
        for name in ("GlobalAveragePool", "GlobalMaxPool"):
            self.assertTrue(np.array_equal(self.run_node(name, [flat]), flat))

    def test_max_unpool(self):
        random = np.random.default_rng(4)
        for shape in ((2, 3, 8), (1, 4, 6, 8), (1, 2, 4, 4, 6)):
            n = len(shape) - 2
            x = random.permutation(int(np.prod(shape))).astype(np.float32).reshape(shape)
            most, places = self.run_node("MaxPool", [x], outputs=2, kernel_shape=[2] * n, strides=[2] * n)
            got = self.run_node("MaxUnpool", [most, places], kernel_shape=[2] * n, strides=[2] * n)
            expected = np.where(np.isin(np.arange(x.size), places).reshape(shape), x, 0)
            self.assertTrue(np.array_equal(got, expected), shape)
            larger = np.array(shape) + 1
            got = self.run_node("MaxUnpool", [most, places, larger], constants=(2,), kernel_shape=[2] * n, strides=[2] * n)
            self.assertTrue(np.array_equal(got, np.pad(expected, [(0, 1)] * len(shape))), shape)
        wrong = np.array([[[0, -1, 2**40]]])
        got = self.run_node("MaxUnpool", [np.ones((1, 1, 3), np.float32), wrong], kernel_shape=[2], strides=[2])
        self.assertEqual(got.tolist(), [[[1, 0, 0, 0, 0, 0]]])

    def test_float64_convolution(self):
        if not self.has_f64:
            self.skipTest("the device has no float64")
        random = np.random.default_rng(5)
        for sizes in ((9,), (7, 8), (5, 4, 6)):
            n = len(sizes)
            x = random.standard_normal((2, 4) + sizes)
            for groups, strides, dilations, pads in ((1, [1] * n, [1] * n, [1] * 2 * n), (2, [2] * n, [2] * n, [1, 2, 0][:n] * 2)):
                w = random.standard_normal((6, 4 // groups) + (2,) * n)
                bias = random.standard_normal(6)
                form = {"strides": strides, "dilations": dilations, "pads": pads}
                got = self.run_node("Conv", [x, w, bias], group=groups, **form)
                single_node.close(self, got, conv(x, w, bias, groups, **form), 1e-14, str(form))
                w = random.standard_normal((4, 3) + (2,) * n)
                form["pads"] = [0, 1, 0][:n] * 2
                got = self.run_node("ConvTranspose", [x, w], group=groups, **form)
                single_node.close(self, got, conv_transpose(x, w, groups, **form), 1e-14, str(form))


if __name__ == "__main__":
    unittest.main(verbosity=2)
