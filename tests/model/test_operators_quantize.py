# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear against formulas in float64, rounded as the specification says: all types, all
granularities, on the device and on the host."""

import itertools
import os
import sys
import unittest
import warnings

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

warnings.filterwarnings("ignore", category=RuntimeWarning)

TYPES = {code: np.dtype(t) for code, t in runnel.DTYPES.items()}
INTEGERS = {2: (0, 255), 3: (-128, 127), 4: (0, 65535), 5: (-32768, 32767), 21: (0, 15), 22: (-8, 7), 25: (0, 3),
            26: (-2, 1)}
FLOATS = [17, 18, 19, 20, 23]
E8M0 = 24
OPSET = 25


def wide(array):
    """As float64, of any type."""
    small = array.dtype in (TYPES[21], TYPES[22], TYPES[25], TYPES[26])
    return array.astype(np.int32).astype(np.float64) if small else array.astype(np.float64)


def through(values, code):
    return wide(values.astype(TYPES[code]))


def spread(scale, shape, axis, block):
    """A scale's elements for each element of the tensor."""
    scale = wide(scale)
    if scale.size == 1:
        return np.broadcast_to(scale.reshape(()), shape)
    if block:
        return np.repeat(scale, block, axis=axis).take(range(shape[axis]), axis=axis)
    dims = [1] * len(shape)
    dims[axis] = scale.size
    return np.broadcast_to(scale.reshape(dims), shape)


def quantized(x, scale, zero, code, axis=1, block=0, precision=None, saturate=True):
    precision = precision or helper.np_dtype_to_tensor_dtype(scale.dtype)
    precision = precision if precision in (1, 10, 16) else 1
    divisor = through(spread(scale, x.shape, axis, block).astype(np.float32), precision)
    dividend = through(wide(x).astype(np.float32), precision)
    quotient = through((dividend / divisor).astype(np.float32), precision)
    offset = 0 if zero is None else spread(zero, x.shape, axis, block)
    if code in INTEGERS:
        low, high = INTEGERS[code]
        return np.where(np.isnan(quotient), low, np.clip(np.rint(quotient) + offset, low, high))
    total = (quotient + offset).astype(np.float32)
    if saturate or code == 23:
        top = float(ml_dtypes.finfo(TYPES[code]).max)
        total = np.where(np.isnan(total), total, np.clip(total, -top, top))
    return wide(total.astype(TYPES[code]))


def dequantized(x, scale, zero, code, axis=1, block=0):
    offset = 0 if zero is None else spread(zero, x.shape, axis, block)
    difference = (wide(x) - offset).astype(np.float32).astype(np.float64)
    product = (difference * spread(scale, x.shape, axis, block)).astype(np.float32)
    return through(product, code)


def make(operator, feed, output, constant, opset=OPSET, **attributes):
    node = helper.make_node(operator, list(feed), ["y"], **attributes)
    code = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in feed.items()}
    graph = helper.make_graph(
        [node], "g", [] if constant else [helper.make_tensor_value_info(n, code[n], None) for n in feed],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(a, n) for n, a in feed.items()] if constant else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


class QuantizeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(5)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_model(self, model, feed):
        session = runnel.Session(self.device, model)
        try:
            return session.run(feed)["y"]
        finally:
            session.close()

    def check(self, operator, feed, output, expected, host_only=False, **attributes):
        for constant in (True,) if host_only else (True, False):
            model = make(operator, feed, output, constant, **attributes)
            got = self.run_model(model, {} if constant else feed)
            self.assertEqual(got.dtype, TYPES[output])
            self.assertEqual(got.shape, expected.shape)
            got = wide(got)
            wrong = ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
            where = np.argwhere(wrong)[:3].tolist()
            kinds = [f"{n} {a.dtype}{a.shape}" for n, a in feed.items()]
            self.assertFalse(wrong.any(), f"{operator} {kinds} {attributes} {'host' if constant else 'device'}: at {where}"
                                          f" {got[wrong][:3]} instead of {expected[wrong][:3]}")

    def numbers(self, shape, code=1):
        """Halves of the scale, ties, what saturates, and what is no number."""
        x = self.random.integers(-300, 300, shape) / 2.0
        flat = x.reshape(-1)
        edges = [np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0, 1e-40, 65504, 127.5, -128.5, 32767.5, 3.0000002]
        flat[: min(len(edges), flat.size)] = edges[: flat.size]
        return x.astype(np.float32).astype(TYPES[code])

    def zero_of(self, code, shape):
        if code not in INTEGERS:
            return np.zeros(shape, np.int8).astype(TYPES[code])
        low, high = INTEGERS[code]
        return self.random.integers(low, high + 1, shape).astype(np.int32).astype(TYPES[code])

    def quantize(self, x, scale, zero, code, host_only=False, **attributes):
        names = {"axis": "axis", "block_size": "block", "precision": "precision", "saturate": "saturate"}
        known = {names[k]: v for k, v in attributes.items() if k in names}
        expected = quantized(x, scale, zero, code, **known)
        feed = {"x": x, "scale": scale} | ({"zero": zero} if zero is not None else {})
        if zero is None and code != 2:
            attributes["output_dtype"] = code
        self.check("QuantizeLinear", feed, code, expected, host_only, **attributes)

    def dequantize(self, x, scale, zero, output=None, host_only=False, **attributes):
        code = output or helper.np_dtype_to_tensor_dtype(scale.dtype)
        expected = dequantized(x, scale, zero, code, attributes.get("axis", 1), attributes.get("block_size", 0))
        feed = {"x": x, "scale": scale} | ({"zero": zero} if zero is not None else {})
        if output:
            attributes["output_dtype"] = output
        self.check("DequantizeLinear", feed, code, expected, host_only, **attributes)

    def test_quantize_to_all_types(self):
        for code in list(INTEGERS) + FLOATS:
            x, scale = self.numbers((3, 7)), np.array(0.5, np.float32)
            self.quantize(x, scale, self.zero_of(code, ()), code)
            self.quantize(x, np.array([0.25], np.float32), None, code, host_only=code not in (2, 22, 17))
            if code in FLOATS:
                self.quantize(x, scale, None, code, host_only=code != 19, saturate=0)

    def test_quantize_types_and_precisions(self):
        for x_code, scale_code in itertools.product((1, 10, 16, 6), (1, 10, 16, 24)):
            x = self.numbers((4, 5), x_code) if x_code != 6 else self.random.integers(-2**31, 2**31 - 1, (4, 5)).astype(
                np.int32)
            if x_code == 6:
                x[0] = [5, -5, 7, 100, -100]
            scale = np.array([2, 0.5, 1, 4, 0.25], np.float32).astype(TYPES[scale_code])
            self.quantize(x, scale, self.zero_of(3, (5,)), 3, host_only=(x_code, scale_code) not in ((10, 10), (6, 24)))
        for precision in (1, 10, 16):
            x, scale = self.numbers((2, 9)), np.array(0.3, np.float32)
            self.quantize(x, scale, self.zero_of(2, ()), 2, precision=precision)

    def test_quantize_granularities(self):
        for shape, axis in (((3, 4, 5), 0), ((3, 4, 5), 1), ((3, 4, 5), -1), ((6,), 0), ((2, 3, 1, 4, 2), 3)):
            scale = (self.random.integers(1, 9, shape[axis]) / 4).astype(np.float32)
            self.quantize(self.numbers(shape), scale, self.zero_of(3, scale.shape), 3, axis=axis)
        for shape, axis, block in (((3, 8), 1, 4), ((3, 8), 1, 3), ((7, 2, 3), 0, 3), ((2, 5, 3), -2, 2), ((4, 5), 1, 9),
                                   ((4, 5), 0, 1), ((1, 2, 1, 2, 1, 2, 5, 2), 6, 2)):
            sizes = list(shape)
            sizes[axis] = -(-shape[axis] // block)
            scale = (self.random.integers(1, 9, sizes) / 4).astype(np.float32)
            self.quantize(self.numbers(shape), scale, self.zero_of(3, sizes), 3, axis=axis, block_size=block)

    def test_dequantize_from_all_types(self):
        for code in list(INTEGERS) + FLOATS:
            if code in INTEGERS:
                low, high = INTEGERS[code]
                x = self.random.integers(low, high + 1, (3, 9)).astype(np.int32).astype(TYPES[code])
            else:
                x = (self.random.integers(0, 256 if code != 23 else 16, (3, 9))).astype(np.uint8).view(TYPES[code])
            scale = np.array([0.1, 3, 1e-3, -2, 0, np.inf, np.nan, 1e30, 7], np.float32)
            self.dequantize(x, scale, self.zero_of(code, (9,)))
            self.dequantize(x, np.array(0.3, np.float16), None, host_only=code not in (22, 19))
        x = np.array([[-2**31, 2**31 - 1, 16777217, -16777219, 0]], np.int32)
        self.dequantize(x, np.array(0.5, np.float32), np.array(0, np.int32))
        self.dequantize(x, np.array(0.5, np.float32), None)

    def test_dequantize_granularities_and_outputs(self):
        for shape, axis, block in (((3, 8), 1, 4), ((3, 8), 1, 3), ((7, 2, 3), 0, 3), ((4, 5), 1, 9)):
            sizes = list(shape)
            sizes[axis] = -(-shape[axis] // block)
            x = self.random.integers(-8, 8, shape).astype(np.int32).astype(TYPES[22])
            scale = self.random.standard_normal(sizes).astype(np.float32)
            self.dequantize(x, scale, self.zero_of(22, sizes), axis=axis, block_size=block)
        x = self.random.integers(0, 16, (3, 4)).astype(np.uint8).view(TYPES[23])
        for scale_code, output in ((1, 10), (10, 1), (16, None), (24, 16), (24, 1)):
            scale = np.array([[2, 0.5], [1, 4], [8, 16]], np.float32).astype(TYPES[scale_code])
            self.dequantize(x, scale, None, output, host_only=scale_code == 10, axis=1, block_size=2)

    def test_strided_and_empty(self):
        nodes = [helper.make_node("Transpose", ["x"], ["t"]),
                 helper.make_node("QuantizeLinear", ["t", "scale"], ["q"], axis=0, output_dtype=22),
                 helper.make_node("DequantizeLinear", ["q", "scale"], ["d"], axis=0),
                 helper.make_node("Concat", ["d", "t"], ["y"], axis=1)]
        info = helper.make_tensor_value_info
        for columns in (4, 0):
            graph = helper.make_graph(nodes, "g", [info("x", 1, [None, 3]), info("scale", 1, [3])], [info("y", 1, None)])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
            x = (self.random.integers(-40, 40, (columns, 3)) / 4).astype(np.float32)
            scale = np.array([0.5, 1, 2], np.float32)
            got = self.run_model(model.SerializeToString(), {"x": x, "scale": scale})
            steps = np.clip(np.rint(x.T / scale[:, None]), -8, 7) * scale[:, None]
            np.testing.assert_array_equal(got, np.concatenate([steps, x.T], axis=1))

    def test_old_opsets(self):
        x, scale, zero = self.numbers((2, 3)), np.array(0.5, np.float32), np.array(7, np.uint8)
        q = np.array([[1, 2, 3]], np.uint8)
        for opset in (10, 13, 19, 21, 23):
            self.check("QuantizeLinear", {"x": x, "scale": scale, "zero": zero}, 2, quantized(x, scale, zero, 2),
                       opset=opset)
            self.check("DequantizeLinear", {"x": q, "scale": scale, "zero": zero}, 1, dequantized(q, scale, zero, 1),
                       opset=opset)
        axis = np.array([1, 2, 4], np.float32)
        self.check("QuantizeLinear", {"x": x, "scale": axis}, 2, quantized(x, axis, None, 2), opset=13)

    def refuse(self, words, operator, feed, opset=OPSET, **attributes):
        with self.assertRaisesRegex(runnel.Failure, words):
            self.run_model(make(operator, feed, 2, False, opset=opset, **attributes), feed)

    def test_refusals(self):
        x, scale = np.zeros((2, 3), np.float32), np.ones(3, np.float32)
        self.refuse("shape 4.*2x3", "QuantizeLinear", {"x": x, "scale": np.ones(4, np.float32)})
        self.refuse("must be one element", "QuantizeLinear", {"x": x, "scale": scale}, opset=10)
        self.refuse("axis 5", "QuantizeLinear", {"x": x, "scale": scale}, axis=5)
        self.refuse("block_size", "QuantizeLinear", {"x": x, "scale": scale}, block_size=-1)
        self.refuse("scale .* 2x3", "QuantizeLinear", {"x": x, "scale": np.ones((2, 3), np.float32)}, block_size=2)
        self.refuse("zero point 2", "QuantizeLinear", {"x": x, "scale": scale, "zero": np.zeros(2, np.uint8)})
        self.refuse("output_dtype", "QuantizeLinear", {"x": x, "scale": scale, "zero": np.zeros(3, np.uint8)},
                    output_dtype=3)
        self.refuse("ONNX type 1 ", "QuantizeLinear", {"x": x, "scale": scale}, output_dtype=1)
        self.refuse("ONNX type 11", "QuantizeLinear", {"x": x, "scale": scale}, precision=11)
        self.refuse("int8", "DequantizeLinear", {"x": x.astype(np.uint8), "scale": scale, "zero": np.zeros(3, np.int8)})
        self.refuse("ONNX type 2", "DequantizeLinear", {"x": x.astype(np.uint8), "scale": scale}, output_dtype=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
