# SPDX-License-Identifier: Apache-2.0
"""Casts between all element types, BitCast, and what only moves elements, for the types that are stored alone.

The reference rounds by search: the nearest of all numbers that a type has, computed in long double, which holds every
element of every type. Host evaluation sees all pairs of types; on the device, where each pair is a program, the ones
that differ in code, or all with RUNNEL_TEST_ALL_PAIRS=1.
"""

import os
import sys
import unittest
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

warnings.filterwarnings("ignore", category=RuntimeWarning)

TYPES = {code: np.dtype(t) for code, t in runnel.DTYPES.items()}
STORED = [code for code in TYPES if code >= 17]
SMALL_FLOATS = [17, 18, 19, 20, 23, 24]
SMALL_INTEGERS = {21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1)}
E8M0, F4 = 24, 23
OPSET = 26


def is_float(code):
    return code in SMALL_FLOATS or code in (1, 10, 11, 16)


def integer_range(code):
    if code in SMALL_INTEGERS:
        return SMALL_INTEGERS[code]
    info = np.iinfo(TYPES[code])
    return int(info.min), int(info.max)


def numbers_of(code):
    """All finite numbers of a small float, ascending, with their codes; one code of each number."""
    count = 16 if code == F4 else 256
    codes = np.arange(count, dtype=np.uint8)
    values = codes.view(TYPES[code]).astype(np.float64)
    keep = np.isfinite(values) & ~((values == 0) & np.signbit(values))
    order = np.argsort(values[keep])
    return values[keep][order].astype(np.longdouble), codes[keep][order]


def elements(code):
    """Numbers around everything that can go wrong, in one type."""
    grid = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 3.5, -0.5, -1.5, 127.5, 128.0, 255.0, 256.0, -128.0, -129.0, 7.9, -8.9]
    for other in SMALL_FLOATS:
        values = numbers_of(other)[0].astype(np.float64)
        middles = (values[1:] + values[:-1]) / 2
        picked = np.concatenate([values[::5], values[-3:], middles[::5], middles[-2:], [values[-1] * 1.04, values[-1] * 2]])
        grid.extend(np.concatenate([picked, -picked[::3], np.nextafter(picked, np.inf)[::2], picked * (1 + 2.0**-22)]))
    grid.extend([np.inf, -np.inf, np.nan, 1e-42, -1e-42, 2.0**-127, 2.0**-128, 1.5 * 2.0**-127, 3e38, -3e38])
    if code == 9:
        return np.array([True, False, True])
    if is_float(code):
        if code in SMALL_FLOATS:
            return np.arange(16 if code == F4 else 256, dtype=np.uint8).view(TYPES[code])
        return np.array(grid, np.float64).astype(TYPES[code])
    low, high = integer_range(code)
    around = [2**k + d for k in range(63) for d in (-1, 0, 1)] + [17, 18, 19, 20, 464, 465, 61440, 61441, 2**60 + 2**59]
    whole = sorted({n for n in around + [-n for n in around] + [low, high, low + 1, high - 1] if low <= n <= high})
    return np.array(whole, np.int8 if high < 8 else np.uint8 if high < 16 else TYPES[code]).astype(TYPES[code])


def exact(array, code):
    """As long double."""
    if code in SMALL_INTEGERS:
        array = array.astype(np.int32)
    elif is_float(code) and code != 11:
        array = array.astype(np.float64)
    return array.astype(np.longdouble)


def narrow(x, code, saturate):
    """To a float with a mantissa, by search."""
    values, codes = numbers_of(code)
    top = values[-1]
    step = top - values[-2]
    magnitude = np.abs(np.where(np.isnan(x), 0, x))
    at = np.clip(np.searchsorted(values, magnitude), 1, len(values) - 1)
    below, above = values[at - 1], values[at]
    even = np.where(codes[at] % 2 == 0, above, below)
    near = np.where(magnitude - below < above - magnitude, below, np.where(magnitude - below > above - magnitude, above, even))
    # Half a step past the top rounds to what would come next, whose mantissa is even where the top's is odd.
    odd = codes[-1] % 2 == 1
    beyond = (magnitude >= top + step / 2) if odd else (magnitude > top + step / 2)
    near = np.where(beyond | (magnitude > top), top, near)
    if code == F4:
        near = np.where(np.isnan(x), 0, near)
    elif not saturate:
        near = np.where(beyond, np.inf if code == 19 else np.nan, near)
    signed = np.where(np.signbit(x), -near, near)
    return signed if code == F4 else np.where(np.isnan(x), np.nan, signed)


