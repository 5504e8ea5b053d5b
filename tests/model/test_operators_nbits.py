# SPDX-License-Identifier: Apache-2.0
"""Products with matrices of 2, 4 and 8 bits: against float64, and against onnxruntime."""

import unittest

import numpy as np
import test_operators_quantised as quantised
from onnx import TensorProto
from test_operators_quantised import make_model, runnel


def pack(values, bits):
    """Rows of small integers as bytes, from the lowest bits on; the last byte of a row is filled with zeros."""
    each = 8 // bits
    values = np.pad(values, [(0, 0), (0, -values.shape[1] % each)]).astype(np.uint8)
    return sum(values[:, i::each] << (i * bits) for i in range(each)).astype(np.uint8)


class NBitsTest(quantised.Quantised):
    def check_nbits(self, bits, a_shape, n, block, zeros, bias, dtype=np.float32, groups=False, reference=True):
        """zeros: None, "packed" or "numbers"."""
        rng, k = self.rng, a_shape[-1]
        blocks = -(-k // block)
        values, zero = rng.integers(0, 1 << bits, (n, blocks * block)), rng.integers(0, 1 << bits, (n, blocks))
        scales = rng.uniform(0.01, 0.02, (n, blocks)).astype(dtype)
        inputs = {"a": rng.standard_normal(a_shape).astype(dtype),
                  "b": pack(values, bits).reshape(n, blocks, block * bits // 8), "s": scales.reshape(-1)}
        if zeros == "numbers":
            zero = (zero + 0.25).astype(dtype)
        inputs["z"] = None if zeros is None else zero if zeros == "numbers" else pack(zero, bits).reshape(-1)
        inputs["g"] = rng.integers(0, blocks, k).astype(np.int32) if groups else None
        inputs["bias"] = rng.standard_normal(n).astype(dtype) if bias else None
        model = make_model("MatMulNBits", inputs, domain="com.microsoft", types={"y": quantised.TYPES[np.dtype(dtype)]}, K=k, N=n,
                           bits=bits, block_size=block)
        got = self.run_runnel(model, inputs)["y"]
        zero = np.full((n, blocks), 1 << (bits - 1)) if zeros is None else zero
        which = inputs["g"] if groups else np.arange(k) // block
        weights = (values[:, :k] - zero.astype(np.float64)[:, which]) * scales.astype(np.float64)[:, which]
        expected = inputs["a"].astype(np.float64) @ weights.T + (inputs["bias"] if bias else 0)
        bound = {"rtol": 1e-5, "atol": 1e-4} if dtype == np.float32 else {"rtol": 4e-3, "atol": 4e-2}
        np.testing.assert_allclose(got, expected, **bound)
        if reference:
            np.testing.assert_allclose(got, self.run_onnxruntime(model, inputs)["y"], rtol=1e-4, atol=1e-4)

    def test_matmul_nbits(self):
        for bits in (2, 4, 8):
            for zeros in (None, "packed", "numbers"):
                for a_shape, n, block in [((1, 32), 5, 16), ((3, 70), 33, 32), ((2, 3, 48), 17, 16),
                                          ((40, 129), 9, 128), ((200,), 7, 64)]:
                    if (n, zeros) != (5, "packed") and not runnel.chosen(f"{bits} {zeros} {a_shape}"):
                        continue
                    ours = len(a_shape) < 2 or bits == 2 or zeros == "numbers"  # not all of it in onnxruntime
                    self.check_nbits(bits, a_shape, n, block, zeros, n % 2 == 1, reference=not ours)

    def test_matmul_nbits_halves_and_groups(self):
        for rows in (1, 5, 33):
            self.check_nbits(4, (rows, 70), 6, 32, "packed", True, np.float16, reference=False)
            self.check_nbits(8, (rows, 70), 6, 32, "numbers", False, np.float16, reference=False)
            self.check_nbits(4, (rows, 70), 6, 16, "packed", True, groups=True, reference=False)

    def test_no_rows(self):
        self.check_nbits(4, (0, 32), 5, 32, None, True, reference=False)

    def test_refusals(self):
        inputs = {"a": np.zeros((2, 32), np.float32), "b": np.zeros((5, 1, 16), np.uint8), "s": np.ones(5, np.float32)}
        for changed, words in [({"bits": 3}, "2, 4 and 8 are"), ({"block_size": 24}, "power of two"),
                               ({"weight_prepacked": 1}, "packed for a GPU"), ({"N": 6}, "96 elements are needed"),
                               ({"K": 64}, "K = 64 of a tensor of shape 2x32")]:
            attributes = {"K": 32, "N": 5, "bits": 4, "block_size": 32, **changed}
            with self.assertRaises(runnel.Failure) as caught:
                self.run_runnel(make_model("MatMulNBits", inputs, domain="com.microsoft",
                                           types={"y": TensorProto.FLOAT}, **attributes), inputs)
            self.assertIn(words, caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
