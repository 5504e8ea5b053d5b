# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators against numpy in float64 over all of float's range, and at the edges of the integer types."""

import os
import sys
import unittest

import numpy as np
from onnx import helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

OPSET = 28
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def mish(x):
    """x * tanh(log(1 + e^x)), by z = 1 + e^x: (z^2 - 1) / (z^2 + 1)."""
    e = np.exp(np.minimum(x, 40))
    return np.where(x > 40, x, x * (e * (e + 2) / (e * (e + 2) + 2)))


ALPHA = float(np.float32(1.7))
# Operator: attributes, reference, units in the last place of float32 that OpenCL's functions or their combination allow.
UNARY = {
    "Acos": ({}, np.arccos, 4), "Acosh": ({}, np.arccosh, 4), "Asin": ({}, np.arcsin, 4), "Asinh": ({}, np.arcsinh, 4),
    "Atan": ({}, np.arctan, 5), "Atanh": ({}, np.arctanh, 5), "Cosh": ({}, np.cosh, 4), "Sinh": ({}, np.sinh, 4),
    "Tan": ({}, np.tan, 5), "Mish": ({}, mish, 6),
    "Celu": ({"alpha": ALPHA}, lambda x: np.where(x < 0, ALPHA * np.expm1(x / ALPHA), x), 4),
    "Swish": ({"alpha": ALPHA}, lambda x: x * sigmoid(ALPHA * x), 6),
    "ThresholdedRelu": ({"alpha": ALPHA}, lambda x: np.where(x > ALPHA, x, 0), 1),
    "Shrink": ({"bias": 0.25, "lambd": ALPHA},
               lambda x: np.where(x < -ALPHA, x + 0.25, np.where(x > ALPHA, x - 0.25, 0)), 1),
}


