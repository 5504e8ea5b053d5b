# SPDX-License-Identifier: Apache-2.0
"""runnel compare: the values of a run beside another device's and a reference's."""

import os
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from command import CommandTest

# A Python that is wrong about one value: the outputs y and shape come first, then product and positive.
LIAR = """#!/bin/sh
"{python}" "$@" || exit $?
exec "{python}" -c "
import numpy, sys
path = sys.argv[1] + '/value_2.npy'
value = numpy.load(path)
value[0, 0] += 0.5
numpy.save(path, value)" "$3"
"""


class CompareValuesTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.python = os.environ.get("RUNNEL_TEST_PYTHON", "python3")
        weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], name="first"),
                 helper.make_node("Relu", ["product"], ["positive"], name="second"),
                 helper.make_node("Shape", ["positive"], ["shape"], name="third"),
                 helper.make_node("Neg", ["positive"], ["y"], name="fourth")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3]),
                                   helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
                                  [numpy_helper.from_array(weight, "w")])
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
        self.model = self.write("model.onnx", model.SerializeToString())

    def test_against_a_device(self):
        result = self.succeed("compare", self.model, "--against", "cpu")
        self.assertTrue(result.line("against device: "))
        self.assertEqual(result.line("values: "), "values: 4, beyond the bound: 0")
        self.assertEqual(result.line("  node 3"), "  node 3 (Neg 'fourth') y: equal, float32")

    def test_against_the_reference(self):
        result = self.succeed("compare", self.model, "--against", "reference", "--all", env={"RUNNEL_PYTHON": self.python})
        self.assertRegex(result.line("against "), r"^against onnxruntime [0-9.]+, without its optimisations$")
        self.assertEqual(result.line("values: "), "values: 4, beyond the bound: 0")
        for node in ("0 (MatMul 'first') product", "1 (Relu 'second') positive", "2 (Shape 'third') shape"):
            self.assertTrue(any(line.startswith(f"  node {node}: ") for line in result.lines), result.stdout)

    def test_differences_are_found(self):
        liar = self.write("liar", LIAR.format(python=self.python).encode())
        os.chmod(liar, 0o755)
        result = self.call("compare", self.model, "--against", "reference", env={"RUNNEL_PYTHON": liar})
        self.assertEqual(result.code, 0, result.stderr)  # the outputs are right
        self.assertEqual(result.line("values: "), "values: 4, beyond the bound: 1")
        first = result.lines[result.lines.index("first:") + 1]
        self.assertRegex(first, r"^  node 0 \(MatMul 'first'\) product: max abs 0\.5, .*; 1 of 6 beyond$")
        self.assertEqual(result.lines[result.lines.index("worst:") + 1], first)

    def test_wrong_outputs_are_a_failure(self):
        liar = self.write("liar", LIAR.replace("value_2", "value_0").format(python=self.python).encode())
        os.chmod(liar, 0o755)
        result = self.call("compare", self.model, "--against", "reference", env={"RUNNEL_PYTHON": liar})
        self.assertEqual((result.code, result.messages), (1, ["runnel: 1 of 2 outputs differ beyond the bound"]))

    def test_wrong_use(self):
        for arguments, text in (((), "--against is missing"), (("--against", "no such device"), "no such device"),
                                (("--against", ""), "the value is empty"), (("--top", "3"), "unknown option")):
            result = self.call("compare", self.model, *arguments)
            self.assertIn(result.code, (1, 2))
            self.assertIn(text, result.stderr)
        result = self.call("compare", self.model, "--against", "reference", env={"RUNNEL_PYTHON": "/nonexistent"})
        self.assertEqual(result.code, 1)
        self.assertIn("/nonexistent cannot be started", result.stderr)
        self.assertIn("--against", self.succeed("compare", "--help").stdout)

    def test_nothing_is_left_behind(self):
        os.mkdir(self.path("tmp"))
        self.succeed("compare", self.model, "--against", "reference",
                     env={"RUNNEL_PYTHON": self.python, "TMPDIR": self.path("tmp")})
        self.assertEqual([name for name in os.listdir(self.path("tmp")) if name.startswith("runnel")], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
