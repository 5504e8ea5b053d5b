# SPDX-License-Identifier: Apache-2.0
"""Quantised models as onnxruntime's quantiser writes them: computed on integers, within a step of what they say.

The reference is onnxruntime without optimisations, which runs each node by itself: integers to float32, the operator, and
back. Computing on the integers rounds once where that rounds several times, so that a result may be the next integer.
"""

import logging
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
onnxruntime.set_default_logger_severity(3)
logging.disable(logging.WARNING)  # the quantiser's advice


class Batches(CalibrationDataReader):
    """Three random inputs for the quantiser."""

    def __init__(self, shape):
        rng = np.random.default_rng(5)
        self.left = [{"x": rng.normal(size=shape).astype(np.float32)} for _ in range(3)]

    def get_next(self):
        return self.left.pop() if self.left else None


def make_model(nodes, weights, shape, outputs=("y",), opset=17):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def normal(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:], dtype=int) or 1)).astype(np.float32)


def network(rng):
    """Convolutions with and without a bias, a bounded one, a depthwise one, a residual sum, pools, a join, a product."""
    node = helper.make_node
    weights = {"w0": normal(rng, 19, 3, 3, 3), "b0": normal(rng, 19), "w1": normal(rng, 19, 19, 1, 1),
               "w2": normal(rng, 19, 1, 3, 3), "b2": normal(rng, 19), "w3": normal(rng, 10, 38), "b3": normal(rng, 10),
               "low": np.float32(0), "high": np.float32(6)}
    nodes = [node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]), node("Relu", ["c0"], ["r0"]),
             node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2]),
             node("Conv", ["p0", "w1"], ["c1"]), node("Add", ["c1", "p0"], ["a1"]), node("Relu", ["a1"], ["r1"]),
             node("Conv", ["r1", "w2", "b2"], ["c2"], group=19, pads=[1, 1, 1, 1]),
             node("Clip", ["c2", "low", "high"], ["r2"]), node("Concat", ["r1", "r2"], ["j"], axis=1),
             node("GlobalAveragePool", ["j"], ["g"]), node("Flatten", ["g"], ["f"]),
             node("Gemm", ["f", "w3", "b3"], ["y"], transB=1)]
    return make_model(nodes, weights, [2, 3, 13, 11])


def products(rng):
    """Two layers of a transformer's kind on matrices, and a product of two values."""
    node = helper.make_node
    weights = {"w0": normal(rng, 33, 70), "b0": normal(rng, 70), "w1": normal(rng, 70, 33), "b1": normal(rng, 33)}
    nodes = [node("MatMul", ["x", "w0"], ["m0"]), node("Add", ["m0", "b0"], ["a0"]), node("Relu", ["a0"], ["r0"]),
             node("MatMul", ["r0", "w1"], ["m1"]), node("Add", ["b1", "m1"], ["a1"]),
             node("Transpose", ["a1"], ["t"], perm=[0, 2, 1]), node("MatMul", ["a1", "t"], ["y"])]
    return make_model(nodes, weights, [2, 17, 33])


