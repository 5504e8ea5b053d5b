# SPDX-License-Identifier: Apache-2.0
"""Attention and what transformers put around it, in each type: masks of -infinity, NaN in one head, odd sizes. (Rows that are
masked as a whole: test_operators_transformer.py.) References in float64, written from the specification.

Bounds: scores of d products err by (d + 3) u s, with s their largest sum of magnitudes; a share of the softmax over n keys by twice
that and (n + 20) u of itself (16 units of exp); sums of n shares times values by n u more. Where scores, shares or rotated
keys are stored in between, they are rounded to the type: each adds half a unit of it, of what is stored."""

import math
import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402,F401
import edges  # noqa: E402
from edge_table import F64, FLOATS, TableTest, factor, finite, wide  # noqa: E402

MICROSOFT = "com.microsoft"


def own(dtype):
    return float(edges.ml_dtypes.finfo(dtype).eps) / 2


def shares_of(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(q, k, v, mask=0, scale=None):
    """q, k, v: … x length x size. The result, and its bound without what is stored."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = np.einsum("...qd,...kd->...qk", q, k) * scale + mask
    return np.einsum("...qk,...kd->...qd", shares_of(scores), v)


def bound_of(dtype, q, k, v, scale=None):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    most = np.einsum("...qd,...kd->...qk", finite(q), finite(k)).max() * scale
    n, d = k.shape[-2], q.shape[-1]
    return ((2 * (d + 3) * most + 2 * n + 20) * factor(dtype) + 4 * (most + 1) * own(dtype)) * finite(v).max()


def rotated(x, cosines, sines, interleaved):
    """x: … x size; cosines and sines: … x size / 2."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    real, imaginary = a * cosines - b * sines, a * sines + b * cosines
    return np.stack([real, imaginary], -1).reshape(x.shape) if interleaved else np.concatenate([real, imaginary], -1)


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


class TransformerTest(TableTest):
    def test_attention(self):
        def add(table, dtype, random):
            q, k, v = (random.standard_normal(s).astype(dtype) for s in ((1, 3, 5, 7), (1, 3, 9, 7), (1, 3, 9, 5)))
            v[0, 2, 4, 1] = np.nan
            mask = np.where(random.random((5, 9)) > 0.4, 0, -np.inf)
            mask[1, :] = 0
            kept = mask == 0
            bound = bound_of(dtype, q, k, v)
            y = attended(wide(q), wide(k), wide(v), mask)
            table.add("Attention", [q, k, v, mask.astype(dtype)], [y], bound)
            table.add("Attention", [q, k, v, kept], [y], bound)
            causal = np.where(np.arange(9) <= np.arange(5)[:, None], 0, -np.inf)
            v = np.where(np.isnan(v), np.ones(1, dtype), v)
            table.add("Attention", [q, k, v], [attended(wide(q), wide(k), wide(v), causal)], bound, is_causal=1)

        self.check_types(FLOATS, add)

    def test_microsoft_attention(self):
        def add(table, dtype, random):
            q, k, v = (random.standard_normal(s).astype(dtype) for s in ((2, 5, 21), (2, 3, 21), (2, 3, 15)))
            v[1, 0, 14] = np.nan
            parts = [heads_of(wide(x), 3) for x in (q, k, v)]
            more = random.standard_normal((1, 3, 5, 3)).astype(dtype)
            bound = bound_of(dtype, *parts) * 2
            table.add("MultiHeadAttention", [q, k, v, None, None, more], [joined(attended(*parts, wide(more)))], bound,
                      domain=MICROSOFT, num_heads=3)
            x, w = random.standard_normal((2, 5, 6)).astype(dtype), (random.standard_normal((6, 27)) / 3).astype(dtype)
            b = random.standard_normal(27).astype(dtype)
            whole = wide(x) @ wide(w) + wide(b)
            parts = [heads_of(p, 3) for p in np.split(whole, 3, 2)]
            # What is projected is stored in the type: 3 roundings of numbers that the scores multiply.
            size = np.abs(whole).max()
            more = 8 * (own(dtype) + 8 * factor(dtype)) * size * (1 + size**2 * 3 / np.sqrt(3)) * 2
            table.add("Attention", [x, w, b], [joined(attended(*parts))], bound_of(dtype, *parts) + more, domain=MICROSOFT,
                      num_heads=3)
            q, k, v = (random.standard_normal(s).astype(dtype) for s in ((1, 5, 64), (1, 5, 32), (1, 5, 32)))
            parts = [heads_of(wide(q), 4), *(np.repeat(heads_of(wide(x), 2), 2, 1) for x in (k, v))]
            causal = np.where(np.arange(5) <= np.arange(5)[:, None], 0, -np.inf)
            empty = np.zeros((1, 2, 0, 16), dtype)
            lengths = [np.array([4], np.int32), np.array([5], np.int32)]
            present = [np.ascontiguousarray(x.reshape(1, 5, 2, 16).transpose(0, 2, 1, 3)) for x in (k, v)]
            table.add("GroupQueryAttention", [q, k, v, empty, empty, *lengths], [
                (joined(attended(*parts, causal)), bound_of(dtype, *parts)), (present[0], None), (present[1], None)],
                domain=MICROSOFT, num_heads=4, kv_num_heads=2)

        self.check_types(FLOATS, add, opset=25)

    def test_rotary(self):
        """Two products and a sum: 3 roundings of the sum of magnitudes."""
        def add(table, dtype, random):
            x = random.standard_normal((1, 3, 5, 6)).astype(dtype)
            x[0, 1, 2, 0], x[0, 2, 3, 5] = np.nan, np.inf
            cosines, sines = (random.standard_normal((7, 3)).astype(dtype) for _ in range(2))
            at = np.array([[6, 0, 3, 3, 1]])
            for interleaved in (0, 1):
                y = rotated(wide(x), wide(cosines)[at][:, None], wide(sines)[at][:, None], interleaved)
                most = finite(x).max() * (np.abs(wide(cosines)) + np.abs(wide(sines))).max()
                bound = 3 * (own(dtype) + factor(dtype)) * most
                table.add("RotaryEmbedding", [x, cosines, sines, at], [y], bound, interleaved=interleaved)
                table.add("RotaryEmbedding", [x, at, cosines, sines], [y], bound, domain=MICROSOFT, interleaved=interleaved)

        self.check_types(FLOATS, add)

    def test_activations(self):
        """erf and tanh err by 16 and 5 units, and the sum with 1 that is nearly 0 for negative x keeps what they err by."""
        def add(table, dtype, random):
            x = edges.values(dtype, 255, -30, 30).reshape(3, 85)
            bias = random.standard_normal(85).astype(dtype)
            error = np.vectorize(math.erf)
            for op_type, inputs in (("Gelu", [x]), ("BiasGelu", [x, bias]), ("FastGelu", [x]), ("FastGelu", [x, bias]),
                                    ("QuickGelu", [x])):
                t = wide(x) + (wide(bias) if len(inputs) > 1 else 0)
                if op_type in ("Gelu", "BiasGelu"):
                    gate = 0.5 * (1 + error(t / np.sqrt(2)))
                elif op_type == "FastGelu":
                    gate = 0.5 * (1 + np.tanh(0.7978845608028654 * (t + 0.044715 * t**3)))
                else:
                    gate = 1 / (1 + np.exp(-np.float64(np.float32(1.702)) * t))
                # The bias' sum is rounded; constants are of float32; exp's argument errs by a rounding of up to 51.
                bound = 120 * factor(dtype) * finite(t) + (own(dtype) * 2 * finite(t) if len(inputs) > 1 else 0)
                if dtype == F64:
                    bound = bound + 1e-6 * finite(t) * (op_type == "FastGelu")  # whose constants have 6 and 7 digits
                table.add(op_type, inputs, [t * gate], bound, domain=MICROSOFT)

        self.check_types(FLOATS, add)

    def test_embedding(self):
        def add(table, dtype, random):
            ids, segments = np.array([[2, 0, 6]], np.int32), np.array([[1, 0, 1]], np.int32)
            words, places, kinds = (random.standard_normal((n, 5)).astype(dtype) for n in (7, 3, 2))
            words[6, 2], words[0] = np.nan, 7
            scale, bias = (random.standard_normal(5).astype(dtype) for _ in range(2))
            x = wide(words)[ids] + wide(places)[None] + wide(kinds)[segments]
            middle = x.mean(-1, keepdims=True)
            y = (x - middle) / np.sqrt(((x - middle) ** 2).mean(-1, keepdims=True) + np.float32(1e-3)) * wide(scale) + wide(bias)
            # The sums of three are rounded, in the type where they are stored, and divided by a spread that is over 0.3 here.
            bound = 3 * (4 * own(dtype) + 20 * factor(dtype)) * finite(x).max() * np.abs(wide(scale)).max() / 0.3
            table.add("EmbedLayerNormalization", [ids, segments, words, places, kinds, scale, bias], [y], bound, dtype,
                      domain=MICROSOFT, epsilon=1e-3)

        self.check_types(FLOATS, add)

    def test_bits(self):
        """MatMulNBits of 4 bits in blocks of 16: weights (q - zero) scale, rounded to the type where they are unpacked."""
        def add(table, dtype, random):
            x = random.standard_normal((3, 32)).astype(dtype)
            x[1, 5], x[2, 31] = np.nan, np.inf
            codes = random.integers(0, 16, (5, 32))
            codes[:, 31] = 15
            scales = (random.random((5, 2)) + 0.5).astype(dtype)
            packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8).reshape(5, 2, 8)
            weights = (codes.reshape(5, 2, 16) - 8) * wide(scales)[..., None]
            y = sum(wide(x)[:, i, None] * weights.reshape(5, 32).T[i] for i in range(32))
            most = finite(x) @ np.abs(weights.reshape(5, 32).T)
            table.add("MatMulNBits", [x, packed, scales.reshape(-1)], [y], (40 * factor(dtype) + 2 * own(dtype)) * most,
                      domain=MICROSOFT, constants=(1, 2), K=32, N=5, bits=4, block_size=16)

        self.check_types([d for d in FLOATS if d != F64], add)

    def test_linear_attention(self):
        """The state of the linear rule is a sum of products; a query of it another."""
        def add(table, dtype, random):
            q, k, v = (random.standard_normal((1, 5, n)).astype(dtype) for n in (6, 6, 10))
            v[0, 3, 9] = np.nan
            parts = [x.reshape(5, 2, -1) for x in (wide(q), wide(k), wide(v))]
            state, rows = np.zeros((2, 3, 5)), []
            for t in range(5):
                state = state + parts[1][t][..., None] * parts[2][t][:, None, :]
                rows.append(np.einsum("hk,hkv->hv", parts[0][t], state) * 0.5)
            bound = (20 * factor(dtype) + 5 * own(dtype)) * 5 * 3 * finite(q).max() * finite(k).max() * finite(v).max()
            table.add("LinearAttention", [q, k, v], [(np.stack(rows).reshape(1, 5, 10), bound)], q_num_heads=2,
                      kv_num_heads=2, scale=0.5, update_rule="linear")

        self.check_types([d for d in FLOATS if d != F64], add, opset=27)


if __name__ == "__main__":
    unittest.main(verbosity=2)
