# SPDX-License-Identifier: Apache-2.0
"""DFT, STFT and windows against numpy in float64: all lengths, axes and types."""

import os
import sys
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
import single_node  # noqa: E402

LENGTHS = (1, 2, 3, 5, 7, 16, 30, 32, 33, 37, 48, 64, 97, 100, 121, 127, 210, 256, 289, 441, 1009, 1024)


def complex_of(x):
    return x[..., 0].astype(np.float64) + (1j * x[..., 1].astype(np.float64) if x.shape[-1] == 2 else 0)


def parts_of(z):
    return np.stack([z.real, z.imag], -1)


def dft(x, axis=1, points=None, inverse=False, onesided=False):
    """The definition, in float64."""
    axis = axis % x.ndim
    z = np.moveaxis(complex_of(x), axis, -1)
    if inverse and onesided:
        points = points or 2 * (z.shape[-1] - 1)
        half = np.zeros(z.shape[:-1] + (points // 2 + 1,), complex)
        count = min(half.shape[-1], z.shape[-1])
        half[..., :count] = z[..., :count]
        z = np.concatenate([half, half[..., (points + 1) // 2 - 1 : 0 : -1].conj()], -1)
    points = points or z.shape[-1]
    padded = np.zeros(z.shape[:-1] + (points,), complex)
    padded[..., : min(points, z.shape[-1])] = z[..., :points]
    turns = np.outer(np.arange(points), np.arange(points)) % points
    result = padded @ np.exp((2j if inverse else -2j) * np.pi * turns / points) / (points if inverse else 1)
    if onesided and not inverse:
        result = result[..., : points // 2 + 1]
    result = np.moveaxis(result, -1, axis)
    return result.real[..., None] if inverse and onesided else parts_of(result)


class SignalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, *arguments, **named):
        return single_node.run(self.device, *arguments, **named)

    def check_dft(self, x, axis=1, points=None, inverse=False, onesided=False, bound=1e-6, opset=20):
        length = None if points is None else np.array(points, np.int64)
        flags = {"inverse": int(inverse), "onesided": int(onesided)}
        if opset >= 20:
            got = self.run_node("DFT", [x, length, np.array(axis, np.int64)], opset=opset, constants=(1, 2), **flags)
        else:
            got = self.run_node("DFT", [x, length], opset=opset, constants=(1,), axis=axis, **flags)
        self.assertEqual(got.dtype, x.dtype)
        single_node.close(self, got, dft(x, axis, points, inverse, onesided), bound,
                          f"{x.shape} {axis} {points} {inverse} {onesided}")

    def test_lengths(self):
        random = np.random.default_rng(1)
        for length in LENGTHS:
            x = random.standard_normal((2, length, 2)).astype(np.float32)
            self.check_dft(x)
            self.check_dft(x, inverse=True)
            self.check_dft(x[..., :1], onesided=True)
            if length > 1:
                self.check_dft(x[..., :1])
                self.check_dft(x, inverse=True, onesided=True)

    def test_padded_and_cut(self):
        random = np.random.default_rng(2)
        x = random.standard_normal((3, 20, 2)).astype(np.float32)
        for points in (1, 7, 19, 20, 21, 40, 41, 90):
            for inverse in (False, True):
                for onesided in (False, True):
                    self.check_dft(x, 1, points, inverse, onesided)

    def test_axes(self):
        random = np.random.default_rng(3)
        x = random.standard_normal((3, 4, 5, 6, 2)).astype(np.float32)
        for axis in (0, 1, 2, 3, -2, -5):
            self.check_dft(x, axis)
            self.check_dft(x, axis, opset=17)
            self.check_dft(x[..., :1], axis, onesided=True)
        self.check_dft(random.standard_normal((1, 2, 1, 3, 2, 2, 50, 2)).astype(np.float32), 6)
        self.check_dft(random.standard_normal((70000, 3, 1)).astype(np.float32), 1)
        self.check_dft(np.zeros((0, 5, 1), np.float32))
        self.check_dft(np.zeros((2, 0, 1), np.float32), 1, 4)

    def test_types(self):
        random = np.random.default_rng(4)
        x = random.standard_normal((2, 60, 2))
        for dtype, bound in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 1e-2)):
            self.check_dft(x.astype(dtype), bound=bound)
        try:
            self.check_dft(x, bound=1e-14)
            self.check_dft(x[:, :31], bound=1e-14, inverse=True)
        except runnel.Failure as failure:
            self.assertIn("float64", failure.message)

    def test_special_values(self):
        x = np.ones((1, 9, 1), np.float32)
        x[0, 4, 0] = np.nan
        self.assertTrue(np.isnan(self.run_node("DFT", [x, None, np.array(1)], constants=(2,))).all())
        x[0, 4, 0] = np.inf
        self.assertTrue((~np.isfinite(self.run_node("DFT", [x, None, np.array(1)], constants=(2,))[..., 0])).all())

    def test_refusals(self):
        x = np.ones((2, 6, 2), np.float32)
        for inputs in ([x, None, np.array(2)], [x, None, np.array(-1)], [x, None, np.array(3)], [x, np.array(0)],
                       [x, np.array(-4)], [np.ones((2, 6, 3), np.float32)], [np.ones(6, np.float32)],
                       [np.ones((2, 1, 2), np.float32)]):
            with self.assertRaises(runnel.Failure, msg=str(inputs)) as caught:
                self.run_node("DFT", inputs, constants=(1, 2), inverse=1, onesided=1)
            self.assertEqual(caught.exception.status, "INVALID_ARGUMENT")

    def test_stft(self):
        random = np.random.default_rng(5)
        for length, frame, step, window, onesided, parts in (
                (100, 16, 4, 16, 1, 1), (100, 33, 10, None, 1, 1), (37, 9, 1, 9, 0, 1), (64, None, 16, 20, 1, 1),
                (50, 12, 5, 12, 0, 2), (50, 16, 7, 10, 1, 1), (40, 10, 6, 16, 1, 1), (30, 30, 3, None, 1, 1),
                (20, 31, 3, None, 1, 1), (400, 200, 80, 200, 1, 1)):
            x = random.standard_normal((2, length, parts)).astype(np.float32)
            w = None if window is None else random.uniform(0.1, 1, window).astype(np.float32)
            points = frame or window
            inputs = [x, np.array(step), w, None if frame is None else np.array(frame)]
            got = self.run_node("STFT", inputs, opset=17, constants=(1, 3), onesided=onesided)
            frames = max(0, 1 + (length - points) // step) if length >= points else 0
            expected = np.zeros((2, frames, points // 2 + 1 if onesided else points, 2))
            used = min(points, window or points)
            for i in range(frames):
                piece = x[:, i * step : i * step + used].astype(np.float64)
                weighted = piece * (1 if w is None else w[:used, None].astype(np.float64))
                whole = dft(weighted, 1, points)
                expected[:, i] = whole[:, : expected.shape[2]]
            single_node.close(self, got, expected, 1e-6, f"{length} {frame} {step} {window}")

    def test_windows(self):
        kinds = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}
        for name, (a, b, c) in kinds.items():
            for size, periodic in ((1, 1), (2, 0), (17, 1), (17, 0), (5000, 1), (0, 1)):
                angle = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
                expected = a - b * np.cos(angle) + c * np.cos(2 * angle)
                for known in (0, 1):
                    got = self.run_node(name, [np.array(size, np.int32 if known else np.int64)], opset=17,
                                        constants=(0,) * known, periodic=periodic)
                    self.assertEqual(got.dtype, np.float32)
                    self.assertTrue(np.allclose(got, expected, rtol=0, atol=1e-7), f"{name} {size}")
            got = self.run_node(name, [np.array(9)], opset=17, output_datatype=TensorProto.FLOAT16, constants=(0,))
            self.assertEqual(got.dtype, np.float16)
            got = self.run_node(name, [np.array(9)], opset=17, output_datatype=TensorProto.INT8, constants=(0,))
            self.assertEqual(got.dtype, np.int8)
            for size, kind in ((-1, 1), (4, 8), (4, 99)):
                with self.assertRaises(runnel.Failure):
                    self.run_node(name, [np.array(size)], opset=17, output_datatype=kind, constants=(0,))


if __name__ == "__main__":
    unittest.main(verbosity=2)
