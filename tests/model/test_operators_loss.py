# SPDX-License-Identifier: Apache-2.0
"""Losses, linear attention and causal convolution against numpy in float64, written from the specification."""

import itertools
import os
import sys
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

BOUNDS = {np.dtype(np.float32): 2e-5, np.dtype(np.float16): 3e-3, np.dtype(ml_dtypes.bfloat16): 2e-2,
          np.dtype(np.float64): 1e-9}


def model(op_type, arrays, outputs, opset, attributes):
    """`arrays`: {name: array or None}; an input that is left out has no name."""
    node = helper.make_node(op_type, [k if v is not None else "" for k, v in arrays.items()], outputs, **attributes)
    inputs = [helper.make_tensor_value_info(k, runnel.CODES[v.dtype], v.shape) for k, v in arrays.items()
              if v is not None]
    code = runnel.CODES[next(iter(arrays.values())).dtype]
    results = [helper.make_tensor_value_info(o, code, None) for o in outputs if o]
    graph = helper.make_graph([node], "g", inputs, results)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return built.SerializeToString()


def log_softmax(x):
    with np.errstate(invalid="ignore"):
        shifted = x - x.max(1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def nll(scores, target, weights, reduction, ignored):
    classes = scores.shape[1]
    weights = np.ones(classes) if weights is None else weights
    counts = np.ones(target.shape, bool) if ignored is None else target != ignored
    chosen = np.clip(np.where(target < 0, target + classes, target), 0, classes - 1)
    share = np.where(counts, weights[chosen], 0)
    picked = np.take_along_axis(scores, chosen[:, None], 1)[:, 0]
    loss = np.where(counts, -share * picked, 0)
    with np.errstate(invalid="ignore"):
        return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / share.sum()}[reduction]