def all_floats(count=60000):
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.0**-149, -(2.0**-126), 3.4e38, -3.4e38, 0.5, 88.7, -88.7,
                        89.4, -104], np.float32)
    bits = np.linspace(0, 0xFFFFFFFF, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.linspace(-30, 30, count, dtype=np.float32)
    return np.concatenate([special, bits, near, near / 16])


class ElementwiseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_node(self, op_type, inputs, output_type=None, opset=OPSET, **attributes):
        names = [f"x{i}" for i in range(len(inputs))]
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for n, x in zip(names, inputs)]
        result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(output_type or inputs[0].dtype)),
                                               None)
        node = helper.make_node(op_type, names, ["y"], **attributes)
        model = helper.make_model(helper.make_graph([node], "g", infos, [result]),
                                  opset_imports=[helper.make_opsetid("", opset)])
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            return session.run(dict(zip(names, inputs)))["y"]
        finally:
            session.close()

    def check_units(self, name, x, got, exact, units):
        """The error in units of the last place. What is below the normal range may be flushed to 0, also where it is but a
        factor of the result."""
        info = np.finfo(x.dtype)
        exact = np.where(np.abs(exact) > float(info.max), np.copysign(np.inf, exact), exact)
        same = (got == exact.astype(x.dtype)) | (np.isnan(got) & np.isnan(exact))
        with np.errstate(all="ignore"):
            unit = np.maximum(np.exp2(np.floor(np.log2(np.abs(exact)))), float(info.tiny)) * float(info.eps)
            distance = np.abs(got.astype(np.float64) - exact)
        overflow = np.isinf(got) & (np.abs(exact) > float(info.max) * (1 - 8 * float(info.eps)))
        small = 128 * float(info.tiny) if x.dtype == np.float32 else 0
        flushed = (distance <= small) & (np.abs(exact) <= small)
        wrong = ~(same | (distance <= units * unit) | overflow | flushed)
        self.assertFalse(wrong.any(), f"{name}: {x[wrong][:5]} gave {got[wrong][:5]}, not {exact[wrong][:5]}")

    def test_whole_range(self):
        x = all_floats()
        for name, (attributes, reference, units) in UNARY.items():
            with self.subTest(name), np.errstate(all="ignore"):
                exact = reference(x.astype(np.float64))
                self.check_units(name, x, self.run_node(name, [x], **attributes), exact, units)

    def test_halves(self):
        x = np.arange(0, 65536, 7, dtype=np.uint16).view(np.float16)
        for name in ("Atan", "Sinh", "Mish", "Celu"):
            attributes, reference, _ = UNARY[name]
            with self.subTest(name), np.errstate(all="ignore"):
                self.check_units(name, x, self.run_node(name, [x], **attributes), reference(x.astype(np.float64)), 0.51)

    def test_swiglu(self):
        a, b = all_floats(3000), all_floats(3000)[::-1].copy()
        with np.errstate(all="ignore"):
            exact = a.astype(np.float64) * sigmoid(0.5 * a.astype(np.float64))
            ordinary = np.abs(exact) > 1e-35  # a product with what float32 flushes is no test
            exact = exact * b.astype(np.float64)
        keep = ordinary | np.isnan(exact)
        got = self.run_node("SwiGLU", [a, b], alpha=0.5)
        self.check_units("SwiGLU", a[keep], got[keep], exact[keep], 7)
        with self.assertRaises(runnel.Failure):
            self.run_node("SwiGLU", [a, b[:1]])

    def test_isinf(self):
        x = np.array([np.inf, -np.inf, np.nan, 0, 3.4e38, -1], np.float32)
        for positive in (0, 1):
            for negative in (0, 1):
                got = self.run_node("IsInf", [x], np.bool_, detect_positive=positive, detect_negative=negative)
                np.testing.assert_array_equal(got, np.array([positive, negative, 0, 0, 0, 0], bool))

    def test_bits(self):
        operators = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
        for dtype in INTEGERS:
            info = np.iinfo(dtype)
            a = np.array([[info.min], [info.max], [0], [1], [77]], dtype)
            b = np.array([info.max, info.min, 1, 0, 100, 5], dtype)
            for name, function in operators.items():
                np.testing.assert_array_equal(self.run_node(name, [a, b]), function(a, b), f"{name} of {dtype}")
            np.testing.assert_array_equal(self.run_node("BitwiseNot", [b]), ~b)

    def test_shifts(self):
        for dtype in INTEGERS:
            info = np.iinfo(dtype)
            x = np.array([[info.min], [info.max], [0], [1], [77], [info.max // 3]], dtype)
            y = np.array([0, 1, 7, 8, 15, 31, 32, 63, 64, 100, info.max] + ([-1] if info.min else []), dtype)
            for direction in ("LEFT", "RIGHT"):
                expected = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype)
                for i in np.ndindex(expected.shape):
                    value, by = int(x[i[0], 0]), int(y[i[1]])
                    everything = by < 0 or by >= info.bits
                    if direction == "RIGHT":
                        value = (-1 if value < 0 else 0) if everything else value >> by
                    else:
                        value = 0 if everything else (value << by) & ((1 << info.bits) - 1)
                    value &= (1 << info.bits) - 1
                    expected[i] = value - (1 << info.bits) if info.min and value > info.max else value
                got = self.run_node("BitShift", [x, y], direction=direction)
                np.testing.assert_array_equal(got, expected, f"{direction} of {dtype}")

    def test_logic_broadcasts(self):
        a, b = np.array([[True], [False]]), np.array([[[True, False, True]]] * 2)
        for name, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
            np.testing.assert_array_equal(self.run_node(name, [a, b], np.bool_), function(a, b))
        for shape in ((), (0, 3), (2, 3, 4, 5)):
            x = np.resize(np.array([True, False, True]), shape)
            np.testing.assert_array_equal(self.run_node("Not", [x]), ~x)

    def test_shrink_of_integers(self):
        for dtype in INTEGERS:
            info = np.iinfo(dtype)
            x = np.array([info.min, info.max, 0, 1, 2, 3, 5], dtype)
            got = self.run_node("Shrink", [x], bias=1.5, lambd=2.5)
            expected = []
            for value in x.tolist():  # towards zero, exactly
                twice = 2 * value + 3 if value < -2.5 else 2 * value - 3 if value > 2.5 else 0
                expected.append(-(-twice // 2) if twice < 0 else twice // 2)
            np.testing.assert_array_equal(got, np.array(expected, object).astype(dtype), str(dtype))


if __name__ == "__main__":
    unittest.main(verbosity=2)