def onnxruntime_plain(model, x):
    """A node at a time."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def quantise(model, shape, **options):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "a.onnx"), os.path.join(folder, "b.onnx")
        onnx.save(onnx.shape_inference.infer_shapes(model), source)
        if shape:
            quantize_static(source, target, Batches(shape), quant_format=QuantFormat.QDQ, **options)
        else:
            quantize_dynamic(source, target, **options)
        return onnx.load(target).SerializeToString()


def between(op, shape, weight=None, bias=False, scales=(0.02, 0.03), zeros=(128, 128), dtype=np.uint8, **attributes):
    """x, quantised and back, through `op` with a weight of int8 and its scales by column, quantised: bytes."""
    rng = np.random.default_rng(3)
    node = helper.make_node
    arrays = {"sx": np.float32(scales[0]), "zx": dtype(zeros[0]), "sy": np.float32(scales[1]), "zy": dtype(zeros[1])}
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]), node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"])]
    inputs = ["xd"]
    if weight:
        axis = 0 if op == "Conv" or attributes.get("transB") else 1
        arrays["wq"] = rng.integers(-128, 128, weight).astype(np.int8)
        arrays["sw"] = rng.uniform(0.001, 0.01, weight[axis]).astype(np.float32)
        arrays["zw"] = np.zeros(weight[axis], np.int8)
        nodes.append(node("DequantizeLinear", ["wq", "sw", "zw"], ["wd"], axis=axis))
        inputs.append("wd")
    if bias:
        arrays["bq"] = rng.integers(-3000, 3000, weight[axis]).astype(np.int32)
        arrays["sb"] = arrays["sx"] * arrays["sw"]
        nodes.append(node("DequantizeLinear", ["bq", "sb"], ["bd"], axis=0))
        inputs.append("bd")
    if op in ("Add", "Mul", "Sum"):
        inputs.append("xd")
    nodes += [node(op, inputs, ["c"], **attributes), node("QuantizeLinear", ["c", "sy", "zy"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", 0, None)],
                              [numpy_helper.from_array(array, name) for name, array in arrays.items()])
    graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class QuantisedModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_model(self, model, x):
        session = runnel.Session(self.device, model)
        try:
            return next(iter(session.run({"x": x}).values()))
        finally:
            session.close()

    def merged(self, model):
        """The operators of the file that are part of others' steps, by the command that says so."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.onnx")
            with open(path, "wb") as file:
                file.write(model)
            build = os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release"))
            device = os.environ.get("RUNNEL_TEST_DEVICE", "0:0")
            done = subprocess.run([os.path.join(build, "runnel"), "info", path, "--device", device],
                                  capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines() if line.startswith("operator ")]
        return {row[1].rstrip(":") for row in rows if "within" in row}

    def check_layer(self, model, shape, operator):
        """Bytes are onnxruntime's but for those where the exact result is half way between two, within its roundings."""
        x = np.random.default_rng(11).normal(size=shape).astype(np.float32)
        got, expected = self.run_model(model, x), onnxruntime_plain(model, x)
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
        apart = np.abs(got.astype(int) - expected.astype(int))
        self.assertLessEqual(apart.max(), 1)
        self.assertLessEqual((apart > 0).mean(), 0.002)
        self.assertGreater(len(np.unique(expected)), 10)  # or else there is nothing to see
        self.assertIn(operator, self.merged(model))

    def test_convolutions(self):
        for options in ({}, {"bias": True, "pads": [1, 2, 0, 1], "strides": [2, 1]},
                        {"zeros": (3, 250), "dtype": np.uint8}, {"zeros": (-7, 11), "dtype": np.int8}):
            model = between("Conv", [2, 5, 9, 8], (7, 5, 3, 3), **options)
            self.check_layer(model, (2, 5, 9, 8), "Conv")
        self.check_layer(between("Conv", [1, 12, 9, 8], (12, 1, 3, 3), group=12), (1, 12, 9, 8), "Conv")

    def test_products(self):
        self.check_layer(between("MatMul", [3, 7, 33], (33, 21)), (3, 7, 33), "MatMul")
        self.check_layer(between("Gemm", [17, 33], (33, 21), bias=True), (17, 33), "Gemm")
        self.check_layer(between("Gemm", [17, 33], (21, 33), bias=True, transB=1), (17, 33), "Gemm")

    def test_others(self):
        shape = [2, 9, 11, 10]
        for op in ("Add", "Sum", "Mul", "Sigmoid", "LeakyRelu", "Concat"):
            options = {"axis": 1} if op == "Concat" else {}
            scales = (0.02, 0.004) if op == "Sigmoid" else (0.02, 0.05)
            zeros = (128, 0) if op == "Sigmoid" else (128, 128)
            self.check_layer(between(op, shape, scales=scales, zeros=zeros, **options), shape, op)
        self.check_layer(between("GlobalAveragePool", shape, scales=(0.02, 0.004)), shape, "GlobalAveragePool")
        self.check_layer(between("AveragePool", shape, kernel_shape=[2, 3]), shape, "AveragePool")

    def test_what_moves_values_moves_bytes(self):
        shape = [2, 9, 11, 10]
        for op, options in (("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 1, 1]}),
                            ("Transpose", {"perm": [2, 0, 3, 1]}), ("Flatten", {"axis": 2})):
            model = between(op, shape, scales=(0.02, 0.02), **options)
            x = np.random.default_rng(11).normal(size=shape).astype(np.float32)
            np.testing.assert_array_equal(self.run_model(model, x), onnxruntime_plain(model, x))
            if op == "MaxPool":  # the others have no step
                self.assertIn(op, self.merged(model))

    def test_what_cannot_be_integers_stays(self):
        """Another unit of the bias, another type, two readers: right all the same."""
        x = np.random.default_rng(11).normal(size=(2, 5, 9, 8)).astype(np.float32)
        given = onnx.load_from_string(between("Conv", [2, 5, 9, 8], (7, 5, 3, 3), bias=True))
        for tensor in given.graph.initializer:
            if tensor.name == "sb":
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), "sb"))
        second = onnx.load_from_string(between("Conv", [2, 5, 9, 8], (7, 5, 3, 3), bias=True))
        second.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, None))
        for model in (given, second):
            text = model.SerializeToString()
            apart = np.abs(self.run_model(text, x).astype(int) - onnxruntime_plain(text, x).astype(int))
            self.assertLessEqual(apart.max(), 1)
            self.assertLessEqual((apart > 0).mean(), 0.002)

    def check_network(self, model, shape, operators, **options):
        """As near to the network that was quantised as onnxruntime is."""
        rng = np.random.default_rng(12)
        whole, small = model.SerializeToString(), quantise(model, options.pop("calibrate", shape), **options)
        errors = np.zeros(2)
        for _ in range(4):
            x = rng.normal(size=shape).astype(np.float32)
            exact = onnxruntime_plain(whole, x)
            for i, result in enumerate((self.run_model(small, x), onnxruntime_plain(small, x))):
                errors[i] += np.square(result.astype(np.float64) - exact).sum()
        self.assertLessEqual(errors[0], 1.2 * errors[1])
        self.assertLessEqual(operators, self.merged(small))

    def test_network(self):
        operators = {"Conv", "Add", "Concat", "GlobalAveragePool", "Gemm"}
        for activation in (QuantType.QUInt8, QuantType.QInt8):
            self.check_network(network(np.random.default_rng(1)), (2, 3, 13, 11), operators, per_channel=True,
                               activation_type=activation, weight_type=QuantType.QInt8)

    def test_network_of_products(self):
        self.check_network(products(np.random.default_rng(2)), (2, 17, 33), {"MatMul"},
                           activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)

    def test_dynamic_products(self):
        self.check_network(products(np.random.default_rng(2)), (2, 17, 33), {"MatMulInteger"}, calibrate=None,
                           per_channel=True, weight_type=QuantType.QInt8)

    def test_what_dynamic_products_end_with(self):
        """A bias, GELU as exporters write it, and a residual sum, without steps of their own."""
        rng, node = np.random.default_rng(4), helper.make_node
        weights = {"w0": normal(rng, 35, 67).T.copy(), "b0": normal(rng, 35), "w1": normal(rng, 67, 35).T.copy(),
                   "b1": normal(rng, 67), "root": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5)}
        nodes = [node("MatMul", ["x", "w0"], ["m0"]), node("Add", ["b0", "m0"], ["a0"]),
                 node("Div", ["a0", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["f"]),
                 node("Mul", ["a0", "f"], ["g"]), node("Mul", ["g", "half"], ["h"]),
                 node("MatMul", ["h", "w1"], ["m1"]), node("Add", ["m1", "b1"], ["a1"]), node("Add", ["x", "a1"], ["y"])]
        self.check_network(make_model(nodes, weights, [2, 17, 67]), (2, 17, 67), {"MatMulInteger", "Erf", "Div"},
                           calibrate=None, per_channel=True, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    unittest.main()
