# SPDX-License-Identifier: Apache-2.0
"""Quantised products: against the specification's formulas in float64 and exact integers, and against onnxruntime."""

import os
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16,
         np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.int32): TensorProto.INT32}
BYTES = (np.uint8, np.int8)


def make_model(operator, inputs, outputs=("y",), domain="", opset=21, types=None, attribute_opset=None, **attributes):
    """inputs: {name: array, or None where it is left out}. attribute_opset: an attribute 'opset'."""
    if attribute_opset:
        attributes["opset"] = attribute_opset
    names = [name if array is not None else "" for name, array in inputs.items()]
    node = helper.make_node(operator, names, list(outputs), domain=domain, **attributes)
    given = [helper.make_tensor_value_info(name, TYPES[array.dtype], array.shape)
             for name, array in inputs.items() if array is not None]
    results = [helper.make_tensor_value_info(name, types[name] if types else 0, None) for name in outputs]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", given, results), opset_imports=imports,
                             ir_version=8).SerializeToString()


def with_constants(model, arrays):
    """These inputs as initialisers."""
    model = onnx.load_from_string(model)
    kept = [value for value in model.graph.input if value.name not in arrays]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model.SerializeToString()


def random_bytes(rng, dtype, shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def zero_point(rng, dtype, shape=()):
    """Often an end of the range."""
    info = np.iinfo(dtype)
    return rng.choice([info.min, info.max, 0, rng.integers(info.min, info.max)], shape).astype(dtype)


def wide(array):
    return array.astype(np.int64)


def quantise(values, zero, dtype):
    """Rounds, halves to even, and saturates."""
    info = np.iinfo(dtype)
    return np.clip(np.rint(values) + np.float64(zero), info.min, info.max).astype(dtype)


def convolve(x, w, pads, strides, dilations, groups):
    """Exact sums of products of int64; x is without its zero point, so padding is 0."""
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[spatial + i]) for i in range(spatial)])
    spans = [(w.shape[2 + i] - 1) * dilations[i] + 1 for i in range(spatial)]
    sizes = [(x.shape[2 + i] - spans[i]) // strides[i] + 1 for i in range(spatial)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    each_in, each_out = w.shape[1], w.shape[0] // groups
    for tap in np.ndindex(*w.shape[2:]):
        cut = [slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, sizes, strides)]
        pixels = x[(slice(None), slice(None), *cut)]
        for g in range(groups):
            part = pixels[:, g * each_in:(g + 1) * each_in]
            taps = w[(slice(g * each_out, (g + 1) * each_out), slice(None), *tap)]
            result[:, g * each_out:(g + 1) * each_out] += np.einsum("nc...,mc->nm...", part, taps)
    return result


class Quantised(unittest.TestCase):
    """What the tests have in common; test_operators_nbits.py's too."""

    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.rng = np.random.default_rng(42)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_session(self, model, inputs):
        session = runnel.Session(self.device, model)
        try:
            return session.run(inputs)
        finally:
            session.close()

    def run_runnel(self, model, inputs):
        """Also with all but the first input as constants, whose packing is another way to the same result."""
        given = {name: np.asarray(array) for name, array in inputs.items() if array is not None}
        results = self.run_session(model, given)
        first = next(iter(given))
        again = self.run_session(with_constants(model, {n: a for n, a in given.items() if n != first}),
                                 {first: given[first]})
        for name, array in results.items():
            np.testing.assert_array_equal(array, again[name])
        return results

    def run_onnxruntime(self, model, inputs):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        feed = {name: np.asarray(array) for name, array in inputs.items() if array is not None}
        return dict(zip(names, session.run(names, feed)))

    def compare_products(self, model, inputs, got, **tolerances):
        """With onnxruntime's y, which adds products of bytes in 16 bits, saturating, on processors without VNNI."""
        probe = {"a": np.full((1, 4), 255, np.uint8), "b": np.full((4, 1), 127, np.int8)}
        sums = self.run_onnxruntime(make_model("MatMulInteger", probe, types={"y": TensorProto.INT32}), probe)["y"]
        if sums[0, 0] == 4 * 255 * 127:
            np.testing.assert_allclose(got.astype(np.float64), self.run_onnxruntime(model, inputs)["y"], **tolerances)

    def check_bytes(self, got, scaled, zero):
        """got against quantise(scaled): exactly, but one apart where float32 cannot tell which integer is nearer."""
        expected = quantise(scaled, zero, got.dtype)
        self.assertEqual(got.shape, expected.shape)
        doubtful = np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) <= 4e-7 * np.maximum(np.abs(scaled), 1)
        apart = np.abs(wide(got) - wide(expected))
        self.assertTrue((apart <= np.where(doubtful, 1, 0)).all(), f"{(apart > 0).sum()} of {got.size} differ")