def attention(query, key, value, past, decay, beta, heads, scale):
    """Token by token, for the heads of queries and of keys."""
    batches, tokens = query.shape[:2]
    readers, kept = heads
    q, k, v = (x.reshape(batches, tokens, n, x.shape[2] // n) for x, n in ((query, readers), (key, kept), (value, kept)))
    keys, values = k.shape[3], v.shape[3]
    state = np.zeros((batches, kept, keys, values)) if past is None else past.astype(np.float64)
    result = np.zeros((batches, tokens, readers, values))
    for t in range(tokens):
        if decay is not None:
            state = state * np.exp(decay[:, t].reshape(batches, kept, -1))[..., None]
        written = v[:, t]
        if beta is not None:
            found = np.einsum("bhkv,bhk->bhv", state, k[:, t])
            written = beta[:, t].reshape(batches, -1, 1) * (written - found)
        state = state + k[:, t][..., None] * written[..., None, :]
        for r in range(readers):
            result[:, t, r] = scale * np.einsum("bk,bkv->bv", q[:, t, r], state[:, r * kept // readers])
    return result.reshape(batches, tokens, readers * values), state


class StateAndLossTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(3)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_model(self, op_type, arrays, outputs, opset, **attributes):
        session = runnel.Session(self.device, model(op_type, arrays, outputs, opset, attributes))
        try:
            got = session.run({k: v for k, v in arrays.items() if v is not None})
        finally:
            session.close()
        return [got[name] for name in outputs if name]

    def compare(self, got, expected, dtype):
        self.assertEqual(got.dtype, np.dtype(dtype))
        self.assertEqual(got.shape, np.shape(expected))
        bound = BOUNDS[np.dtype(dtype)]
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=bound, atol=bound)

    def check_loss(self, shape, dtype=np.float32, weighted=False, ignored=None, reduction="mean", target=None, opset=22,
                   index=np.int64, scores=None):
        scores = (self.random.standard_normal(shape) if scores is None else scores).astype(dtype)
        rest = (shape[0],) + shape[2:]
        target = self.random.integers(0, shape[1], rest) if target is None else target
        weights = self.random.random(shape[1]).astype(dtype) + dtype(0.1) if weighted else None
        arrays = {"scores": scores, "target": target.astype(index), "weights": weights}
        attributes = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
        exact = [None if x is None else x.astype(np.float64) for x in (scores, weights)]
        got = self.run_model("NegativeLogLikelihoodLoss", arrays, ["y"], opset, **attributes)
        self.compare(got[0], nll(exact[0], target, exact[1], reduction, ignored), dtype)
        loss, likelihood = self.run_model("SoftmaxCrossEntropyLoss", arrays, ["y", "log"], opset, **attributes)
        self.compare(loss, nll(log_softmax(exact[0]), target, exact[1], reduction, ignored), dtype)
        self.compare(likelihood, log_softmax(exact[0]), dtype)

    def test_losses(self):
        for reduction, weighted, ignored in itertools.product(("none", "sum", "mean"), (False, True), (None, 2, -7)):
            with self.subTest(reduction=reduction, weighted=weighted, ignored=ignored):
                target = self.random.integers(0, 5, (3, 4, 7))
                if ignored is not None:
                    target[0, 1], target[2, 3, 1:4] = ignored, ignored
                self.check_loss((3, 5, 4, 7), weighted=weighted, ignored=ignored, reduction=reduction, target=target)

    def test_ranks_types_and_opsets(self):
        self.check_loss((7, 3), index=np.int32, opset=12)
        self.check_loss((2, 3, 1, 2, 1, 3, 2), reduction="none", opset=13)
        self.check_loss((5, 9, 3), dtype=np.float16, weighted=True)
        self.check_loss((5, 9, 3), dtype=ml_dtypes.bfloat16, reduction="none")
        try:
            self.check_loss((5, 9, 3), dtype=np.float64, weighted=True, index=np.int32)
        except runnel.Failure as failure:
            if failure.status != "UNIMPLEMENTED":
                raise

    def test_targets_out_of_range(self):
        self.check_loss((2, 4, 3), target=np.array([[0, 3, 4], [-1, -9, 1 << 40]]), reduction="none")
        self.check_loss((2, 4, 3), target=np.array([[0, 3, 4], [-1, -9, 2]]), reduction="sum", index=np.int32,
                        ignored=1 << 40)

    def test_nothing_counts(self):
        self.check_loss((2, 3, 2), target=np.full((2, 2), 1), ignored=1)
        self.check_loss((0, 3))
        self.check_loss((0, 3), reduction="sum")
        self.check_loss((2, 3, 0), reduction="none")

    def test_infinite_scores(self):
        scores = self.random.standard_normal((3, 4))
        scores[0, 1], scores[1, 2], scores[2, 0] = -np.inf, np.nan, 1e30
        self.check_loss((3, 4), scores=scores, target=np.array([0, 2, 0]), reduction="none")

    def check_attention(self, rule, heads=(4, 2), keys=5, values=8, tokens=3, batches=2, dtype=np.float32, past=None,
                        decay=None, beta=None, scale=0.0):
        readers, kept = heads
        sizes = {"query": readers * keys, "key": kept * keys, "value": kept * values}
        arrays = {k: (self.random.standard_normal((batches, tokens, n)) * 0.5).astype(dtype) for k, n in sizes.items()}
        state = (batches, kept, keys, values)
        arrays["past"] = None if past is None else self.random.standard_normal(state).astype(past)
        for name, columns in (("decay", decay), ("beta", beta)):
            arrays[name] = None if columns is None else self.random.random((batches, tokens, columns)).astype(dtype)
        if decay is not None:
            arrays["decay"] = -arrays["decay"]
        got = self.run_model("LinearAttention", arrays, ["y", "present"], 27, update_rule=rule, q_num_heads=readers,
                             kv_num_heads=kept, scale=scale)
        exact = [None if a is None else a.astype(np.float64) for a in arrays.values()]
        expected = attention(*exact, heads, scale or 1 / np.sqrt(keys))
        self.compare(got[0], expected[0], dtype)
        self.compare(got[1], expected[1], past or dtype)

    def test_linear_attention(self):
        self.check_attention("linear")
        self.check_attention("gated", decay=10, values=3)
        self.check_attention("gated", decay=2, past=np.float32, tokens=1)
        self.check_attention("delta", beta=2, heads=(6, 2), scale=0.3)
        self.check_attention("gated_delta", decay=2, beta=1, past=np.float32, values=20, keys=7)
        self.check_attention("gated_delta", decay=10, beta=2, values=1)
        self.check_attention("gated_delta", decay=1, beta=1, heads=(3, 1), values=16)

    def test_linear_attention_of_halves(self):
        self.check_attention("gated_delta", decay=2, beta=2, past=np.float32, dtype=np.float16, values=16)
        self.check_attention("gated", decay=10, past=ml_dtypes.bfloat16, dtype=ml_dtypes.bfloat16)

    def test_linear_attention_of_nothing(self):
        self.check_attention("linear", tokens=0, past=np.float32)
        self.check_attention("linear", batches=0)

    def test_linear_attention_refusals(self):
        for rule, arguments in (("linear", {"decay": 2}), ("gated", {}), ("delta", {"decay": 2, "beta": 2}),
                                ("gated", {"decay": 3}), ("delta", {"beta": 5}), ("linear", {"heads": (3, 2)}),
                                ("quadratic", {})):
            with self.subTest(rule=rule, **arguments), self.assertRaises(runnel.Failure):
                self.check_attention(rule, **arguments)

    def check_conv(self, batches, channels, length, width, dtype=np.float32, bias=False, past=False, activation="none"):
        arrays = {"x": self.random.standard_normal((batches, channels, length)).astype(dtype),
                  "w": self.random.standard_normal((channels, 1, width)).astype(dtype),
                  "b": self.random.standard_normal(channels).astype(dtype) if bias else None,
                  "past": self.random.standard_normal((batches, channels, width - 1)).astype(dtype) if past else None}
        got = self.run_model("CausalConvWithState", arrays, ["y", "present"], 27, activation=activation)
        x, w, b, before = (None if a is None else a.astype(np.float64) for a in arrays.values())
        whole = np.concatenate([np.zeros((batches, channels, width - 1)) if before is None else before, x], 2)
        y = sum(whole[:, :, i:i + length] * w[None, :, :, i] for i in range(width)) + (0 if b is None else b[:, None])
        y = y / (1 + np.exp(-y)) if activation != "none" else y
        self.compare(got[0], y, dtype)
        np.testing.assert_array_equal(got[1].astype(np.float64), whole[:, :, length:])

    def test_causal_convolution(self):
        self.check_conv(2, 3, 17, 4, bias=True, past=True, activation="silu")
        self.check_conv(1, 5, 1, 4, past=True)
        self.check_conv(2, 3, 2, 5, bias=True)
        self.check_conv(2, 3, 2, 6, past=True, activation="swish")
        self.check_conv(1, 70, 9, 1)
        self.check_conv(2, 3, 0, 3, past=True)
        self.check_conv(2, 3, 5, 3, dtype=np.float16, bias=True, past=True)
        self.check_conv(2, 3, 5, 3, dtype=ml_dtypes.bfloat16, activation="silu")


if __name__ == "__main__":
    unittest.main(verbosity=2)
