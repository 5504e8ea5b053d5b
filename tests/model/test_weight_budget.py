# SPDX-License-Identifier: Apache-2.0
"""Models whose weights stay in host memory give what they give otherwise, to the bit."""

import os
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def weights(**shapes):
    values = np.random.default_rng(7)
    return [numpy_helper.from_array(values.standard_normal(shape).astype(np.float32) / 4, name)
            for name, shape in shapes.items()]


def info(name, *shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class BudgetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def outputs(self, data, runs, budget):
        session = runnel.Session(self.device, data, weight_budget_bytes=budget)
        try:
            results = [session.run(inputs) for inputs in runs]
            self.assertLessEqual(session.ring_bytes(), budget)
            return results, session.model_stats().weight_bytes
        finally:
            session.close()

    def check(self, data, runs, *budgets):
        """Budgets in bytes; the last one holds all."""
        plain, used = self.outputs(data, runs, 0)
        for budget in budgets + (2 * used + 65536,):
            streamed, on_host = self.outputs(data, runs, budget)
            self.assertEqual(on_host, used)
            for left, right in zip(plain, streamed):
                self.assertEqual(left.keys(), right.keys())
                for name in left:
                    self.assertEqual(left[name].tobytes(), right[name].tobytes(), f"{name} with {budget}")

    def test_convolutions_and_products(self):
        nodes = [helper.make_node("Conv", ["x", "k0", "b0"], ["a"], pads=[1, 1, 1, 1]),
                 helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("Conv", ["b", "k1"], ["c"], pads=[1, 1, 1, 1], group=2),
                 helper.make_node("GlobalAveragePool", ["c"], ["d"]),
                 helper.make_node("Flatten", ["d"], ["e"]),
                 helper.make_node("Gemm", ["e", "w0", "b1"], ["f"]),
                 helper.make_node("MatMul", ["f", "w1"], ["g"]),
                 helper.make_node("Add", ["g", "b2"], ["y"])]
        data = model(nodes, [info("x", "n", 3, 9, 7)], [info("y", "n", 6)],
                     weights(k0=(16, 3, 3, 3), b0=(16,), k1=(32, 8, 3, 3), w0=(32, 40), b1=(40,), w1=(40, 6), b2=(6,)))
        images = np.random.default_rng(1).standard_normal((5, 3, 9, 7)).astype(np.float32)
        self.check(data, [{"x": images[:1]}, {"x": images}, {"x": images[:1]}], 20000, 26000)

    def test_weights_that_are_read_again(self):
        """By nodes far apart, by the steps of a recurrent layer, and as outputs."""
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
                 helper.make_node("MatMul", ["a", "v"], ["b"]),
                 helper.make_node("MatMul", ["b", "w"], ["c"]),
                 helper.make_node("Unsqueeze", ["c", "axis"], ["d"]),
                 helper.make_node("LSTM", ["d", "i", "r"], ["", "e"], hidden_size=8),
                 helper.make_node("Identity", ["w"], ["same"]),
                 helper.make_node("Mul", ["scale", "e"], ["y"])]
        initializers = weights(w=(16, 16), v=(16, 16), i=(1, 32, 16), r=(1, 32, 8), scale=(1, 1, 8))
        initializers.append(numpy_helper.from_array(np.array([1]), "axis"))
        data = model(nodes, [info("x", "n", 16)], [info("y", 1, 1, 8), info("same", 16, 16), info("scale", 1, 1, 8)],
                     initializers)
        x = np.random.default_rng(2).standard_normal((6, 16)).astype(np.float32)
        self.check(data, [{"x": x}, {"x": x[:2]}], 6000, 9000)

    def test_control_flow(self):
        """A loop's body has weights of its own and of the graph around it; its plans share the session's ring."""
        body = helper.make_graph(
            [helper.make_node("MatMul", ["state", "w"], ["p"]), helper.make_node("MatMul", ["p", "inner"], ["q"]),
             helper.make_node("Tanh", ["q"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
            "body", [info("trip", dtype=INT64), info("go", dtype=BOOL), info("state", "n", 16)],
            [info("on", dtype=BOOL), info("next", "n", 16)], weights(inner=(16, 16)))
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
                 helper.make_node("Loop", ["count", "", "a"], ["b"], body=body),
                 helper.make_node("MatMul", ["b", "v"], ["y"])]
        data = model(nodes, [info("x", "n", 16), info("count", dtype=INT64)], [info("y", "n", 16)],
                     weights(w=(16, 16), v=(16, 16)))
        x = np.random.default_rng(3).standard_normal((4, 16)).astype(np.float32)
        self.check(data, [{"x": x, "count": np.array(5)}, {"x": x, "count": np.array(2)}], 3000)

    def test_refusal_names_the_node(self):
        data = model([helper.make_node("MatMul", ["x", "w"], ["y"], name="large")], [info("x", 4, 64)],
                     [info("y", 4, 64)], weights(w=(64, 64)))
        with self.assertRaisesRegex(runnel.Failure, r"(?s)budget of 16000 bytes.*reads \d+ at once.*'large'"):
            runnel.Session(self.device, data, weight_budget_bytes=16000)


if __name__ == "__main__":
    unittest.main()
