# SPDX-License-Identifier: Apache-2.0
"""RUNNEL_CHECK_NAN: a run stops where a NaN is made, and says where; not where one passes through."""

import os
import sys
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from runnel import Device, Failure, Library, Session  # noqa: E402

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.float64: TensorProto.DOUBLE,
         ml_dtypes.bfloat16: TensorProto.BFLOAT16}


def model(nodes, inputs, outputs, constants=(), kind=TensorProto.FLOAT):
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "net", infos, results, weights)
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


class CheckNanTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = Device(Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def setUp(self):
        self.mode("1")

    def tearDown(self):
        os.environ.pop("RUNNEL_CHECK_NAN", None)

    @staticmethod
    def mode(value):
        os.environ["RUNNEL_CHECK_NAN"] = value

    def open(self, data):
        session = Session(self.device, data)
        self.addCleanup(session.close)
        return session

    def stops(self, session, inputs, *parts):
        with self.assertRaises(Failure) as caught:
            session.run(inputs)
        for part in parts:
            self.assertIn(part, caught.exception.message)
        self.assertEqual(caught.exception.status, "FAILED_PRECONDITION")

    def chain(self):
        """MatMul, then Sqrt and Transpose, which makes the value another view, then Softmax."""
        nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], name="first"),
                 helper.make_node("Transpose", ["product"], ["turned"], perm=[0, 2, 1]),
                 helper.make_node("Softmax", ["turned"], ["soft"]),
                 helper.make_node("Log", ["soft"], ["y"], name="last")]
        return model(nodes, [("x", [2, 3, 4])], ["y"], [("w", np.eye(4, dtype=np.float32))])

    def test_names_the_step(self):
        session = self.open(self.chain())
        x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
        self.assertFalse(np.isnan(session.run({"x": x})["y"]).any())
        huge = np.array([[3e38, 3e38], [3e38, -3e38]], np.float32)
        nodes = [helper.make_node("MatMul", ["x", "a"], ["wide"], name="grow"),
                 helper.make_node("MatMul", ["wide", "b"], ["y"], name="make")]
        net = self.open(model(nodes, [("x", ["n", 2])], ["y"], [("a", huge), ("b", huge)]))
        x = np.array([[1, 0], [2, 2], [0, 0]], np.float32)  # row 1: inf and 0, then inf - inf
        with np.errstate(all="ignore"):
            wide = x @ huge
            bad = np.argwhere(np.isnan(wide @ huge))
        self.assertFalse(np.isnan(wide).any())
        self.stops(net, {"x": x}, "NaN came of step", f"{len(bad)} of 6 elements of 'y' (3x2)",
                   f"the first at {list(map(int, bad[0]))}", "nothing that it read held any", "(MatMul 'make')")
        self.assertFalse(np.isnan(net.run({"x": x[2:]})["y"]).any())  # the next run works

    def test_infinity(self):
        nodes = [helper.make_node("Exp", ["x"], ["big"], name="exp"), helper.make_node("MatMul", ["big", "w"], ["y"])]
        data = model(nodes, [("x", [1, 2])], ["y"], [("w", np.eye(2, dtype=np.float32))])
        x = np.array([[1, 200]], np.float32)
        self.mode("inf")
        self.stops(self.open(data), {"x": x}, "NaN or infinity came of", "1 of 2 elements of 'big'", "[0, 1]")
        self.mode("1")
        self.stops(self.open(data), {"x": x}, "'y'")  # 0 times infinity

    def test_what_passes_through_is_no_fault(self):
        session = self.open(self.chain())
        x = np.ones((2, 3, 4), np.float32)
        x[1, 2, 3] = np.nan
        y = session.run({"x": x})["y"]
        self.assertTrue(np.isnan(y[1]).any() and not np.isnan(y[0]).any())
        weight = np.eye(4, dtype=np.float32)
        weight[0, 0] = np.nan
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
        session = self.open(model(nodes, [("x", [3, 4])], ["y"], [("w", weight)]))
        self.assertTrue(np.isnan(session.run({"x": x[0]})["y"]).any())

    def test_a_group_is_named(self):
        nodes = [helper.make_node("Sub", ["x", "c"], ["d"], name="sub"), helper.make_node("Sqrt", ["d"], ["s"]),
                 helper.make_node("Mul", ["s", "s"], ["y"], name="end")]
        session = self.open(model(nodes, [("x", [5])], ["y"], [("c", np.float32([1]))]))
        self.stops(session, {"x": np.float32([1, 2, 3, 0, 1])}, "1 of 5 elements of 'y' (5), the first at [3]",
                   "the step is Sub + Sqrt + Mul", "values between are in no memory")

    def test_types(self):
        for dtype, kind in TYPES.items():
            nodes = [helper.make_node("Concat", ["x", "x"], ["both"], axis=1),
                     helper.make_node("Log", ["both"], ["y"], name="log")]
            try:
                session = self.open(model(nodes, [("x", [2, 3])], ["y"], kind=kind))
                self.assertEqual(session.run({"x": np.ones((2, 3), dtype)})["y"].shape, (2, 6))
            except Failure as failure:
                self.assertEqual((dtype, failure.status), (np.float64, "UNIMPLEMENTED"))  # a device without it
                continue
            x = np.ones((2, 3), dtype)
            x[1, 1] = -1
            self.stops(session, {"x": x}, "2 of 12 elements of 'y' (2x6), the first at [1, 1]")

    def test_inside_a_loop(self):
        body = helper.make_graph(
            [helper.make_node("Identity", ["condition"], ["go"]), helper.make_node("Sub", ["v", "one"], ["less"]),
             helper.make_node("Sqrt", ["less"], ["next"], name="root")], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
             helper.make_tensor_value_info("v", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("next", TensorProto.FLOAT, [2])],
            [numpy_helper.from_array(np.float32(1), "one")])
        nodes = [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)]
        data = model(nodes, [("x", [2])], ["y"], [("count", np.int64(3))])
        session = self.open(data)
        self.assertFalse(np.isnan(session.run({"x": np.float32([90, 100])})["y"]).any())
        self.stops(session, {"x": np.float32([90, 4])}, "1 of 2 elements of 'next' (2), the first at [1]")

    def test_off(self):
        for value in ("", "0"):
            self.mode(value)
            session = self.open(self.chain())
            session.run({"x": np.full((2, 3, 4), np.inf, np.float32)})


if __name__ == "__main__":
    unittest.main()