class QuantisedTest(Quantised):
    # ---- dynamic quantisation ----

    def test_dynamic_quantize_linear(self):
        cases = [np.array([0.0, 2.0, -3.0, -2.5, 1.34, 0.5], np.float32), np.zeros((2, 3), np.float32),
                 np.full((3,), 7.5, np.float32), np.full((1, 5), -7.5, np.float32), np.float32(3).reshape(()),
                 self.rng.standard_normal((3, 5, 7)).astype(np.float32) * 1e20,
                 self.rng.standard_normal((65, 33)).astype(np.float32),
                 np.array([3e38, -3e37], np.float32), self.rng.standard_normal((331, 211)).astype(np.float32)]
        for x in cases:
            model = make_model("DynamicQuantizeLinear", {"x": x}, ("y", "s", "z"),
                               types={"y": TensorProto.UINT8, "s": TensorProto.FLOAT, "z": TensorProto.UINT8})
            got = self.run_runnel(model, {"x": x})
            low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
            scale = np.float32(high - low if high != low else 1) / np.float32(255)
            zero = np.clip(np.rint(np.float32(0) - low / scale), 0, 255)
            self.assertEqual(got["s"], scale)
            self.assertEqual(got["z"], zero)
            np.testing.assert_array_equal(got["y"], quantise(x / scale, zero, np.uint8))
            if high == low:
                continue  # onnxruntime's scale of zeros is 1 and not the specification's 1 / 255
            for name, expected in self.run_onnxruntime(model, {"x": x}).items():
                np.testing.assert_array_equal(got[name], expected)

    # ---- integer products ----

    def test_matmul_integer(self):
        shapes = [((3, 5), (5, 7)), ((1, 300), (300, 1)), ((5,), (5, 3)), ((4, 5), (5,)), ((6,), (6,)),
                  ((2, 3, 4, 9), (3, 9, 5)), ((65, 130), (130, 67))]
        for a_shape, b_shape in shapes:
            for a_type in BYTES:
                for b_type in BYTES:
                    self.check_matmul_integer(a_shape, b_shape, a_type, b_type)

    def check_matmul_integer(self, a_shape, b_shape, a_type, b_type):
        a, b = random_bytes(self.rng, a_type, a_shape), random_bytes(self.rng, b_type, b_shape)
        rows, columns = (*a_shape[:-1], 1), (*b_shape[:-2], 1, b_shape[-1])
        for za_shape, zb_shape in [(None, None), ((), ()), (rows, columns), ((1,), (1,)), (None, b_shape[-1:])]:
            if len(b_shape) < 2 and zb_shape not in (None, (), (1,)) or len(a_shape) < 2 and za_shape == rows:
                continue
            za = None if za_shape is None else zero_point(self.rng, a_type, za_shape)
            zb = None if zb_shape is None else zero_point(self.rng, b_type, zb_shape)
            if len(a_shape) == 2 and za_shape == rows:
                za = za.reshape(-1)
            inputs = {"a": a, "b": b, "za": za, "zb": zb}
            model = make_model("MatMulInteger", inputs, types={"y": TensorProto.INT32})
            got = self.run_runnel(model, inputs)["y"]
            left = wide(a) - (0 if za is None else wide(za).reshape(rows) if za.size != 1 else wide(za))
            right = wide(b) - (0 if zb is None else wide(zb))
            np.testing.assert_array_equal(got, (left @ right).astype(np.int32))

    def test_qlinear_matmul(self):
        for a_type, b_type, y_type in [(t, u, v) for t in BYTES for u in BYTES for v in BYTES]:
            self.check_qlinear_matmul((33, 65), (65, 17), a_type, b_type, y_type, False, False)
            self.check_qlinear_matmul((2, 3, 8), (2, 8, 5), a_type, b_type, y_type, True, False)
            self.check_qlinear_matmul((4, 8), (8, 5), a_type, b_type, y_type, True, True)
            self.check_qlinear_matmul((9,), (9, 5), a_type, b_type, y_type, False, False)

    def check_qlinear_matmul(self, a_shape, b_shape, a_type, b_type, y_type, spread, y_spread):
        """`spread`: the factors' scales and zero points are one a row or column; y_spread: the result's, too."""
        rng = self.rng
        rows = (*a_shape[:-1], 1) if spread else ()
        columns = (*b_shape[:-2], 1, b_shape[-1]) if spread else ()
        y_rows = (*a_shape[:-1], 1) if y_spread else ()
        inputs = {
            "a": random_bytes(rng, a_type, a_shape),
            "a_scale": rng.uniform(0.01, 0.02, rows).astype(np.float32),
            "a_zero": zero_point(rng, a_type, rows),
            "b": random_bytes(rng, b_type, b_shape),
            "b_scale": rng.uniform(0.01, 0.02, columns).astype(np.float32),
            "b_zero": zero_point(rng, b_type, columns),
            "y_scale": rng.uniform(0.05, 0.2, y_rows).astype(np.float32),
            "y_zero": zero_point(rng, y_type, y_rows),
        }
        code = TensorProto.UINT8 if y_type == np.uint8 else TensorProto.INT8
        got = self.run_runnel(make_model("QLinearMatMul", inputs, types={"y": code}), inputs)["y"]
        sums = (wide(inputs["a"]) - inputs["a_zero"]) @ (wide(inputs["b"]) - inputs["b_zero"])
        scale = [inputs[name].astype(np.float64) for name in ("a_scale", "b_scale", "y_scale")]
        self.check_bytes(got, sums * (scale[0] * scale[1] / scale[2]), inputs["y_zero"])

    def test_half_scales(self):
        for dtype in (np.float16,):
            a, b = random_bytes(self.rng, np.int8, (5, 8)), random_bytes(self.rng, np.uint8, (8, 3))
            inputs = {"a": a, "as": np.array(0.5, dtype), "az": np.array(-3, np.int8), "b": b,
                      "bs": np.array(0.25, dtype), "bz": np.array(200, np.uint8), "ys": np.array(32, dtype),
                      "yz": np.array(100, np.uint8)}
            got = self.run_runnel(make_model("QLinearMatMul", inputs, types={"y": TensorProto.UINT8}), inputs)["y"]
            sums = (wide(a) + 3) @ (wide(b) - 200)
            np.testing.assert_array_equal(got, quantise(sums / 256, 100, np.uint8))

    def test_halves_go_to_even(self):
        """Sums of 1, 3, 5, … at a scale of a half lie between two integers each."""
        a = np.arange(1, 100, 2, dtype=np.uint8).reshape(-1, 1)
        inputs = {"a": a, "as": np.array(0.5, np.float32), "az": np.array(0, np.uint8),
                  "b": np.array([[1, -1]], np.int8), "bs": np.array(1, np.float32), "bz": np.array(0, np.int8),
                  "ys": np.array(1, np.float32), "yz": np.array(3, np.int8)}
        got = self.run_runnel(make_model("QLinearMatMul", inputs, types={"y": TensorProto.INT8}), inputs)["y"]
        np.testing.assert_array_equal(got, quantise(a * np.array([[0.5, -0.5]]), 3, np.int8))

    # ---- convolutions ----

    # Shape of x, channels of the result, kernel, pads, strides, dilations, groups.
    WINDOWS = [
        ((1, 3, 7, 9), 5, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
        ((2, 17, 5, 6), 33, (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), 1),
        ((2, 8, 7, 6), 4, (1, 1), (0, 0, 0, 0), (2, 3), (1, 1), 1),
        ((1, 8, 4, 4), 4, (1, 1), (1, 0, 0, 2), (1, 1), (1, 1), 1),
        ((1, 4, 11, 10), 6, (3, 2), (0, 2, 1, 0), (2, 1), (2, 3), 2),
        ((1, 6, 9, 8), 6, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 6),
        ((2, 19, 6, 7), 19, (3, 5), (1, 2, 0, 3), (2, 1), (1, 1), 19),
        ((2, 4, 13), 3, (5,), (2, 2), (2,), (1,), 1),
        ((1, 2, 5, 4, 6), 3, (2, 3, 2), (1, 0, 1, 0, 1, 0), (1, 2, 1), (1, 1, 2), 1),
        ((1, 4, 5, 4, 6), 4, (2, 1, 3), (0, 0, 1, 1, 0, 0), (1, 1, 2), (2, 1, 1), 2),
    ]

    def convolution(self, window, x_type, w_type):
        shape, channels, kernel, pads, strides, dilations, groups = window
        x = random_bytes(self.rng, x_type, shape)
        w = random_bytes(self.rng, w_type, (channels, shape[1] // groups, *kernel))
        return x, w, {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}

    def test_conv_integer(self):
        for i, window in enumerate(self.WINDOWS):
            for x_type, w_type in [(t, u) for t in BYTES for u in BYTES]:
                x, w, attributes = self.convolution(window, x_type, w_type)
                zx = None if i % 3 == 0 else zero_point(self.rng, x_type)
                zw = [None, zero_point(self.rng, w_type), zero_point(self.rng, w_type, len(w))][i % 3]
                inputs = {"x": x, "w": w, "zx": zx, "zw": zw}
                got = self.run_runnel(make_model("ConvInteger", inputs, types={"y": TensorProto.INT32}, **attributes),
                                      inputs)["y"]
                weights = wide(w) - (0 if zw is None else wide(zw).reshape(-1, *[1] * (w.ndim - 1)))
                expected = convolve(wide(x) - (0 if zx is None else int(zx)), weights, window[3], window[4],
                                    window[5], window[6])
                np.testing.assert_array_equal(got, expected)

    def test_qlinear_conv(self):
        for i, window in enumerate(self.WINDOWS):
            for x_type, w_type, y_type in [(t, u, v) for t in BYTES for u in BYTES for v in BYTES]:
                x, w, attributes = self.convolution(window, x_type, w_type)
                spread = len(w) if i % 2 else ()
                inputs = {"x": x, "xs": np.array(0.02, np.float32), "xz": zero_point(self.rng, x_type), "w": w,
                          "ws": self.rng.uniform(0.01, 0.03, spread).astype(np.float32),
                          "wz": zero_point(self.rng, w_type, spread), "ys": np.array(0.3, np.float32),
                          "yz": zero_point(self.rng, y_type),
                          "b": None if i % 3 == 0 else self.rng.integers(-9999, 9999, len(w)).astype(np.int32)}
                code = TYPES[np.dtype(y_type)]
                got = self.run_runnel(make_model("QLinearConv", inputs, types={"y": code}, **attributes), inputs)["y"]
                ones = [1] * (w.ndim - 2)
                wz, ws = wide(inputs["wz"]).reshape(-1, 1, *ones), np.float64(inputs["ws"]).reshape(-1, *ones)
                sums = convolve(wide(x) - int(inputs["xz"]), wide(w) - wz, window[3], window[4], window[5], window[6])
                sums = sums + (0 if inputs["b"] is None else wide(inputs["b"]).reshape(-1, *ones))
                self.check_bytes(got, sums * (np.float64(inputs["xs"]) * ws / np.float64(inputs["ys"])), inputs["yz"])

    def test_conv_auto_pad(self):
        for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            inputs = {"x": random_bytes(self.rng, np.uint8, (1, 3, 8, 7)),
                      "w": random_bytes(self.rng, np.uint8, (4, 3, 3, 2)), "zx": np.array(255, np.uint8)}
            model = make_model("ConvInteger", inputs, opset=10, types={"y": TensorProto.INT32}, auto_pad=auto_pad,
                               strides=(2, 1))
            np.testing.assert_array_equal(self.run_runnel(model, inputs)["y"],
                                          self.run_onnxruntime(model, inputs)["y"])

    # ---- com.microsoft's products ----

    def test_qgemm(self):
        for a_type, b_type in [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]:
            for quantised in (False, True):
                for trans_a, trans_b, alpha in [(0, 0, 1.0), (1, 1, 1.0), (0, 1, 0.5)]:
                    for bias_shape in (None, (7,), (1, 7), (5, 1)):
                        self.check_qgemm(a_type, b_type, quantised, trans_a, trans_b, alpha, bias_shape)

    def check_qgemm(self, a_type, b_type, quantised, trans_a, trans_b, alpha, bias_shape):
        rng = self.rng
        a, b = random_bytes(rng, a_type, (5, 33)), random_bytes(rng, b_type, (33, 7))
        inputs = {
            "a": a.T.copy() if trans_a else a,
            "a_scale": np.float32(0.0125).reshape(()),
            "a_zero": zero_point(rng, a_type),
            "b": b.T.copy() if trans_b else b,
            "b_scale": rng.uniform(0.01, 0.02, 7).astype(np.float32),
            "b_zero": zero_point(rng, b_type, 7),
            "c": None if bias_shape is None else rng.integers(-5000, 5000, bias_shape).astype(np.int32),
        }
        if quantised:
            inputs.update(y_scale=np.float32(0.07).reshape(()), y_zero=zero_point(rng, a_type))
        code = TYPES[np.dtype(a_type)] if quantised else TensorProto.FLOAT
        model = make_model("QGemm", inputs, domain="com.microsoft", types={"y": code}, transA=trans_a, transB=trans_b,
                           alpha=alpha)
        got = self.run_runnel(model, inputs)["y"]
        sums = (wide(a) - inputs["a_zero"]) @ (wide(b) - inputs["b_zero"])
        sums = sums + (0 if bias_shape is None else wide(inputs["c"]))
        scaled = sums * (alpha * 0.0125 * inputs["b_scale"].astype(np.float64))
        if quantised:
            self.check_bytes(got, scaled / 0.07, inputs["y_zero"])
        else:
            np.testing.assert_allclose(got, scaled, rtol=1e-6)
        if alpha == 1 and bias_shape in (None, (7,)):
            self.compare_products(model, inputs, got, rtol=1e-6, atol=1 if quantised else 0)

    def test_matmul_integer_to_float(self):
        for b_type in BYTES:
            inputs = {"a": random_bytes(self.rng, np.uint8, (2, 5, 19)), "b": random_bytes(self.rng, b_type, (19, 6)),
                      "as": np.float32(0.02).reshape(()), "bs": self.rng.uniform(0.1, 0.2, 6).astype(np.float32),
                      "az": np.uint8(255).reshape(()), "bz": zero_point(self.rng, b_type, 6),
                      "bias": self.rng.standard_normal(6).astype(np.float32)}
            model = make_model("MatMulIntegerToFloat", inputs, domain="com.microsoft", types={"y": TensorProto.FLOAT})
            got = self.run_runnel(model, inputs)["y"]
            sums = (wide(inputs["a"]) - 255) @ (wide(inputs["b"]) - inputs["bz"])
            expected = sums * (np.float64(inputs["as"]) * inputs["bs"]) + inputs["bias"]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)
            self.compare_products(model, inputs, got, rtol=1e-5, atol=1e-4)
            halves = {n: v.astype(np.float16) if v.dtype == np.float32 else v for n, v in inputs.items()}
            halves["as"] = np.float16(0.001).reshape(())
            expected = sums * (np.float64(halves["as"]) * halves["bs"]) + halves["bias"]
            model = make_model("MatMulIntegerToFloat", halves, domain="com.microsoft", types={"y": TensorProto.FLOAT16})
            np.testing.assert_allclose(self.run_runnel(model, halves)["y"], expected, rtol=2e-3, atol=2e-2)

    def test_dynamic_quantize_matmul(self):
        for b_type in BYTES:
            inputs = {"a": self.rng.standard_normal((4, 33)).astype(np.float32),
                      "b": random_bytes(self.rng, b_type, (33, 6)),
                      "bs": self.rng.uniform(0.1, 0.2, 6).astype(np.float32), "bz": zero_point(self.rng, b_type, 6),
                      "bias": self.rng.standard_normal(6).astype(np.float32)}
            model = make_model("DynamicQuantizeMatMul", inputs, domain="com.microsoft", types={"y": TensorProto.FLOAT})
            got = self.run_runnel(model, inputs)["y"]
            a = inputs["a"]
            scale = np.float32(a.max() - a.min()) / np.float32(255)
            zero = np.rint(np.float32(0) - a.min() / scale)
            sums = (wide(quantise(a / scale, zero, np.uint8)) - int(zero)) @ (wide(inputs["b"]) - inputs["bz"])
            expected = sums * (np.float64(scale) * inputs["bs"]) + inputs["bias"]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)
            self.compare_products(model, inputs, got, rtol=1e-5, atol=1e-3)

    # ---- com.microsoft's QLinear operators ----

    def check_qlinear(self, operator, inputs, scaled, zero, **attributes):
        """Against float64, and within 1 of onnxruntime, which has tables and fixed points."""
        first = inputs["x"] if "x" in inputs else inputs["a"]
        model = make_model(operator, inputs, domain="com.microsoft", types={"y": TYPES[first.dtype]}, **attributes)
        got = self.run_runnel(model, inputs)["y"]
        self.check_bytes(got, scaled, 0 if zero is None else int(zero))
        if zero is not None:  # onnxruntime's type inference refuses binary operators without zero points
            self.assertLessEqual(np.abs(wide(got) - wide(self.run_onnxruntime(model, inputs)["y"])).max(), 1)

    def test_qlinear_binary(self):
        for dtype in BYTES:
            for a_shape, b_shape in [((3, 33), (3, 33)), ((2, 3, 1, 5), (3, 4, 1)), ((1,), (7, 3))]:
                for zeros in (False, True):
                    za, zb, zc = [zero_point(self.rng, dtype) if zeros else None for _ in range(3)]
                    inputs = {"a": random_bytes(self.rng, dtype, a_shape), "as": np.array(0.02, np.float32), "az": za,
                              "b": random_bytes(self.rng, dtype, b_shape), "bs": np.array(0.035, np.float32), "bz": zb,
                              "cs": np.array(0.06, np.float32), "cz": zc}
                    a = (wide(inputs["a"]) - (int(za) if zeros else 0)) * np.float64(np.float32(0.02))
                    b = (wide(inputs["b"]) - (int(zb) if zeros else 0)) * np.float64(np.float32(0.035))
                    step = np.float64(np.float32(0.06))
                    self.check_qlinear("QLinearAdd", inputs, (a + b) / step, zc)
                    self.check_qlinear("QLinearMul", inputs, a * b / step, zc)

    def unary(self, dtype, shape, x_scale, y_scale, zeros=True):
        inputs = {"x": random_bytes(self.rng, dtype, shape), "xs": np.array(x_scale, np.float32),
                  "xz": zero_point(self.rng, dtype) if zeros else None, "ys": np.array(y_scale, np.float32),
                  "yz": zero_point(self.rng, dtype) if zeros else None}
        zero = int(inputs["xz"]) if zeros else 0
        return inputs, (wide(inputs["x"]) - zero) * np.float64(np.float32(x_scale)), np.float64(np.float32(y_scale))

    def test_qlinear_unary(self):
        for dtype in BYTES:
            for zeros in (False, True):
                inputs, x, step = self.unary(dtype, (5, 67), 0.04, 1 / 200, zeros)
                self.check_qlinear("QLinearSigmoid", inputs, 1 / (1 + np.exp(-x)) / step, inputs["yz"])
                inputs, x, step = self.unary(dtype, (5, 67), 0.04, 0.03, zeros)
                slope = np.float64(np.float32(0.3))
                self.check_qlinear("QLinearLeakyRelu", inputs, np.where(x < 0, x * slope, x) / step, inputs["yz"],
                                   alpha=0.3)

    def test_qlinear_softmax(self):
        for dtype in BYTES:
            for opset, axis in [(12, 1), (13, -1), (13, 1)]:
                inputs, x, step = self.unary(dtype, (2, 5, 7), 0.03, 1 / 256)
                axes = (1, 2) if opset < 13 else axis
                e = np.exp(x - x.max(axes, keepdims=True))
                self.check_qlinear("QLinearSoftmax", inputs, e / e.sum(axes, keepdims=True) / step, inputs["yz"],
                                   opset=17, attribute_opset=opset, axis=axis)

    def test_qlinear_pools(self):
        for dtype in BYTES:
            inputs, x, step = self.unary(dtype, (2, 5, 6, 7), 0.03, 0.025)
            self.check_qlinear("QLinearGlobalAveragePool", inputs, x.mean((2, 3), keepdims=True) / step, inputs["yz"])
            self.check_qlinear("QLinearGlobalAveragePool", inputs, x.mean((1, 2), keepdims=True) / step, inputs["yz"],
                               channels_last=1)
            expected = x[:, :, :6, :6].reshape(2, 5, 3, 2, 3, 2).mean((3, 5))
            self.check_qlinear("QLinearAveragePool", inputs, expected / step, inputs["yz"], kernel_shape=(2, 2),
                               strides=(2, 2))

    def test_qlinear_concat(self):
        for dtype in BYTES:
            for axis in (1, -1):
                first, second = ((2, 3, 4), (2, 5, 4)) if axis == 1 else ((2, 3, 4), (2, 3, 33))
                inputs = {"ys": np.array(0.05, np.float32), "yz": zero_point(self.rng, dtype),
                          "a": random_bytes(self.rng, dtype, first), "as": np.array(0.04, np.float32),
                          "az": zero_point(self.rng, dtype), "b": random_bytes(self.rng, dtype, second),
                          "bs": np.array(0.06, np.float32), "bz": zero_point(self.rng, dtype)}
                parts = [(wide(inputs[n]) - int(inputs[n + "z"])) * np.float64(inputs[n + "s"]) for n in "ab"]
                self.check_qlinear("QLinearConcat", inputs, np.concatenate(parts, axis) / np.float64(inputs["ys"]),
                                   inputs["yz"], axis=axis)

    # ---- nothing to compute, or nothing to sum ----

    def test_empty(self):
        one, zero = np.array(1, np.float32), np.array(0, np.uint8)
        scales = {"as": one, "az": zero}, {"bs": one, "bz": zero}, {"ys": one, "yz": np.array(7, np.uint8)}
        for a_shape, b_shape in [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0))]:
            inputs = {"a": np.zeros(a_shape, np.uint8), **scales[0], "b": np.zeros(b_shape, np.uint8), **scales[1],
                      **scales[2]}
            got = self.run_runnel(make_model("QLinearMatMul", inputs, types={"y": TensorProto.UINT8}), inputs)["y"]
            np.testing.assert_array_equal(got, np.full((a_shape[0], b_shape[1]), 7))
        for x_shape, w_shape in [((0, 3, 5, 5), (4, 3, 3, 3)), ((1, 3, 5, 5), (0, 3, 3, 3)), ((1, 0, 5, 5), (4, 0, 3, 3))]:
            inputs = {"x": np.zeros(x_shape, np.uint8), "w": np.zeros(w_shape, np.uint8)}
            got = self.run_runnel(make_model("ConvInteger", inputs, types={"y": TensorProto.INT32}), inputs)["y"]
            np.testing.assert_array_equal(got, np.zeros((x_shape[0], w_shape[0], 3, 3)))

    # ---- refusals ----

    def test_refusals(self):
        a, b = np.zeros((2, 3), np.uint8), np.zeros((3, 2), np.int8)
        for inputs, words in [({"a": a, "b": b, "za": np.zeros((), np.int8)}, "zero point"),
                              ({"a": a, "b": np.zeros((2, 2), np.int8)}, "cannot be multiplied"),
                              ({"a": a, "b": b, "za": np.zeros(3, np.uint8)}, "zero point")]:
            with self.assertRaises(runnel.Failure) as caught:
                self.run_runnel(make_model("MatMulInteger", inputs, types={"y": TensorProto.INT32}), inputs)
            self.assertIn(words, caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
