# SPDX-License-Identifier: Apache-2.0
"""Broadcasting as opset 6 says it, which becomes that of opset 7. ONNX's PyTorch suites cover the rest."""

import os
import sys
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

A = np.arange(-60, 60, dtype=np.float32).reshape(2, 3, 4, 5)


class Opset6Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, b, is_constant, first="a", op_type="Sub", **attributes):
        """op(a, b), or of Abs(a), whose rank the file does not give."""
        info = helper.make_tensor_value_info
        nodes = [helper.make_node("Abs", ["a"], ["positive"]), helper.make_node(op_type, [first, "b"], ["y"], **attributes)]
        inputs = [info("a", TensorProto.FLOAT, A.shape)]
        if not is_constant:
            inputs.append(info("b", TensorProto.FLOAT, b.shape))
        graph = helper.make_graph(nodes, "old", inputs, [info("y", TensorProto.FLOAT, A.shape)],
                                  [numpy_helper.from_array(b, "b")] if is_constant else [])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)])
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            return session.run({"a": A} if is_constant else {"a": A, "b": b})["y"]
        finally:
            session.close()

    def test_axes(self):
        for is_constant in (True, False):
            for axis, shape, full in ((0, (2,), (2, 1, 1, 1)), (1, (3,), (3, 1, 1)), (1, (3, 4), (3, 4, 1)),
                                      (-2, (4,), (4, 1)), (3, (5,), (5,)), (0, A.shape, A.shape)):
                b = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
                got = self.run_node(b, is_constant, axis=axis, broadcast=1)
                np.testing.assert_array_equal(got, A - b.reshape(full))

    def test_aligned_at_the_end(self):
        b = np.arange(20, dtype=np.float32).reshape(4, 5)
        np.testing.assert_array_equal(self.run_node(b, False, broadcast=1), A - b)

    def test_prelu(self):
        slope = np.array([0.5, 2, 3], np.float32)
        got = self.run_node(slope, True, op_type="PRelu")
        np.testing.assert_array_equal(got, np.where(A < 0, A * slope.reshape(3, 1, 1), A))
        np.testing.assert_array_equal(self.run_node(slope[:1], True, op_type="PRelu"), np.where(A < 0, A * 0.5, A))

    def test_concat_without_an_axis(self):
        info = helper.make_tensor_value_info
        for axis, text in (({}, "no 'axis'"), ({"axis": 1}, None)):
            node = helper.make_node("Concat", ["a", "a"], ["y"], **axis)
            graph = helper.make_graph([node], "old", [info("a", TensorProto.FLOAT, A.shape)],
                                      [info("y", TensorProto.FLOAT, [2, 6, 4, 5])])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 1)]).SerializeToString()
            if text:
                with self.assertRaisesRegex(runnel.Failure, text):
                    runnel.Session(self.device, model)
                continue
            session = runnel.Session(self.device, model)
            np.testing.assert_array_equal(session.run({"a": A})["y"], np.concatenate([A, A], axis=1))
            session.close()

    def test_refusals(self):
        b = np.zeros(3, np.float32)
        for text, arguments in (("whose rank the file gives", {"first": "positive", "axis": 1}),
                                ("along 'axis'", {"axis": 4}), ("along 'axis'", {"axis": -5})):
            with self.assertRaises(runnel.Failure) as caught:
                self.run_node(b, False, broadcast=1, **arguments)
            self.assertEqual(caught.exception.status, "UNIMPLEMENTED")
            self.assertIn(text, caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