def power(x, saturate, mode):
    magnitude = np.abs(x)
    out = np.empty(x.shape, np.longdouble)
    for i, m in enumerate(magnitude):
        if np.isnan(m):
            out[i] = np.nan
        elif m < np.longdouble(2) ** -127:
            out[i] = np.longdouble(2) ** -127 if saturate else np.nan
        else:
            down = np.longdouble(2) ** 127 if np.isinf(m) else np.longdouble(2) ** np.floor(np.log2(m))
            while down > m:
                down /= 2
            while down * 2 <= m and np.isfinite(m):
                down *= 2
            up = (mode == "up" and m > down) or (mode == "nearest" and m >= down * 1.5)
            value = down * 2 if up else down
            over = value > np.longdouble(2) ** 127 or np.isinf(m)
            out[i] = (np.longdouble(2) ** 127 if saturate else np.nan) if over else value
    return out


def cast(array, source, target, saturate=True, mode="up"):
    """What ONNX's Cast gives, as long double; integers below 8 bits wrap, wider ones saturate floats."""
    x = exact(array, source)
    if target == source:
        return x
    if target == 9:
        return (x != 0).astype(np.longdouble)
    if target == E8M0:
        return power(x, saturate, mode)
    if target in SMALL_FLOATS:
        return narrow(x, target, saturate)
    if is_float(target):
        if target == 16 or (source == 11 and target == 10):
            return exact(x.astype(np.float64).astype(TYPES[target]), target)
        return exact(x.astype(TYPES[target]), target)
    low, high = integer_range(target)
    count = high - low + 1
    out = []
    for value in x:
        if is_float(source):
            bounds = (-(2**31), 2**31 - 1) if target in SMALL_INTEGERS else (low, high)
            whole = 0 if np.isnan(value) else bounds[int(value > 0)] if np.isinf(value) else int(value)
            whole = min(max(whole, bounds[0]), bounds[1])
        else:
            whole = int(value)
        out.append((whole - low) % count + low)
    return np.array(out, dtype=object).astype(np.longdouble)


def make_model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, t, None) for n, t in inputs],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return model.SerializeToString()


class TypesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        probe = make_model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", 11)], [("y", 11)])
        try:
            cls.run_model(probe, {"x": np.ones(2)})
            cls.has_f64 = True
        except runnel.Failure:
            cls.has_f64 = False

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    @classmethod
    def run_model(cls, model, feed):
        session = runnel.Session(cls.device, model)
        try:
            return session.run(feed)
        finally:
            session.close()

    def assert_same(self, got, expected, code, what):
        self.assertEqual(got.dtype, TYPES[code], what)
        got = exact(got.reshape(-1), code)
        wrong = ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
        first = np.flatnonzero(wrong)[:4]
        self.assertFalse(wrong.any(), f"{what}: at {first}: {got[first]} instead of {expected[first]}")

    def casts(self, source, targets, on_host, **attributes):
        """All casts of one type in one model."""
        array = elements(source)
        nodes = [helper.make_node("Cast", ["x"], [f"y{t}"], to=t, **attributes) for t in targets]
        outputs = [(f"y{t}", t) for t in targets]
        if on_host:
            tensor = numpy_helper.from_array(array, "x")
            got = self.run_model(make_model(nodes, [], outputs, [tensor]), {})
        else:
            got = self.run_model(make_model(nodes, [("x", source)], outputs), {"x": array})
        saturate, mode = attributes.get("saturate", 1) != 0, attributes.get("round_mode", "up")
        for t in targets:
            expected = cast(array, source, t, saturate, mode)
            if t in (16, 10, 1) and source in (1, 10, 11, 16):
                continue  # among the usual floats: the other tests' business
            self.assert_same(got[f"y{t}"], expected, t, f"{TYPES[source]} to {TYPES[t]} {attributes}")

    def usable(self, code):
        return code != 11 or self.has_f64

    def test_all_pairs_on_the_host(self):
        for source in TYPES:
            self.casts(source, list(TYPES), True)
            self.casts(source, SMALL_FLOATS, True, saturate=0, round_mode="nearest")
            self.casts(source, [E8M0], True, saturate=0, round_mode="down")

    def test_from_stored_types(self):
        everything = os.environ.get("RUNNEL_TEST_ALL_PAIRS")
        for source in STORED:
            targets = [t for t in TYPES if t != source and self.usable(t)] if everything else [1, 3]
            self.casts(source, targets, False)

    def test_to_stored_types(self):
        everything = os.environ.get("RUNNEL_TEST_ALL_PAIRS")
        sources = [s for s in TYPES if self.usable(s)] if everything else [1, 7]
        for source in sources:
            self.casts(source, [t for t in STORED if t != source], False)
        for source in (10, 16) if not everything else ():
            self.casts(source, [17], False)
        if self.has_f64 and not everything:
            self.casts(11, [19, 22, E8M0], False)
        self.casts(13, [18], False)

    def test_narrowing_attributes(self):
        self.casts(1, SMALL_FLOATS, False, saturate=0)
        for mode in ("down", "nearest"):
            for saturate in (0, 1):
                self.casts(1, [E8M0], False, saturate=saturate, round_mode=mode)

    def test_upper_bits_are_ignored(self):
        for code, bits in ((21, 4), (22, 4), (23, 4), (25, 2), (26, 2)):
            junk = np.arange(256, dtype=np.uint8)
            clean = (junk & (2**bits - 1)).view(TYPES[code])
            node = helper.make_node("Cast", ["x"], ["y"], to=1)
            got = self.run_model(make_model([node], [("x", code)], [("y", 1)]), {"x": junk.view(TYPES[code])})
            self.assert_same(got["y"], exact(clean, code), 1, f"{TYPES[code]}")

    def test_bit_cast(self):
        for source, target in ((17, 20), (22, 21), (21, 23), (26, 25), (2, 24), (1, 6), (16, 4), (12, 1)):
            data = np.arange(24, dtype=np.uint8).view(TYPES[source])
            shape = (2, data.size // 2)
            nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("BitCast", ["t"], ["y"], to=target)]
            for model, feed in (
                    (make_model(nodes, [("x", source)], [("y", target)]), {"x": data.reshape(shape)}),):
                got = self.run_model(model, feed)["y"]
                expected = np.ascontiguousarray(data.reshape(shape).T).view(TYPES[target])
                self.assert_same(got, exact(expected.reshape(-1), target), target, f"{source} as {target}")
        wrong = make_model([helper.make_node("BitCast", ["x"], ["y"], to=2)], [("x", 22)], [("y", 2)])
        with self.assertRaisesRegex(runnel.Failure, "8 bits of 4"):
            self.run_model(wrong, {"x": np.zeros(3, ml_dtypes.int4)})

    def moving_model(self, code, constant=None):
        ints = [("two", [2]), ("shape", [3, 8]), ("starts", [7]), ("ends", [-9]), ("steps", [-2]), ("axes", [1]),
                ("pads", [1, 0, 0, 2]), ("big", [2, 3, 8]), ("rows", [2, 0, -1])]
        tensors = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in ints]
        one = np.ones(1, np.int8).astype(TYPES[code]).reshape(())
        tensors.append(numpy_helper.from_array(one, "one"))
        tensors.append(numpy_helper.from_array(np.array([[True, False] * 4], bool), "mask"))
        node = helper.make_node
        nodes = [
            node("Identity", ["x"], ["identity"]), node("Reshape", ["x", "shape"], ["reshape"]),
            node("Transpose", ["reshape"], ["transpose"]),
            node("Slice", ["reshape", "starts", "ends", "axes", "steps"], ["slice"]),
            node("Concat", ["reshape", "reshape"], ["concat"], axis=0), node("Gather", ["reshape", "rows"], ["gather"]),
            node("Expand", ["reshape", "big"], ["expand"]), node("Unsqueeze", ["x", "axes"], ["unsqueeze"]),
            node("Pad", ["reshape", "pads", "one"], ["pad"]), node("Where", ["mask", "reshape", "gather"], ["where"]),
            node("Split", ["reshape"], ["split0", "split1"], axis=1, num_outputs=2),
            node("Tile", ["transpose", "tiles"], ["tile"]),
        ]
        tensors.append(numpy_helper.from_array(np.array([2, 1], np.int64), "tiles"))
        names = [name for n in nodes for name in n.output]
        if constant is not None:
            tensors.append(numpy_helper.from_array(constant, "x"))
        inputs = [("x", code)] if constant is None else []
        return make_model(nodes, inputs, [(n, code) for n in names], tensors)

    def test_moving(self):
        for code in STORED:
            bits = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(code, 8)
            x = (np.arange(24) * 31 % 256 >> (8 - bits)).astype(np.uint8).view(TYPES[code])
            m = x.reshape(3, 8)
            g = m[[2, 0, -1]]
            one = np.ones(1, np.int8).astype(TYPES[code])
            padded = np.full((4, 10), one[0], TYPES[code])
            padded[1:, :8] = m
            expected = {
                "identity": x, "reshape": m, "transpose": m.T, "slice": m[:, 7::-2], "concat": np.concatenate([m, m]),
                "gather": g, "expand": np.broadcast_to(m, (2, 3, 8)), "unsqueeze": x[:, None], "pad": padded,
                "where": np.where(np.array([True, False] * 4), m, g), "split0": m[:, :4], "split1": m[:, 4:],
                "tile": np.tile(m.T, (2, 1)),
            }
            for where, got in (("device", self.run_model(self.moving_model(code), {"x": x})),
                               ("host", self.run_model(self.moving_model(code, x), {}))):
                for name, want in expected.items():
                    self.assertEqual(got[name].shape, want.shape, name)
                    flat = np.ascontiguousarray(want).reshape(-1)
                    self.assert_same(got[name], exact(flat, code), code, f"{name} of {TYPES[code]} on the {where}")

    def test_packed_constants(self):
        """Initialisers and Constants, raw and in int32_data, of odd sizes."""
        for code in SMALL_INTEGERS | {F4: None}:
            values = np.array([1, 0, 1, 1, 0, 1, 1], np.int8).astype(TYPES[code])
            typed = helper.make_tensor("t", code, [7], values.astype(np.float32).astype(np.int64).tolist())
            raw = numpy_helper.from_array(values, "r")
            nodes = [helper.make_node("Constant", [], ["c"], value=typed), helper.make_node("Cast", ["c"], ["y0"], to=1),
                     helper.make_node("Cast", ["r"], ["y1"], to=1), helper.make_node("Identity", ["r"], ["y2"])]
            got = self.run_model(make_model(nodes, [], [("y0", 1), ("y1", 1), ("y2", code)], [raw]), {})
            for name in ("y0", "y1"):
                self.assertEqual(got[name].tolist(), [1, 0, 1, 1, 0, 1, 1], f"{TYPES[code]} {name}")
            self.assertEqual(got["y2"].astype(np.int32).tolist(), [1, 0, 1, 1, 0, 1, 1])

    def test_cast_like_and_constant_of_shape(self):
        for code in STORED:
            one = numpy_helper.from_array(np.ones(1, np.int8).astype(TYPES[code]), "v")
            nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"], value=one),
                     helper.make_node("CastLike", ["x", "c"], ["y"])]
            got = self.run_model(make_model(nodes, [("x", 1), ("s", 7)], [("y", code), ("c", code)]),
                                 {"x": np.array([1, 0.5], np.float32), "s": np.array([3], np.int64)})
            self.assertEqual(got["c"].astype(np.float32).tolist(), [1, 1, 1], TYPES[code])
            expected = cast(np.array([1, 0.5], np.float32), 1, code)
            self.assert_same(got["y"], expected, code, f"CastLike {TYPES[code]}")

    def test_empty(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)
        got = self.run_model(make_model([node], [("x", 1)], [("y", 17)]), {"x": np.zeros((2, 0, 3), np.float32)})
        self.assertEqual(got["y"].shape, (2, 0, 3))

    def test_types_that_are_not_there(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=27)
        with self.assertRaisesRegex(runnel.Failure, "float6e2m3"):
            self.run_model(make_model([node], [("x", 1)], [("y", 1)]), {"x": np.zeros(1, np.float32)})
        for operator in ("Relu", "Neg", "Softmax"):
            node = helper.make_node(operator, ["x"], ["y"])
            with self.assertRaisesRegex(runnel.Failure, "its first input is int4"):
                self.run_model(make_model([node], [("x", 22)], [("y", 22)]), {"x": np.zeros(1, ml_dtypes.int4)})


if __name__ == "__main__":
    unittest.main(verbosity=2)
