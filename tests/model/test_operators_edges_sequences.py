# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and transforms of signals, in each type: NaN and infinities in some rows only, denormals, odd sizes.
References in float64."""

import os
import sys
import unittest

import numpy as np
from onnx import TensorProto
from onnx.reference.ops.op_mel_weight_matrix import MelWeightMatrix

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import F16, FLOATS, Table, TableTest, factor, finite  # noqa: E402
from test_operators_recurrent import reference  # noqa: E402
from test_operators_signal import dft  # noqa: E402


class SequencesTest(TableTest):
    def test_recurrent(self):
        """Recurrent weights of 1 / 16 of a row's length: what a step errs by shrinks by more than half in the next, so that all
        err by at most twice one step: 9 products, 16 units and more of each of up to 5 activations, and what is stored."""
        def add(table, dtype, random):
            own = float(edges.ml_dtypes.finfo(dtype).eps) / 2
            for op_type, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
                given = {"X": random.standard_normal((4, 5, 3)), "W": random.standard_normal((1, gates * 5, 3)) / 2,
                         "R": random.uniform(-1, 1, (1, gates * 5, 5)) / 16, "B": random.standard_normal((1, 2 * gates * 5)) / 2}
                given["X"][1, 1, 0], given["X"][2, 2, 1], given["X"][0, 3] = np.nan, np.inf, 1e-40
                given["X"][:, 4] = 1000  # saturates
                given = {name: value.astype(dtype) for name, value in given.items()}
                expected = reference(op_type, given, {})[: 3 if op_type == "LSTM" else 2]
                most = finite(given["X"]).max() * 3 + 3
                # A saturated gate's argument errs by more, where its slope is 0.
                bound = 2 * (100 * factor(dtype) * min(most, 30) + 12 * own)
                table.add(op_type, list(given.values()), expected, bound, hidden_size=5)

        self.check_types(FLOATS, add)

    def test_dft(self):
        """Sums of n products, in any order: (n + 4) u of the sum of magnitudes, the turns' own rounding among them."""
        def add(table, dtype, random):
            for length in (1, 3, 7, 15, 67):
                x = random.standard_normal((4, length, 2))
                x[1, length // 2, 0] = np.nan
                x[2] *= float(edges.ml_dtypes.finfo(dtype).tiny) / 2
                x[3] *= 100
                x = x.astype(dtype)
                y = dft(x)
                y[1] = np.nan
                most = finite(x).sum((1, 2), keepdims=True)
                # Lengths that are not powers of 2 are convolutions of twice to four times the length.
                bound = (4 * length + 40) * factor(dtype) * most + 1e-37
                table.add("DFT", [x, None, np.array(1)], [y], bound, constants=(2,))
            signal = random.standard_normal((2, 33, 1)).astype(dtype)
            signal[0, 20] = np.nan
            window = random.uniform(0.1, 1, 9).astype(dtype)
            whole, weights = signal.astype(np.float64), window.astype(np.float64)[:, None]
            frames = np.stack([whole[:, i : i + 9] * weights for i in range(0, 25, 5)], 1)
            y = np.stack([dft(frames[:, i])[:, :5] for i in range(5)], 1)
            y[np.isnan(frames).any((2, 3))] = np.nan
            stored = float(edges.ml_dtypes.finfo(dtype).eps) / 2  # as products with the window are
            bound = (80 * factor(dtype) + stored) * finite(frames).max() * 9
            table.add("STFT", [signal, np.array(5), window, np.array(9)], [y], bound, constants=(1, 3))

        self.check_types(FLOATS, add)

    def test_windows(self):
        """In float64, then rounded once."""
        table = Table(17)
        for name, (a, b, c) in {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0),
                                "BlackmanWindow": (0.42, 0.5, 0.08)}.items():
            for size, periodic in ((1, 1), (3, 0), (17, 1), (257, 0)):
                angle = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
                y = a - b * np.cos(angle) + c * np.cos(2 * angle)
                for dtype in FLOATS[:3]:
                    table.add(name, [np.array(size, np.int32)], [y], 1e-15, dtype, constants=(0,), periodic=periodic,
                              output_datatype=runnel.CODES[dtype])
        table.check(self, self.device)

    def test_mel(self):
        """Every element. Where an edge of a triangle is within rounding of a bin's border, either bin would be right: none is here,
        but for the first, at 0 hertz, which is exact."""
        table = Table(17)
        for bins, length, rate, low, high in ((7, 15, 8191, 0, 4095), (8, 16, 8192, 0, 4096), (20, 400, 16000, 20, 7600),
                                              (40, 128, 16000, 0, 8000), (1, 2, 100, 0, 50), (80, 1024, 22050, 55, 11025)):
            mel = np.linspace(*(2595 * np.log1p(np.array([low, high]) / 700) / np.log(10)), bins + 3)[:-1]
            borders = (length + 1) * 700 * np.expm1(mel / 2595 * np.log(10)) / rate
            self.assertGreater(np.abs(borders - np.rint(borders))[1 if low == 0 else 0 :].min(initial=1), 1e-9)
            inputs = [np.array(bins), np.array(length), np.array(rate), np.array(low, np.float32), np.array(high, np.float32)]
            for dtype in (np.dtype(np.float32), F16):
                y = MelWeightMatrix.eval(bins, length, rate, np.float64(low), np.float64(high),
                                         output_datatype=TensorProto.DOUBLE)
                table.add("MelWeightMatrix", inputs, [y.astype(dtype)], constants=range(5),
                          output_datatype=runnel.CODES[dtype])
        table.check(self, self.device)


if __name__ == "__main__":
    unittest.main(verbosity=2)
