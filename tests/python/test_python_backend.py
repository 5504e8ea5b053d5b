# SPDX-License-Identifier: Apache-2.0
"""runnel.onnx_backend by itself; tests/conformance runs ONNX's suite through it."""

import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from package import DEVICE, model, relu
import runnel  # noqa: E402
from runnel import onnx_backend  # noqa: E402


class BackendTest(unittest.TestCase):
    def test_model(self):
        x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
        rep = onnx_backend.prepare(relu(), DEVICE)
        for inputs in ([x], x, {"x": x}, [numpy_helper.from_array(x)]):
            got = rep.run(inputs)
            np.testing.assert_array_equal(got[0], np.maximum(x, 0))
            np.testing.assert_array_equal(got["y"], np.maximum(x, 0))
        np.testing.assert_array_equal(onnx_backend.run_model(relu(), [x], DEVICE)[0], np.maximum(x, 0))
        with self.assertRaises(runnel.InvalidArgument):
            rep.run([x, x])
        rep.session.close()

    def test_node(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        node = helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)
        a, b = onnx_backend.run_node(node, [x], DEVICE)
        np.testing.assert_array_equal(a, x[:, :2])
        np.testing.assert_array_equal(b, x[:, 2:])
        node = helper.make_node("Clip", ["x", "", "high"], ["y"])
        y, = onnx_backend.run_node(node, [x, np.float32(3)], DEVICE, opset_version=13)
        np.testing.assert_array_equal(y, np.minimum(x, 3))

    def test_what_it_says_of_itself(self):
        self.assertTrue(onnx_backend.is_compatible(relu()))
        unknown = model([helper.make_node("NoSuch", ["x"], ["y"])], {"x": (1, [2])}, {"y": (1, [2])})
        self.assertFalse(onnx_backend.is_compatible(unknown))
        self.assertFalse(onnx_backend.supports_device("no such device"))
        self.assertTrue(onnx_backend.supports_device(DEVICE or "cpu"))
        with self.assertRaises(onnx.checker.ValidationError):
            onnx_backend.prepare(unknown, DEVICE)

    def test_list_of_operators(self):
        rows = {(row.domain, row.op_type, row.since): row for row in runnel.get_operators()}
        self.assertEqual(rows["", "Add", 14].until, 28)
        self.assertIn("tensor(int8)", rows["", "Add", 14].types)
        self.assertNotIn("tensor(int8)", rows["", "Add", 7].types)


if __name__ == "__main__":
    unittest.main(verbosity=2)
