# SPDX-License-Identifier: Apache-2.0
"""The scripts that compare with onnxruntime: what they measure is the same work, and who is not measured is stopped."""

import io
import json
import os
import subprocess
import sys
import unittest
import xml.dom.minidom
from contextlib import redirect_stdout
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from command import ROOT, CommandTest

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import bench_models  # noqa: E402
import compare_ort  # noqa: E402
import engines  # noqa: E402
import peer  # noqa: E402
import plot  # noqa: E402


def reshaping_model():
    """x [1,2,3] -> Reshape [1,6] -> MatMul -> Reshape [1,-1] -> Add of a Reshape of a constant -> y [1,4]."""
    initializers = {"to": np.array([1, 6]), "w": np.arange(24, dtype=np.float32).reshape(6, 4),
                    "flat": np.array([1, -1]), "c": np.ones((4, 1), np.float32), "row": np.array([1, 4])}
    nodes = [helper.make_node("Reshape", ["x", "to"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["b"]),
             helper.make_node("Reshape", ["b", "flat"], ["d"]), helper.make_node("Reshape", ["c", "row"], ["e"]),
             helper.make_node("Add", ["d", "e"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
                              [numpy_helper.from_array(array, name) for name, array in initializers.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class CopyTest(CommandTest):
    def test_any_batch(self):
        onnx.save(reshaping_model(), self.path("one.onnx"))
        onnx.save(bench_models.free_batch(reshaping_model()), self.path("free.onnx"))
        bench_models.check_copy(self.path("one.onnx"), self.path("free.onnx"), (None, 2, 3), compare_ort.ort_outputs)
        array = np.random.default_rng(1).random((5, 2, 3)).astype(np.float32)
        got = compare_ort.ort_outputs(self.path("free.onnx"), array)[0]
        expected = array.reshape(5, 6) @ np.arange(24, dtype=np.float32).reshape(6, 4) + 1
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    def test_a_copy_that_mixes_samples_is_refused(self):
        def model(axis):
            node = helper.make_node("ReduceSum", ["x", "axis"], ["y"], keepdims=1)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
                                      [numpy_helper.from_array(np.array([axis]), "axis")])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

        onnx.save(model(0), self.path("mixed.onnx"))
        with self.assertRaises(ValueError):
            bench_models.check_copy(self.path("mixed.onnx"), self.path("mixed.onnx"), (None, 3), compare_ort.ort_outputs)

    def test_inputs(self):
        model = reshaping_model()
        array = bench_models.make_input(model, (2, 2, 3))
        self.assertEqual((array.dtype, array.shape), (np.float32, (2, 2, 3)))
        np.testing.assert_array_equal(array, bench_models.make_input(model, (2, 2, 3)))


class PeerTest(CommandTest):
    def files(self):
        bench_models.save_trivial(self.path("m.onnx"))
        return self.path("m.onnx"), self.save("x.npy", np.array([2], np.float32))

    def state(self, process):
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    def check(self, engine):
        model, data = self.files()
        with peer.Peer(engine, 1, model, data) as worker:
            process = worker.process
            self.assertEqual(len(worker.hello["cores"]), 1)
            np.testing.assert_array_equal(worker.results(), [np.array([2], np.float32)])
            for _ in range(2):
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                self.assertEqual(self.state(process), "T")
                seconds = worker.measure(0.01, 3, 5)
                self.assertEqual(len(seconds), 3)
                self.assertTrue(all(0 < value < 1 for value in seconds))
        self.assertIsNotNone(process.poll())

    def test_onnxruntime(self):
        self.check("onnxruntime")

    def test_runnel(self):
        library = os.path.join(os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release")), "librunnel.so")
        code = f"import ctypes; ctypes.CDLL({library!r})"
        if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
            self.skipTest("a library built with a sanitizer")
        self.check("runnel")

    def test_an_engine_that_fails(self):
        with self.assertRaises(RuntimeError), open(os.devnull, "w", encoding="utf-8") as nowhere:
            with mock.patch("subprocess.Popen", lambda *a, popen=subprocess.Popen, **k: popen(*a, stderr=nowhere, **k)):
                peer.Peer("onnxruntime", 1, self.path("none.onnx"), self.path("none.npy"))

    def test_same_results(self):
        one = np.array([1, 100], np.float32)
        self.assertEqual(peer.same_results([one], [one]), 0)
        self.assertLess(peer.same_results([one + np.float32(5e-4)], [one]), 1)
        self.assertGreater(peer.same_results([one * np.float32(1.01)], [one]), 1)
        self.assertGreater(peer.same_results([one * np.float32(np.nan)], [one]), 1)
        with self.assertRaises(ValueError):
            peer.same_results([one[:1]], [one])


class TableTest(CommandTest):
    def row(self, threads, ratio, **more):
        times = {"median_ms": 10.0, "min_ms": 9.0, "p90_ms": 11.0, "alone_ms": 10.0}
        return {"model": "net<1>", "batch": 8, "threads": threads, "disturbed": [], "difference": 0.1, "ratio": ratio,
                "onnxruntime": times, "runnel": {**times, "median_ms": 10 * ratio}, **more}

    def test_summary(self):
        self.assertEqual(compare_ort.summary([0.003, 0.001, 0.002, 0.01]),
                         {"median_ms": 2.5, "min_ms": 1.0, "p90_ms": 10.0})

    def test_rows(self):
        self.assertEqual(compare_ort.time_line(self.row(2, 1.25)), "| net<1> | 8 | 2 | 10.00 | 12.50 | 1.25 |  |")
        line = compare_ort.time_line(self.row(2, 1.25, disturbed=["runnel"], difference=2))
        self.assertTrue(line.endswith("| disturbed: runnel; results differ |"), line)

    def main(self, rows):
        """The exit code for these rows."""
        def give(_, out):
            out += rows
        with mock.patch.object(compare_ort, "compare_times", give), redirect_stdout(io.StringIO()), \
                mock.patch.dict(os.environ), mock.patch("sys.stderr", io.StringIO()):
            return compare_ort.main(["--json", self.path("r.json"), "--folder", self.path("models")])

    def test_disturbed_fails(self):
        self.assertEqual(self.main([self.row(1, 1.0)]), 0)
        self.assertEqual(self.main([self.row(1, 1.0), self.row(2, 1.0, disturbed=["runnel"])]), 1)
        self.assertEqual(self.main([self.row(1, 1.0, difference=1.5)]), 1)

    def test_picture(self):
        self.main([self.row(1, 2.0), self.row(2, 0.5)])
        script = os.path.join(ROOT, "tests", "bench", "plot.py")
        subprocess.run([sys.executable, script, self.path("r.json"), self.path("p.svg")], check=True)
        picture = xml.dom.minidom.parse(self.path("p.svg"))
        widths = [float(rect.getAttribute("width")) for rect in picture.getElementsByTagName("rect")
                  if rect.getAttribute("x") == str(plot.LEFT)]
        self.assertEqual(len(widths), 2)
        self.assertAlmostEqual(widths[0], 4 * widths[1], delta=0.3)
        with open(self.path("r.json"), encoding="utf-8") as file:
            machine = json.load(file)["time"]["machine"]
        self.assertEqual(machine["cores"], len(os.sched_getaffinity(0)))

    def test_cores(self):
        code = "import engines; print(engines.use_cores(1))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              cwd=os.path.join(ROOT, "tests", "bench"))
        self.assertEqual(done.stdout.strip(), str(sorted(os.sched_getaffinity(0))[:1]))
        self.assertEqual(engines.environment(2)["POCL_MAX_PTHREAD_COUNT"], "2")


if __name__ == "__main__":
    unittest.main()
