# SPDX-License-Identifier: Apache-2.0
"""A sentence encoder of MiniLM's shape (6 layers, 384 wide, 12 heads) with random weights, written three ways: with ai.onnx's
plain operators, with its Attention, and with com.microsoft's fused operators. Each agrees with onnxruntime's result of
the plain one at several shapes.
"""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

LAYERS, WIDTH, HEADS, INNER, WORDS, LENGTH = 6, 384, 12, 1536, 300, 64
SHAPES = [(1, 1), (2, 7), (1, 33), (3, 16)]


class Encoder:
    """The same weights whatever the form."""

    def __init__(self, form):
        self.form, self.random = form, np.random.default_rng(4)
        self.nodes, self.initializers = [], []

    def weight(self, *shape, scale=0.05, shift=0.0):
        name = f"w{len(self.initializers)}"
        array = self.random.standard_normal(shape).astype(np.float32) * scale + np.float32(shift)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, *values, shape=None):
        name = f"w{len(self.initializers)}"
        array = np.array(values, np.int64)
        self.initializers.append(numpy_helper.from_array(array if shape is None else array.reshape(shape), name))
        return name

    def number(self, value):
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.float32(value), name))
        return name

    def add(self, op_type, *inputs, domain="", outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def fused(self, op_type, *inputs, **attributes):
        return self.add(op_type, *inputs, domain="com.microsoft", **attributes)

    def norm(self):
        return self.weight(WIDTH, scale=0.1, shift=1), self.weight(WIDTH, scale=0.1)

    def embed(self):
        words, positions, kinds = self.weight(WORDS, WIDTH), self.weight(LENGTH, WIDTH), self.weight(2, WIDTH)
        gamma, beta = self.norm()
        if self.form == "fused":
            ids, mask = self.add("Cast", "ids", to=TensorProto.INT32), self.add("Cast", "mask", to=TensorProto.INT32)
            zeros = self.add("Sub", ids, ids)
            return self.fused("EmbedLayerNormalization", ids, zeros, words, positions, kinds, gamma, beta, outputs=2,
                              epsilon=1e-12)[0], mask
        shape = self.add("Shape", "ids")
        length = self.add("Gather", shape, self.integers(1, shape=()), axis=0)
        order = self.add("Range", self.integers(0, shape=()), length, self.integers(1, shape=()))
        sum_ = self.add("Add", self.add("Gather", words, "ids"), self.add("Gather", positions, order))
        sum_ = self.add("Add", sum_, self.add("Gather", kinds, self.integers(0, shape=())))
        mask = self.add("Unsqueeze", "mask", self.integers(1, 2))
        if self.form == "attention":
            mask = self.add("Cast", mask, to=TensorProto.BOOL)
        else:
            lack = self.add("Sub", self.number(1), self.add("Cast", mask, to=TensorProto.FLOAT))
            mask = self.add("Mul", lack, self.number(-10000))
        return self.add("LayerNormalization", sum_, gamma, beta, epsilon=1e-12), mask

    def attend(self, x, mask):
        weights = [self.random.standard_normal((WIDTH, WIDTH)).astype(np.float32) * 0.08 for _ in range(3)]
        biases = [self.random.standard_normal(WIDTH).astype(np.float32) * 0.05 for _ in range(3)]

        def constant(array):
            self.initializers.append(numpy_helper.from_array(array, f"w{len(self.initializers)}"))
            return self.initializers[-1].name

        if self.form == "fused":
            return self.fused("Attention", x, constant(np.concatenate(weights, 1)), constant(np.concatenate(biases)), mask,
                              num_heads=HEADS)
        q, k, v = (self.add("Add", self.add("MatMul", x, constant(w)), constant(b)) for w, b in zip(weights, biases))
        if self.form == "attention":
            return self.add("Attention", q, k, v, mask, q_num_heads=HEADS, kv_num_heads=HEADS)
        apart = self.integers(0, 0, HEADS, WIDTH // HEADS)
        q, v = (self.add("Transpose", self.add("Reshape", t, apart), perm=[0, 2, 1, 3]) for t in (q, v))
        k = self.add("Transpose", self.add("Reshape", k, apart), perm=[0, 2, 3, 1])
        scores = self.add("Div", self.add("MatMul", q, k), self.number(np.sqrt(WIDTH // HEADS)))
        shares = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        joined = self.add("Transpose", self.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self.add("Reshape", joined, self.integers(0, 0, WIDTH))

    def end(self, x, result, bias):
        gamma, beta = self.norm()
        if self.form == "fused":
            return self.fused("SkipLayerNormalization", result, x, gamma, beta, bias, epsilon=1e-12)
        result = self.add("Add", result, bias)
        return self.add("LayerNormalization", self.add("Add", result, x), gamma, beta, epsilon=1e-12)

    def layer(self, x, mask):
        result = self.add("MatMul", self.attend(x, mask), self.weight(WIDTH, WIDTH))
        x = self.end(x, result, self.weight(WIDTH))
        inner = self.add("MatMul", x, self.weight(WIDTH, INNER))
        bias = self.weight(INNER)
        if self.form == "fused":
            inner = self.fused("BiasGelu", inner, bias)
        else:
            inner = self.add("Add", inner, bias)
            half = self.add("Add", self.add("Erf", self.add("Div", inner, self.number(np.sqrt(2)))), self.number(1))
            inner = self.add("Mul", self.add("Mul", inner, half), self.number(0.5))
        return self.end(x, self.add("MatMul", inner, self.weight(INNER, WIDTH)), self.weight(WIDTH))

    def model(self):
        x, mask = self.embed()
        for _ in range(LAYERS):
            x = self.layer(x, mask)
        self.nodes.append(helper.make_node("Identity", [x], ["y"]))
        ends = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("ids", "mask")]
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", WIDTH])
        graph = helper.make_graph(self.nodes, "encoder", ends, [output], self.initializers)
        opsets = [helper.make_opsetid("", 23 if self.form == "attention" else 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


class EncoderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.reference = onnxruntime.InferenceSession(Encoder("plain").model(), providers=["CPUExecutionProvider"])

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def feed(self, batch, length):
        random = np.random.default_rng(batch * 100 + length)
        mask = np.ones((batch, length), np.int64)
        mask[0, max(1, length * 2 // 3):] = 0
        return {"ids": random.integers(0, WORDS, (batch, length)), "mask": mask}

    def run_form(self, form):
        session = runnel.Session(self.device, Encoder(form).model())
        try:
            for shape in SHAPES:
                feed = self.feed(*shape)
                expected = self.reference.run(None, feed)[0]
                got = session.run(feed)["y"]
                np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4, err_msg=f"{form} at {shape}")
        finally:
            session.close()

    def test_plain(self):
        self.run_form("plain")

    def test_attention(self):
        self.run_form("attention")

    def test_fused(self):
        self.run_form("fused")


if __name__ == "__main__":
    unittest.main(verbosity=2)
