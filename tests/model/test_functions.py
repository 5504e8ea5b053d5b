# SPDX-License-Identifier: Apache-2.0
"""Functions inside a model: put where they are called, with onnxruntime as the reference; broken ones are refused."""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import AttributeProto, TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), opsets=OPSETS, **more):
    return helper.make_function("local", name, inputs, outputs, nodes, opsets, list(attributes), list(defaults), **more)


def call(name, inputs, outputs, **attributes):
    return helper.make_node(name, inputs, outputs, domain="local", **attributes)


def refer(node, name, to, kind):
    node.attribute.append(AttributeProto(name=name, ref_attr_name=to, type=kind))
    return node


def model(nodes, functions, outputs=("y",), shape=(3, 4)):
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], ends)
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=10).SerializeToString()


class FunctionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.x = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def agree(self, nodes, functions, outputs=("y",)):
        data = model(nodes, functions, outputs)
        reference = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        expected = reference.run(list(outputs), {"x": self.x})
        session = runnel.Session(self.device, data)
        try:
            got = session.run({"x": self.x})
        finally:
            session.close()
        for name, value in zip(outputs, expected):
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-5)
        return got

    def refuse(self, nodes, functions, text, outputs=("y",)):
        with self.assertRaisesRegex(runnel.Failure, text):
            runnel.Session(self.device, model(nodes, functions, outputs))

    def test_calls(self):
        """Names inside are those outside, the same function twice, nested calls, and one that calls between others."""
        twice = function("Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])])
        nested = function("Nested", ["a", "b"], ["y", "t"],
                          [call("Twice", ["a"], ["t"]), helper.make_node("Mul", ["t", "b"], ["x"]),
                           call("Twice", ["x"], ["y"])])
        self.agree([call("Twice", ["x"], ["t"]), call("Nested", ["t", "x"], ["u", "v"]),
                    helper.make_node("Sub", ["u", "v"], ["w"]), call("Twice", ["w"], ["y"])], [nested, twice],
                   ("y", "u"))

    def test_attributes(self):
        """Given, by default, through two levels, and left out where the operator has a default of its own."""
        leaky = function("Leaky", ["x"], ["y"], [refer(helper.make_node("LeakyRelu", ["x"], ["y"]), "alpha", "slope",
                                                       AttributeProto.FLOAT)],
                         defaults=[helper.make_attribute("slope", 0.25)])
        outer = function("Outer", ["x"], ["y"], [refer(call("Leaky", ["x"], ["y"]), "slope", "s", AttributeProto.FLOAT)],
                         attributes=["s"])
        turn = function("Turn", ["x"], ["y"], [refer(helper.make_node("Transpose", ["x"], ["y"]), "perm", "p",
                                                     AttributeProto.INTS)], attributes=["p"])
        value = helper.make_tensor("v", TensorProto.FLOAT, [4], [1, 2, 3, 4])
        add = function("AddValue", ["x"], ["y"],
                       [refer(helper.make_node("Constant", [], ["c"]), "value", "v", AttributeProto.TENSOR),
                        helper.make_node("Add", ["x", "c"], ["y"])], attributes=["v"])
        self.agree([call("Leaky", ["x"], ["a"]), call("Leaky", ["a"], ["b"], slope=0.5), call("Outer", ["b"], ["c"], s=2.0),
                    call("AddValue", ["c"], ["d"], v=value), call("Turn", ["d"], ["y"], p=[1, 0])],
                   [leaky, outer, turn, add])
        got = runnel.Session(self.device, model([call("Turn", ["x"], ["y"])], [turn])).run({"x": self.x})
        np.testing.assert_array_equal(got["y"], self.x.T)

    def test_optional(self):
        """Inputs and outputs that the call leaves out; a function that ends in several outputs."""
        clip = function("Bound", ["x", "low", "high"], ["y", "unused"],
                        [helper.make_node("Clip", ["x", "low", "high"], ["y"]),
                         helper.make_node("Neg", ["x"], ["unused"])])
        nodes = [helper.make_node("Constant", [], ["high"], value_float=0.5), call("Bound", ["x", "", "high"], ["y"])]
        got = runnel.Session(self.device, model(nodes, [clip])).run({"x": self.x})
        np.testing.assert_array_equal(got["y"], np.minimum(self.x, 0.5))
        got = runnel.Session(self.device, model([call("Bound", ["x"], ["", "y"])], [clip])).run({"x": self.x})
        np.testing.assert_array_equal(got["y"], -self.x)

    def test_opset_of_its_own(self):
        """ReduceSum's axes are an attribute up to opset 12, whatever the model imports."""
        old = function("Sum", ["x"], ["y"], [helper.make_node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)],
                       opsets=[helper.make_opsetid("", 12)])
        got = runnel.Session(self.device, model([call("Sum", ["x"], ["y"])], [old])).run({"x": self.x})
        np.testing.assert_allclose(got["y"], self.x.sum(1), rtol=1e-5, atol=1e-6)

    def test_subgraphs(self):
        """A function with a branch that captures its values and attributes; a branch that calls a function."""
        def ends(*names):
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]

        twice = function("Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])])
        slope = refer(helper.make_node("LeakyRelu", ["t"], ["z"]), "alpha", "slope", AttributeProto.FLOAT)
        then = helper.make_graph([slope], "then", [], ends("z"))
        other = helper.make_graph([call("Twice", ["a"], ["s"]), helper.make_node("Sub", ["s", "t"], ["z"])], "other", [],
                                  ends("z"))
        pick = function("Pick", ["a", "c"], ["y"],
                        [helper.make_node("Neg", ["a"], ["t"]),
                         helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], attributes=["slope"])
        nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Abs", ["s"], ["m"]),
                 helper.make_node("Less", ["m", "s"], ["c"]), helper.make_node("Not", ["c"], ["d"]),
                 call("Pick", ["x", "c"], ["u"], slope=0.5), call("Pick", ["u", "d"], ["y"], slope=0.25)]
        self.agree(nodes, [pick, twice], ("y", "u"))
        inner = helper.make_graph([call("Pick", ["x", "c"], ["z"], slope=2.0)], "inner", [], ends("z"))
        outer = helper.make_graph([call("Pick", ["x", "d"], ["z"], slope=3.0)], "outer", [], ends("z"))
        nodes = nodes[:4] + [helper.make_node("If", ["d"], ["y"], then_branch=inner, else_branch=outer)]
        self.agree(nodes, [pick, twice])

    def test_any_order(self):
        """Nodes in a function, and calls, before what they read."""
        late = function("Late", ["x"], ["y"], [helper.make_node("Neg", ["t"], ["y"]), helper.make_node("Abs", ["x"], ["t"])])
        got = runnel.Session(self.device, model([call("Late", ["z"], ["y"]), helper.make_node("Neg", ["x"], ["z"])], [late]))
        np.testing.assert_array_equal(got.run({"x": self.x})["y"], -np.abs(self.x))

    def test_overload(self):
        first = function("F", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"])], overload="abs")
        second = function("F", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], overload="neg")
        nodes = [helper.make_node("F", ["x"], ["y"], domain="local", overload="neg")]
        got = runnel.Session(self.device, model(nodes, [first, second])).run({"x": self.x})
        np.testing.assert_array_equal(got["y"], -self.x)
        nodes = [helper.make_node("F", ["x"], ["y"], domain="local", overload="exp")]
        self.refuse(nodes, [first, second], "it names an overload of a function that the model does not have")

    def test_recursion(self):
        itself = function("F", ["x"], ["y"], [call("F", ["x"], ["y"])])
        self.refuse([call("F", ["x"], ["y"])], [itself], "function 'F' of .* calls itself")
        a = function("A", ["x"], ["y"], [call("B", ["x"], ["y"])])
        b = function("B", ["x"], ["y"], [call("A", ["x"], ["y"])])
        self.refuse([call("A", ["x"], ["y"])], [a, b], "calls itself")
        branch = helper.make_graph([call("F", ["x"], ["z"])], "b", [],
                                   [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
        nodes = [helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True])),
                 helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
        self.refuse([call("F", ["x"], ["y"])], [function("F", ["x"], ["y"], nodes)], "calls itself")

    def test_bombs(self):
        """Each function calls the one before many times: refused by counting, not by memory; so are long chains."""
        functions = [function("F0", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"])])]
        for i in range(1, 12):
            nodes = [call(f"F{i - 1}", ["x" if k == 0 else f"t{k}"], ["y" if k == 9 else f"t{k + 1}"]) for k in range(10)]
            functions.append(function(f"F{i}", ["x"], ["y"], nodes))
        self.refuse([call("F11", ["x"], ["y"])], functions, "more than .* with those of the functions that it calls")
        chain = [function(f"C{i}", ["x"], ["y"], [call(f"C{i + 1}", ["x"], ["y"])]) for i in range(100)]
        chain.append(function("C100", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"])]))
        self.refuse([call("C0", ["x"], ["y"])], chain, "call each other more than 64 deep")
        calls = [call(f"C{100 - i}", ["x"], [f"u{i}"]) for i in range(100)] + [call("C0", ["x"], ["y"])]
        self.refuse(calls, chain, "call each other more than 64 deep")

    def test_broken(self):
        twice = function("Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])])
        self.refuse([call("Twice", ["x", "x"], ["y"])], [twice], "a call of function 'Twice' has more than its 1 inputs")
        self.refuse([call("Twice", ["x"], ["y", "z"])], [twice], "has more than its 1 outputs")
        self.refuse([call("Twice", ["x"], ["y"])], [twice, twice], "two functions named 'Twice'")
        none = function("None", ["x"], ["y", "z"], [helper.make_node("Abs", ["x"], ["y"])])
        self.refuse([call("None", ["x"], ["a", "y"])], [none], "nothing in function 'None' produces its output 'z'")
        same = function("Same", ["x"], ["x"], [])
        self.refuse([call("Same", ["x"], ["y"])], [same], "two parameters named 'x'")
        reads = function("Reads", ["x"], ["y"], [helper.make_node("Abs", ["elsewhere"], ["y"])])
        self.refuse([call("Reads", ["x"], ["y"])], [reads], "reads 'Reads#1/elsewhere', which nothing in the graph produces")
        unknown = function("Unknown", ["x"], ["y"], [refer(helper.make_node("LeakyRelu", ["x"], ["y"]), "alpha", "slope",
                                                           AttributeProto.FLOAT)])
        self.refuse([call("Unknown", ["x"], ["y"])], [unknown], "refers to 'slope', which function 'Unknown' does not have")
        needed = function("Needed", ["x"], ["y"], [refer(helper.make_node("Concat", ["x"], ["y"]), "axis", "a",
                                                         AttributeProto.INT)], attributes=["a"])
        self.refuse([call("Needed", ["x"], ["y"])], [needed], "axis")
        double = function("Double", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])])
        self.refuse([call("Double", ["x"], ["y"])], [double], "'y' of a node's output is taken")
        missing = function("Missing", ["x"], ["y"], [helper.make_node("NoSuchOperator", ["x"], ["y"])])
        self.refuse([call("Missing", ["x"], ["y"])], [missing], "NoSuchOperator of opset 18 is not supported")


if __name__ == "__main__":
    unittest.main(verbosity=2)
