# SPDX-License-Identifier: Apache-2.0
"""Attention, rotary embeddings and com.microsoft's fused operators, against onnxruntime and onnx's reference."""

import os
import sys
import unittest
import warnings

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.float64: TensorProto.DOUBLE,
         np.int32: TensorProto.INT32, np.int64: TensorProto.INT64, np.bool_: TensorProto.BOOL}
INFINITY = np.float32(np.inf)


def build(op_type, domain, arrays, outputs, opset, constants=(), **attributes):
    """One node; `arrays` may hold None; outputs named "" are left out."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(op_type, names, outputs, domain=domain, **attributes)
    given = {n: a for n, a in zip(names, arrays) if n}
    fixed = [numpy_helper.from_array(a, n) for i, (n, a) in enumerate(zip(names, arrays)) if i in constants]
    feed = {n: a for i, (n, a) in enumerate(zip(names, arrays)) if n and i not in constants}
    inputs = [helper.make_tensor_value_info(n, TYPES[a.dtype.type], a.shape) for n, a in feed.items()]
    ends = [helper.make_value_info(n, helper.make_tensor_type_proto(0, None)) for n in outputs if n]
    for end, _ in zip(ends, given):
        end.type.tensor_type.elem_type = 0
    graph = helper.make_graph([node], "g", inputs, ends, fixed)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10), feed


class TransformerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        warnings.simplefilter("ignore", RuntimeWarning)
        onnxruntime.set_default_logger_severity(3)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def setUp(self):
        self.random = np.random.default_rng(11)

    def values(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape).astype(dtype)

    def run_model(self, model, feed, outputs, types):
        for end, dtype in zip(model.graph.output, types):
            end.type.tensor_type.elem_type = TYPES[dtype]
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            got = session.run(feed)
        finally:
            session.close()
        return [got[name] for name in outputs if name]

    def compare(self, got, expected, bound):
        for value, wanted in zip(got, expected):
            self.assertEqual(value.shape, wanted.shape)
            self.assertEqual(value.dtype, wanted.dtype)
            np.testing.assert_allclose(value.astype(np.float64), wanted.astype(np.float64), rtol=bound, atol=bound)

    def microsoft(self, op_type, arrays, outputs=("y",), types=None, bound=2e-5, constants=(), **attributes):
        types = types or [next(a.dtype.type for a in arrays if a is not None)] * len(outputs)
        model, feed = build(op_type, "com.microsoft", arrays, list(outputs), 17, constants, **attributes)
        for end, dtype in zip(model.graph.output, types):
            end.type.tensor_type.elem_type = TYPES[dtype]
        reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = reference.run(None, feed)
        got = self.run_model(model, feed, outputs, types)
        self.compare(got, expected, bound)

    def onnx(self, op_type, arrays, outputs=("y",), opset=25, bound=2e-5, **attributes):
        model, feed = build(op_type, "", arrays, list(outputs), opset, **attributes)
        for end in model.graph.output:
            end.type.tensor_type.elem_type = TYPES[arrays[0].dtype.type]
        expected = ReferenceEvaluator(model).run(None, feed)
        try:
            got = self.run_model(model, feed, outputs, [e.dtype.type for e in expected])
        except runnel.Failure as failure:
            if np.float64 in (a.dtype for a in feed.values()) and "no float64 arithmetic" in failure.message:
                return  # refused by name
            raise
        self.compare(got, expected, bound)

    # ---- ai.onnx ----

    def test_attention_masks(self):
        """Rows that are masked as a whole, masks of every rank, and what NaN and infinity do."""
        q, k, v = self.values(2, 6, 5, 7), self.values(2, 3, 9, 7), self.values(2, 3, 9, 4)
        mask = self.random.random((2, 6, 5, 9)) > 0.4
        mask[0, 1, 2] = mask[1, :, 4] = False
        for part in (mask, mask[:, :1], mask[0], mask[0, 0], mask[0, 0, :1], mask[..., :6]):
            self.onnx("Attention", [q, k, v, part])
            if part.shape[-2] == 5:  # else the reference takes every query for the first
                self.onnx("Attention", [q, k, v, part], is_causal=1, opset=23)
        scores = np.where(mask, self.values(*mask.shape), -INFINITY)
        self.onnx("Attention", [q, k, v, scores], ("y", "", "", "s"), qk_matmul_output_mode=3)
        self.onnx("Attention", [q, k, v, scores[..., :5]], ("y", "", "", "s"), qk_matmul_output_mode=2)
        k[0, 0, 3, 2], q[1, 5, 0, 0] = np.nan, INFINITY
        self.onnx("Attention", [q, k, v, mask])
        self.onnx("Attention", [q, k, v], is_causal=1)

    def test_attention_lengths(self):
        q, k, v = self.values(3, 2, 4, 5), self.values(3, 2, 11, 5), self.values(3, 2, 11, 3)
        lengths = np.array([0, 11, 2], np.int64)
        none = [None] * 3
        for attributes in ({}, {"is_causal": 1}, {"left_window_size": 2}, {"left_window_size": 1, "right_window_size": 0},
                           {"right_window_size": 3, "is_causal": 1}):
            self.onnx("Attention", [q, k, v, *none, lengths], **attributes)
        self.onnx("Attention", [q, k, v], left_window_size=0, right_window_size=1)

    def test_attention_past(self):
        q, k, v = self.values(2, 3, 24), self.values(2, 3, 8), self.values(2, 3, 10)
        past = [self.values(2, 2, 5, 4), self.values(2, 2, 5, 5)]
        heads = {"q_num_heads": 6, "kv_num_heads": 2}
        self.onnx("Attention", [q, k, v, None, *past], ("y", "k", "v"), is_causal=1, **heads)
        self.onnx("Attention", [q, k, v, self.values(3, 8), *past], ("y", "", "v"), scale=0.3, softcap=1.5, **heads)
        self.onnx("Attention", [q, k, v], ("y", "k", "v", "s"), **heads)
        self.onnx("Attention", [q, k, v, None, past[0][:, :, :0], past[1][:, :, :0]], ("y", "k", "v"), **heads)

    def test_attention_types(self):
        for dtype, bound in ((np.float16, 2e-3), (np.float64, 1e-6)):
            q, k, v = (self.values(1, 2, 5, 6, dtype=dtype) for _ in range(3))
            self.onnx("Attention", [q, k, v, self.values(5, 5, dtype=dtype)], bound=bound)
            self.onnx("Attention", [q, k, v], bound=bound, softmax_precision=TensorProto.FLOAT, is_causal=1)
        q, k, v = (self.values(1, 2, 5, 6) for _ in range(3))
        self.onnx("Attention", [q, k, v], bound=2e-3, softmax_precision=TensorProto.FLOAT16)
        self.onnx("Attention", [q, k, v], softmax_precision=TensorProto.DOUBLE)

    def test_attention_refused(self):
        q, k, v = self.values(1, 6, 5, 7), self.values(1, 4, 9, 7), self.values(1, 4, 9, 4)
        for arrays, text in (([q, k, v], "4 heads of keys and values cannot serve 6"),
                             ([q, q, v], "input 2 of Attention has shape 1x4x9x4, which does not fit the key's"),
                             ([q, q, q, self.values(3, 5)], "input 3 of Attention has shape 3x5, which does not broadcast"),
                             ([q, q, q, None, q], "only given together"),
                             ([q[0], k, v], "where all three are of rank 3 or of rank 4")):
            model, feed = build("Attention", "", arrays, ["y"], 25)
            with self.assertRaisesRegex(runnel.Failure, text):
                self.run_model(model, feed, ["y"], [np.float32])

    def flex(self, feed, score_nodes, scores_in=("s",), scores_out=("m",), extra=(), **attributes):
        def ends(names):
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]

        scores = helper.make_graph(score_nodes, "scores", ends(scores_in), ends(scores_out))
        probabilities = helper.make_graph([helper.make_node("Mul", ["p", "half"], ["r"])], "probabilities", ends(["p"]),
                                          ends(["r"]), [numpy_helper.from_array(np.float32(0.5), "half")])
        node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=scores,
                                prob_mod=probabilities, **attributes)
        inputs = [helper.make_tensor_value_info(n, TYPES[a.dtype.type], a.shape) for n, a in feed.items()]
        graph = helper.make_graph([*extra, node], "g", inputs, ends(["y"]))
        imports = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", 1)]
        session = runnel.Session(self.device, helper.make_model(graph, opset_imports=imports, ir_version=10)
                                 .SerializeToString())
        try:
            return session.run(feed)["y"]
        finally:
            session.close()

    def test_flex_attention(self):
        """Modifiers that read values of the graph around them, one of which is made behind them in the file's order."""
        feed = {"q": self.values(2, 4, 5, 6), "k": self.values(2, 2, 7, 6), "v": self.values(2, 2, 7, 3),
                "b": self.values(5, 7)}
        double = helper.make_node("Add", ["b", "b"], ["c"])
        got = self.flex(feed, [helper.make_node("Add", ["s", "c"], ["t"]), helper.make_node("Add", ["t", "b"], ["m"])],
                        extra=[double], scale=0.3)
        k, v = (np.repeat(feed[n].astype(np.float64), 2, 1) for n in "kv")
        scores = feed["q"] @ k.swapaxes(2, 3) * 0.3 + 3 * feed["b"]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        np.testing.assert_allclose(got, shares / 2 @ v, rtol=2e-5, atol=2e-5)
        with self.assertRaisesRegex(runnel.Failure, "'score_mod' of FlexAttention '' has 2 inputs and 1 outputs"):
            self.flex(feed, [helper.make_node("Add", ["s", "z"], ["m"])], scores_in=("s", "z"))
        with self.assertRaisesRegex(runnel.Failure, "has 1 inputs and 2 outputs"):
            self.flex(feed, [helper.make_node("Abs", ["s"], ["m"])], scores_out=("m", "s"))
        with self.assertRaisesRegex(runnel.Failure, "input 1 of FlexAttention.values has shape 2x2x7x3"):
            self.flex(feed, [helper.make_node("Transpose", ["s"], ["m"], perm=[0, 1, 3, 2])])

    def test_rotary(self):
        x, cache = self.values(2, 3, 5, 8), self.values(2, 5, 3)
        for interleaved in (0, 1):
            self.onnx("RotaryEmbedding", [x, cache, cache + 1], interleaved=interleaved, rotary_embedding_dim=6)
            table, positions = self.values(13, 4), self.random.integers(0, 13, (2, 5))
            self.onnx("RotaryEmbedding", [x, table, table - 1, positions], interleaved=interleaved)
            packed = self.values(2, 5, 24, dtype=np.float64)
            doubles = self.values(2, 5, 3, dtype=np.float64)
            self.onnx("RotaryEmbedding", [packed, doubles, doubles - 1], interleaved=interleaved, num_heads=4)

    # ---- com.microsoft ----

    def test_activations(self):
        x, bias = self.values(3, 5, 37), self.values(37)
        x[0, 0, :4] = np.nan, INFINITY, -INFINITY, 0
        self.microsoft("Gelu", [x])
        self.microsoft("BiasGelu", [x, bias])
        self.microsoft("FastGelu", [x[:, 1:]])
        self.microsoft("FastGelu", [x[:, 1:], bias])
        self.microsoft("QuickGelu", [x[:, 1:]])
        self.microsoft("QuickGelu", [x[:, 1:]], alpha=0.5)

    def test_fused_matmul(self):
        a, b = self.values(3, 2, 5, 7), self.values(3, 2, 7, 4)
        turned = [np.ascontiguousarray(np.swapaxes(t, 2, 3)) for t in (a, b)]
        self.microsoft("FusedMatMul", [a, b], alpha=0.25)
        self.microsoft("FusedMatMul", [turned[0], b], transA=1)
        self.microsoft("FusedMatMul", [a, turned[1]], transB=1, alpha=-2.0)
        self.microsoft("FusedMatMul", turned, transA=1, transB=1)
        rows = [np.ascontiguousarray(np.moveaxis(t, 2, 0)) for t in (a, b)]  # the matrices' rows first
        self.microsoft("FusedMatMul", [rows[0], b], transBatchA=1)
        self.microsoft("FusedMatMul", [a, rows[1]], transBatchB=1)
        self.microsoft("FusedMatMul", [self.values(5, 7), self.values(4, 7)], transB=1)
        self.microsoft("FusedMatMul", [self.values(7), self.values(7, 4)])

    def test_skip_normalization(self):
        x, skip, gamma, beta, bias = self.values(2, 5, 33), self.values(2, 5, 33), *(self.values(33) for _ in range(3))
        for arrays in ([x, skip, gamma], [x, skip, gamma, beta], [x, skip, gamma, beta, bias], [x, skip, gamma, None, bias],
                       [x, skip[:1], gamma, beta], [x, skip[0], gamma, beta]):
            self.microsoft("SkipLayerNormalization", arrays, ("y", "", "", "s"), epsilon=1e-3)
        self.microsoft("SkipLayerNormalization", [x, skip, gamma, beta])
        self.microsoft("SkipSimplifiedLayerNormalization", [x, skip, gamma], ("y", "", "", "s"), epsilon=1e-3)
        self.microsoft("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias])

    def test_embed_normalization(self):
        ids = self.random.integers(0, 17, (2, 5)).astype(np.int32)
        segments = self.random.integers(0, 2, (2, 5)).astype(np.int32)
        words, positions, kinds = self.values(17, 12), self.values(9, 12), self.values(2, 12)
        gamma, beta = self.values(12), self.values(12)
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        order = self.random.integers(0, 9, (2, 5)).astype(np.int32)
        full = [ids, segments, words, positions, kinds, gamma, beta]
        types = [np.float32, np.int32, np.float32]
        self.microsoft("EmbedLayerNormalization", full, ("y", "m"), types)
        self.microsoft("EmbedLayerNormalization", full + [mask], ("y", "m"), types, mask_index_type=1)
        self.microsoft("EmbedLayerNormalization", full + [mask], ("y", "m", "s"), types)
        plain = [ids, None, words, positions, None, gamma, beta]
        self.microsoft("EmbedLayerNormalization", plain, ("y", "m"), types)
        self.microsoft("EmbedLayerNormalization", full + [None, order], ("y", "m"), types)
        self.microsoft("EmbedLayerNormalization", full + [None, order[:1]], ("y", "m"), types)

    def test_microsoft_rotary(self):
        cosines, sines = self.values(11, 4), self.values(11, 4)
        for interleaved in (0, 1):
            self.microsoft("RotaryEmbedding", [self.values(2, 5, 24), np.array([3]), cosines, sines],
                           interleaved=interleaved)
            order = self.random.integers(0, 11, (2, 5))
            self.microsoft("RotaryEmbedding", [self.values(2, 3, 5, 8), order, cosines, sines], interleaved=interleaved)
            self.microsoft("RotaryEmbedding", [self.values(2, 5, 30), order, cosines, sines], interleaved=interleaved,
                           num_heads=3, rotary_embedding_dim=8)

    def attention_arrays(self, batch=2, length=5, heads=3, size=8, v_size=8):
        hidden, columns = 2 * heads * size, 2 * heads * size + heads * v_size
        return [self.values(batch, length, hidden), self.values(hidden, columns) / 4, self.values(columns)]

    def test_microsoft_attention(self):
        arrays = self.attention_arrays()
        self.microsoft("Attention", arrays, num_heads=3)
        self.microsoft("Attention", arrays, num_heads=3, unidirectional=1, constants=(1, 2))
        self.microsoft("Attention", arrays, num_heads=3, scale=0.7)
        self.microsoft("Attention", arrays, ("y", "p"), num_heads=3)
        past = self.values(2, 2, 3, 4, 8)
        self.microsoft("Attention", arrays + [None, past], ("y", "p"), num_heads=3, unidirectional=1)
        self.microsoft("Attention", self.attention_arrays(v_size=4), num_heads=3, qkv_hidden_sizes=[24, 24, 12])

    def test_microsoft_attention_masks(self):
        arrays = self.attention_arrays()
        raw = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], np.int32)
        whole = (self.random.random((2, 5, 5)) > 0.5).astype(np.int32)
        whole[0, 2] = 0
        lists = [np.array([5, 2], np.int32), np.array([0, 4], np.int32), np.array([5, 3, 1, 0], np.int32)]
        for mask in (raw, whole, *lists):  # beside -10000, what is left of a masked row's scores is rounding
            for attributes in ({"mask_filter_value": -64.0}, {"mask_filter_value": -5.0, "unidirectional": 1}):
                self.microsoft("Attention", arrays + [mask], num_heads=3, **attributes)
        self.microsoft("Attention", arrays + [np.maximum(raw, [[0], [1]]).astype(np.int32)], num_heads=3)
        past = self.values(2, 2, 3, 4, 8)
        raw = (self.random.random((2, 9)) > 0.3).astype(np.int32)
        self.microsoft("Attention", arrays + [raw, past], ("y", "p"), num_heads=3, unidirectional=1)
        for shape in ((2, 3, 5, 5), (1, 1, 5, 5), (1, 3, 5, 5)):
            self.microsoft("Attention", arrays + [None, None, self.values(*shape)], num_heads=3)
        self.microsoft("Attention", arrays + [lists[0], None, self.values(2, 3, 5, 5)], num_heads=3)

    def test_multi_head(self):
        q, k, v, bias = self.values(2, 5, 24), self.values(2, 7, 24), self.values(2, 7, 12), self.values(60)
        self.microsoft("MultiHeadAttention", [q, k, v], num_heads=3)
        self.microsoft("MultiHeadAttention", [q, k, v, bias], num_heads=3, scale=0.4)
        raw = np.array([[1, 1, 1, 0, 0, 1, 0], [0] * 7], np.int32)
        whole = (self.random.random((2, 5, 7)) > 0.5).astype(np.int32)
        for mask in (raw, whole, np.array([7, 3], np.int32)):
            self.microsoft("MultiHeadAttention", [q, k, v, bias, mask], num_heads=3, mask_filter_value=-64.0)
        raw[1, :3] = 1
        self.microsoft("MultiHeadAttention", [q, k, v, None, raw, self.values(2, 3, 5, 7)], num_heads=3)
        self.microsoft("MultiHeadAttention", [q, k, v, None, None, self.values(1, 1, 5, 7)], num_heads=3)
        self.microsoft("MultiHeadAttention", [q, q, q], num_heads=3, unidirectional=1)
        cache = [self.values(2, 3, 7, 8), self.values(2, 3, 7, 8)]
        self.microsoft("MultiHeadAttention", [q, *cache], num_heads=3)

    def test_multi_head_past(self):
        q, k, v = (self.values(2, 3, 24) for _ in range(3))
        past = [self.values(2, 3, 4, 8), self.values(2, 3, 4, 8)]
        outputs = ("y", "k", "v")
        self.microsoft("MultiHeadAttention", [q, k, v, None, None, None, *past], outputs, num_heads=3, unidirectional=1)
        mask = (self.random.random((2, 7)) > 0.3).astype(np.int32)
        self.microsoft("MultiHeadAttention", [q, k, v, self.values(72), mask, None, *past], outputs, num_heads=3)
        self.microsoft("MultiHeadAttention", [q, k, v], outputs, num_heads=3)

    def group_query(self, q, k, v, past, lengths, total, more=(), **attributes):
        arrays = [q, k, v, *past, np.array(lengths, np.int32), np.array([total], np.int32), *more]
        model, feed = build("GroupQueryAttention", "com.microsoft", arrays, ["y", "k", "v"], 17, **attributes)
        for end in model.graph.output:
            end.type.tensor_type.elem_type = TensorProto.FLOAT
        reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = reference.run(None, feed)
        got = self.run_model(model, feed, ["y", "k", "v"], [np.float32] * 3)
        first = total == q.shape[1]
        for b, last in enumerate(lengths):  # what lies behind a sample's keys is nobody's
            keys = last + 1
            rows = keys if first else q.shape[1]
            np.testing.assert_allclose(got[0][b, :rows], expected[0][b, :rows], rtol=2e-5, atol=2e-5)
            for value, wanted in zip(got[1:], expected[1:]):
                self.assertEqual(value.shape, wanted.shape)
                np.testing.assert_allclose(value[b, :, :keys], wanted[b, :, :keys], rtol=2e-5, atol=2e-5)

    def test_group_query(self):
        """A prompt, padded at the end, and one token more: samples' pasts differ, and the cache may have room to spare."""
        heads = {"num_heads": 6, "kv_num_heads": 2}
        q, k, v = self.values(2, 5, 96), self.values(2, 5, 32), self.values(2, 5, 32)
        empty = [np.zeros((2, 2, 0, 16), np.float32)] * 2
        self.group_query(q, k, v, empty, [4, 2], 5, **heads)
        caches = [self.values(20, 8), self.values(20, 8)]
        for attributes in ({}, {"rotary_interleaved": 1}, {"local_window_size": 2}, {"softcap": 2.0, "scale": 0.5}):
            self.group_query(q, k, v, empty, [4, 2], 5, caches, do_rotary=1, **heads, **attributes)
        past = [self.values(2, 2, 7, 16), self.values(2, 2, 7, 16)]
        one = q[:, :1], k[:, :1], v[:, :1]
        for lengths, total in (([7, 7], 8), ([7, 3], 8), ([4, 0], 5)):
            self.group_query(*one, past, lengths, total, **heads)
            self.group_query(*one, past, lengths, total, caches, do_rotary=1, **heads)
            self.group_query(*one, past, lengths, total, local_window_size=3, **heads)
        packed = np.concatenate([q, k, v], 2)
        self.group_query(packed, None, None, empty, [4, 2], 5, caches, do_rotary=1, **heads)
        self.group_query(q, k, v, empty, [4, 4], 5, [None] * 3 + [self.values(2, 6, 5, 5)], **heads)
        more = [a[:1] for a in (q, k, v)]
        self.group_query(*more, [a[:1] for a in past], [11], 12, caches, do_rotary=1, **heads)

    def test_group_query_refused(self):
        heads = {"num_heads": 6, "kv_num_heads": 2}
        q, k, v = self.values(2, 5, 48), self.values(2, 5, 16), self.values(2, 5, 16)
        past = [self.values(2, 2, 3, 8), self.values(2, 2, 3, 8)]
        for total, text in ((4, "total_sequence_length of GroupQueryAttention is 4"), (9, "is 9; with 5 new tokens")):
            with self.assertRaisesRegex(runnel.Failure, text):
                arrays = [q, k, v, *past, np.array([7, 7], np.int32), np.array([total], np.int32)]
                model, feed = build("GroupQueryAttention", "com.microsoft", arrays, ["y"], 17, **heads)
                self.run_model(model, feed, ["y"], [np.float32])

    def test_packed_heads(self):
        """Packed queries, keys and values are for GPUs in onnxruntime: the same as apart."""
        packed, bias = self.values(2, 5, 3, 3, 8), self.values(72)
        apart = [np.ascontiguousarray(packed[:, :, :, i]).reshape(2, 5, 24) for i in range(3)]
        both = np.ascontiguousarray(packed[:, :, :, 1:])
        results = []
        for arrays in ([*apart, bias], [packed, None, None, bias], [apart[0], both, None, bias]):
            model, feed = build("MultiHeadAttention", "com.microsoft", arrays, ["y"], 17, num_heads=3)
            results.append(self.run_model(model, feed, ["y"], [np.float32])[0])
        np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(results[2], results[0], rtol=1e-5, atol=1e-5)

    def test_microsoft_refused(self):
        arrays = self.attention_arrays()
        for change, attributes, text in (({}, {"num_heads": 5}, "whose columns the heads do not divide"),
                                         ({3: np.ones((2, 4), np.int32)}, {"num_heads": 3}, "which is no mask"),
                                         ({}, {"num_heads": 3, "do_rotary": 1}, "do_rotary .* is not implemented"),
                                         ({2: self.values(3)}, {"num_heads": 3}, "input 2 of Attention has shape 3")):
            given = [change.get(i, a) for i, a in enumerate(arrays + [None])]
            model, feed = build("Attention", "com.microsoft", given, ["y"], 17, **attributes)
            with self.assertRaisesRegex(runnel.Failure, text):
                self.run_model(model, feed, ["y"], [np.float32])


if __name__ == "__main__":
    unittest.main(verbosity=2)
