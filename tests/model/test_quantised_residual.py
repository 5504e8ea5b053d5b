# SPDX-License-Identifier: Apache-2.0
"""Quantised convolutions whose results are added to something: one step or two, against exact integers."""

import os
import sys
import unittest

import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_operators_quantised as quantised  # noqa: E402

# Powers of two, so that float32 computes exactly and halves occur.
SCALES = {"xs": 2.0 ** -3, "ws": 2.0 ** -4, "ys": 2.0 ** 2, "ss": 2.0 ** 3}


class ResidualTest(quantised.Quantised):
    def model(self, weights, pads, first, other, dtype, zeros):
        """sum(first) and sum(other): x is 'x', 'a' and 'b' are convolutions of it with the first and second weights."""
        code = quantised.TYPES[np.dtype(dtype)]
        arrays = {name: np.array(value, np.float32) for name, value in SCALES.items()}
        arrays.update({name: np.array(value, dtype) for name, value in zeros.items()})
        arrays.update({"wa": weights[0], "wb": weights[1], "wz": np.array(0, np.int8)})
        used = [value for value in (first, other) if value != "x"]
        nodes = [helper.make_node("QLinearConv", ["x", "xs", "xz", "w" + value, "ws", "wz", "ys", "yz"], [value],
                                  pads=pads) for value in dict.fromkeys(used)]
        scales = {"x": ["xs", "xz"], "a": ["ys", "yz"], "b": ["ys", "yz"]}
        nodes.append(helper.make_node("QLinearAdd", [first, *scales[first], other, *scales[other], "ss", "sz"], ["s"],
                                      domain="com.microsoft"))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", code, [None] * 4)],
                                  [helper.make_tensor_value_info("s", code, None)],
                                  [numpy_helper.from_array(array, name) for name, array in arrays.items()])
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()

    def expected(self, value, x, weights, pads, zeros):
        """What the bytes of 'x', 'a' or 'b' stand for."""
        if value == "x":
            return (x.astype(np.int64) - zeros["xz"]) * SCALES["xs"]
        sums = quantised.convolve(x.astype(np.int64) - zeros["xz"], weights["ab".index(value)].astype(np.int64), pads,
                                  (1, 1), (1, 1), 1)
        scaled = sums * (SCALES["xs"] * SCALES["ws"] / SCALES["ys"])
        return (quantised.quantise(scaled, zeros["yz"], x.dtype).astype(np.int64) - zeros["yz"]) * SCALES["ys"]

    def check_sums(self, cases):
        for i, (channels, size, kernel) in enumerate(cases):
            for first, other in [("a", "x"), ("x", "a"), ("a", "b"), ("b", "a"), ("a", "a")]:
                dtype = (np.uint8, np.int8)[i % 2]
                zeros = {name: int(quantised.zero_point(self.rng, dtype)) for name in ("xz", "yz", "sz")}
                x = quantised.random_bytes(self.rng, dtype, (2, channels, size, size))
                weights = [quantised.random_bytes(self.rng, np.int8, (channels, channels, kernel, kernel)) for _ in "ab"]
                pads = [kernel // 2] * 4
                got = self.run_session(self.model(weights, pads, first, other, dtype, zeros), {"x": x})["s"]
                both = sum(self.expected(value, x, weights, pads, zeros) for value in (first, other))
                np.testing.assert_array_equal(got, quantised.quantise(both / SCALES["ss"], zeros["sz"], dtype))

    def test_sums(self):
        self.check_sums([(8, 7, 3), (36, 5, 1), (5, 6, 3), (64, 8, 3)])

    def test_sums_by_winograd(self):
        os.environ["RUNNEL_QCONV"] = "winograd"
        try:
            self.check_sums([(16, 7, 3), (48, 5, 3)])
        finally:
            del os.environ["RUNNEL_QCONV"]


if __name__ == "__main__":
    unittest.main()
