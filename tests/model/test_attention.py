# SPDX-License-Identifier: Apache-2.0
"""Attention that is written out in plain operators, as exporters do, against onnxruntime: what becomes one step on CPUs, what
must not, and that both are right.
"""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

INFINITY = np.float32(np.inf)


class Form:
    """softmax(scale * q k^T + mask) v as a graph; k is given as rows and transposed, unless `turned`."""

    def __init__(self, q, k, v, mask=None, opset=17):
        self.feed = {"q": q, "k": k, "v": v}
        if mask is not None:
            self.feed["mask"] = mask
        self.nodes, self.constants, self.opset = [], [], opset
        self.outputs = ["y"]

    def add(self, op_type, *inputs, name=None, **attributes):
        name = name or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def number(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.float32(value), name))
        return name

    def turned(self, name="k"):
        rank = self.feed["k"].ndim
        return self.add("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])

    def end(self, scores, axis=-1, **more):
        self.add("MatMul", self.add("Softmax", scores, axis=axis, **more), "v", name="y")
        return self

    def model(self):
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in self.feed.items()]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in self.outputs]
        graph = helper.make_graph(self.nodes, "attention", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


class AttentionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def setUp(self):
        self.random = np.random.default_rng(3)

    def values(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def operands(self, *batch, queries=17, keys=70, size=20, values=12):
        return (self.values(*batch, queries, size), self.values(*batch, keys, size), self.values(*batch, keys, values))

    def check(self, form):
        model = form.model()
        expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, form.feed)
        session = runnel.Session(self.device, model)
        try:
            session.run(form.feed)
            before = self.device.stats().kernels_launched
            got = session.run(form.feed)
            launched = self.device.stats().kernels_launched - before
        finally:
            session.close()
        for name, array in zip(form.outputs, expected):
            np.testing.assert_allclose(got[name], array, rtol=2e-4, atol=2e-5)
        return launched

    def plain(self, *batch, mask=None, scale=("Div", 4.5), opset=17, **sizes):
        form = Form(*self.operands(*batch, **sizes), mask=mask, opset=opset)
        scores = form.add("MatMul", "q", form.turned())
        if scale:
            scores = form.add(scale[0], scores, form.number(scale[1]))
        if mask is not None:
            scores = form.add("Add", scores, "mask")
        return form.end(scores)

    def test_ranks(self):
        """The last one, with an Add of a mask, is one launch on CPUs, however many elsewhere."""
        for batch in ((), (3,), (2, 3)):
            self.check(self.plain(*batch))
        self.assertGreaterEqual(self.check(self.plain(2, 3, mask=self.values(2, 1, 1, 70))), 1)

    def test_lengths(self):
        for queries, keys in ((1, 1), (1, 70), (8, 1), (17, 17), (128, 128), (197, 197)):
            self.check(self.plain(1, 2, queries=queries, keys=keys))

    def test_head_sizes(self):
        for size, values in ((1, 1), (64, 48), (257, 300)):
            self.check(self.plain(1, 2, size=size, values=values, scale=("Mul", 0.2)))

    def test_masks(self):
        for shape in ((2, 1, 1, 70), (17, 70), (1, 1, 17, 70), (2, 3, 17, 70), (1, 3, 1, 1), (1,), (2, 1, 17, 1), (70,)):
            self.check(self.plain(2, 3, mask=self.values(*shape) * 3))

    def test_causal(self):
        for nothing in (-INFINITY, np.float32(np.finfo(np.float32).min), np.float32(-10000)):
            mask = np.triu(np.full((70, 70), nothing, np.float32), 1)
            self.check(self.plain(2, 2, mask=mask, queries=70))
            self.check(self.plain(2, 2, mask=mask[::-1].copy(), queries=70))

    def test_row_without_keys(self):
        mask = np.zeros((17, 70), np.float32)
        mask[5] = -INFINITY
        self.check(self.plain(1, 2, mask=mask))

    def test_scales(self):
        for op_type, value in (("Mul", 0.25), ("Div", 3), ("Mul", 0), ("Div", -2)):
            self.check(self.plain(1, 2, scale=(op_type, value)))
        self.check(self.plain(1, 2, scale=None))

    def test_scaled_factors(self):
        """As torch writes scaled_dot_product_attention: both factors times a root."""
        form = Form(*self.operands(2, 2), mask=self.values(17, 70))
        root = form.number(0.5)
        scores = form.add("MatMul", form.add("Mul", "q", root), form.add("Mul", form.turned(), root))
        self.check(form.end(form.add("Add", scores, "mask")))

    def test_number_first(self):
        form = Form(*self.operands(1, 2), mask=self.values(17, 70))
        scores = form.add("Mul", form.number(0.3), form.add("MatMul", "q", form.turned()))
        self.check(form.end(form.add("Add", "mask", scores)))

    def test_divided_number(self):
        """A number over the scores is no scale."""
        form = Form(*self.operands(1, 1, queries=9, keys=9))
        self.check(form.end(form.add("Div", form.number(0.3), form.add("MatMul", "q", form.turned()))))

    def test_keys_lie_turned(self):
        q, k, v = self.operands(2, 3)
        form = Form(q, np.ascontiguousarray(k.swapaxes(-1, -2)), v)
        self.check(form.end(form.add("MatMul", "q", "k")))

    def test_mask_makes_more(self):
        """A mask that broadcasts the scores is no part of attention's one step."""
        form = Form(*self.operands(1, 2), mask=self.values(3, 1, 1, 70))
        self.check(form.end(form.add("Add", form.add("MatMul", "q", form.turned()), "mask")))

    def test_shared_keys(self):
        """One head of keys for all: the product broadcasts."""
        form = Form(self.values(2, 4, 17, 20), self.values(2, 1, 40, 20), self.values(2, 1, 40, 12))
        self.check(form.end(form.add("MatMul", "q", form.turned())))

    def test_read_in_between(self):
        for which in ("scores", "shares"):
            form = Form(*self.operands(1, 2))
            scores = form.add("MatMul", "q", form.turned(), name="scores")
            shares = form.add("Softmax", scores, name="shares", axis=-1)
            form.add("MatMul", shares, "v", name="y")
            form.outputs = ["y", which]
            self.check(form)

    def test_other_axis(self):
        form = Form(*self.operands(2, 3, queries=17, keys=17))
        self.check(form.end(form.add("MatMul", "q", form.turned()), axis=2))

    def test_flattening_softmax(self):
        for axis in (2, 3):
            form = Form(*self.operands(2, 3), opset=11)
            self.check(form.end(form.add("MatMul", "q", form.turned()), axis=axis))

    def test_from_one_product(self):
        """Queries, keys and values from one tensor by Gather, results joined: views all the way."""
        form = Form(*self.operands(1, 1))
        form.feed = {"x": self.values(2, 19, 3 * 4 * 16)}
        shape = numpy_helper.from_array(np.array([2, 19, 3, 4, 16], np.int64), "shape")
        joined = numpy_helper.from_array(np.array([2, 19, 64], np.int64), "joined")
        form.constants += [shape, joined]
        apart = form.add("Transpose", form.add("Reshape", "x", "shape"), perm=[2, 0, 3, 1, 4])
        parts = []
        for i in (0, -2, 2):
            form.constants.append(numpy_helper.from_array(np.int64(i), f"i{i}"))
            parts.append(form.add("Gather", apart, f"i{i}", axis=0))
        scores = form.add("MatMul", parts[0], form.add("Transpose", parts[1], perm=[0, 1, 3, 2]))
        result = form.add("MatMul", form.add("Softmax", scores, axis=-1), parts[2])
        form.add("Reshape", form.add("Transpose", result, perm=[0, 2, 1, 3]), "joined", name="y")
        self.check(form)


if __name__ == "__main__":
    unittest.main(verbosity=2)
