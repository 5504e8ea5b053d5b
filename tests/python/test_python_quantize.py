# SPDX-License-Identifier: Apache-2.0
"""runnel.quantize from Python: the file beside the command's and against onnxruntime, its report, and what it refuses."""

import os
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from package import DEVICE, model
import runnel  # noqa: E402

COMMAND = os.path.join(os.environ["RUNNEL_LIBRARY_DIR"], "runnel")
node = helper.make_node


class Lazy:
    """Gives its arrays one at a time, and counts them."""

    def __init__(self, arrays):
        self.arrays, self.read = arrays, 0

    def __iter__(self):
        for array in self.arrays:
            self.read += 1
            yield {"x": array}


def run(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


class QuantizeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, rng = folder.name, np.random.default_rng(5)
        weights = {"w": rng.normal(size=(20, 30)), "v": rng.normal(size=(30, 7)), "b": rng.normal(size=7)}
        initializers = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
        nodes = [node("MatMul", ["x", "w"], ["m"], "first"), node("Relu", ["m"], ["r"]),
                 node("Gemm", ["r", "v", "b"], ["y"], "last"), node("ArgMax", ["y"], ["best"], axis=1)]
        self.model = self.path("model.onnx")
        onnx.save(model(nodes, {"x": (1, ["n", 20])}, {"y": (1, ["n", 7]), "best": (7, ["n", 1])}, initializers),
                  self.model)
        self.arrays = [rng.normal(size=(4, 20)).astype(np.float32) for _ in range(5)]

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def quantize(self, feeds, **options):
        return runnel.quantize(self.model, feeds, self.path("q.onnx"), DEVICE, **options)

    def test_as_the_command_does(self):
        os.mkdir(self.path("sets"))
        for i, array in enumerate(self.arrays):
            np.save(self.path("sets", f"{i}.npy"), array)
        for ranges, activations in (("minmax", "uint8"), ("percentile", "int8"), ("mse", "uint8")):
            feeds = Lazy(self.arrays)
            self.quantize(feeds, ranges=ranges, activations=activations, percentile=99.0)
            self.assertEqual(feeds.read, 10 if ranges == "minmax" else 15)
            more = ["--percentile", "99"] if ranges == "percentile" else []
            subprocess.run([COMMAND, "quantize", self.model, "--calibrate", self.path("sets"), "-o", self.path("c.onnx"),
                            "--ranges", ranges, "--activations", {"uint8": "u8", "int8": "s8"}[activations], *more],
                           check=True, capture_output=True)
            with open(self.path("q.onnx"), "rb") as ours, open(self.path("c.onnx"), "rb") as theirs:
                self.assertEqual(ours.read(), theirs.read())

    def test_report(self):
        report = self.quantize(self.arrays)
        self.assertEqual([(row.name, row.op_type, row.is_quantized) for row in report.layers],
                         [("first", "MatMul", True), ("last", "Gemm", True)])
        pairs = [(run(self.model, x).astype(np.float64), run(self.path("q.onnx"), x)) for x in self.arrays]
        error = np.sqrt(sum(((a - b) ** 2).sum() for a, b in pairs) / sum((a ** 2).sum() for a, _ in pairs))
        self.assertEqual(list(report.relative_errors), ["y"])
        self.assertGreater(error, 1e-3)
        self.assertLess(abs(report.relative_errors["y"] - error), 0.05 * error)
        self.assertLess(abs(report.layers[1].signal_to_noise + 20 * np.log10(error)), 0.5)

    def test_feeds_are_as_run_takes_them(self):
        found = []
        for feeds in (self.arrays, [x.tolist() for x in self.arrays], [np.asfortranarray(x) for x in self.arrays]):
            self.quantize(feeds)
            with open(self.path("q.onnx"), "rb") as file:
                found.append(file.read())
        self.assertEqual(found[1:], found[:1] * 2)
        scalar = model([node("Mul", ["x", "by"], ["m"]), node("MatMul", ["m", "w"], ["y"])],
                       {"x": (1, [2, 20]), "by": (1, [])}, {"y": (1, [2, 30])},
                       [numpy_helper.from_array(np.ones((20, 30), np.float32), "w")])
        onnx.save(scalar, self.path("scalar.onnx"))
        report = runnel.quantize(self.path("scalar.onnx"), [{"x": self.arrays[0][:2], "by": np.float32(2)}],
                                 self.path("q.onnx"), DEVICE)
        self.assertEqual([row.op_type for row in report.layers], ["MatMul"])

    def test_kept(self):
        both = self.quantize(self.arrays)
        report = self.quantize(iter([{"x": x} for x in self.arrays]), keep=["first"])
        self.assertEqual([row.is_quantized for row in report.layers], [False, True])
        self.assertGreater(report.layers[0].signal_to_noise, both.layers[0].signal_to_noise)
        kinds = [row.op_type for row in onnx.load(self.path("q.onnx")).graph.node]
        self.assertIn("MatMul", kinds)
        self.assertIn("QuantizeLinear", kinds)

    def test_refused(self):
        bad = self.arrays[0].copy()
        bad[2, 3] = np.nan
        for reason, feeds, options in (
                ("feeds is empty", [], {}), ("feeds[1]: input 'x' holds NaN", [self.arrays[0], bad], {}),
                ("'x'", [np.zeros((4, 19), np.float32)], {}),
                ("feeds[1]: input 'x' is no array of numbers", [self.arrays[0], [["a"]]], {}), ("'other'", [{"other": self.arrays[0]}], {}),
                ("is called 'middle'", self.arrays, {"keep": ["middle"]}), ("keep is the text", self.arrays, {"keep": "last"}),
                ("ranges is 'all'", self.arrays, {"ranges": "all"}), ("activations is", self.arrays, {"activations": "int4"}),
                ("percentile", self.arrays, {"ranges": "percentile", "percentile": 101.0})):
            with self.subTest(reason), self.assertRaises(runnel.InvalidArgument) as caught:
                self.quantize(feeds, **options)
            self.assertIn(reason, str(caught.exception))
        self.assertEqual(os.listdir(self.folder), ["model.onnx"])
        with self.assertRaisesRegex(runnel.InvalidArgument, "is the model itself"):
            runnel.quantize(self.model, self.arrays, self.model, DEVICE)
        with self.assertRaises(runnel.NotFound):
            runnel.quantize(self.path("none.onnx"), self.arrays, self.path("q.onnx"), DEVICE)
        self.quantize(self.arrays)
        with self.assertRaisesRegex(runnel.FailedPrecondition, "quantised already"):
            runnel.quantize(self.path("q.onnx"), self.arrays, self.path("again.onnx"), DEVICE)


if __name__ == "__main__":
    unittest.main()
