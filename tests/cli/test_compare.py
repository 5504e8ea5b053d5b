# SPDX-License-Identifier: Apache-2.0
"""The scripts that compare with other engines: what they measure is the same work, and who is not measured is stopped."""

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
import build_models  # noqa: E402
import compare  # noqa: E402
import convert  # noqa: E402
import engines  # noqa: E402
import peer  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402


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
        bench_models.check_copy(self.path("one.onnx"), self.path("free.onnx"), (None, 2, 3), engines.ort_outputs)
        array = np.random.default_rng(1).random((5, 2, 3)).astype(np.float32)
        got = engines.ort_outputs(self.path("free.onnx"), array)[0]
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
            bench_models.check_copy(self.path("mixed.onnx"), self.path("mixed.onnx"), (None, 3), engines.ort_outputs)

    def test_inputs(self):
        model = reshaping_model()
        array = bench_models.make_input(model, (2, 2, 3))
        self.assertEqual((array.dtype, array.shape), (np.float32, (2, 2, 3)))
        np.testing.assert_array_equal(array, bench_models.make_input(model, (2, 2, 3)))


class PeerTest(CommandTest):
    def files(self):
        bench_models.save_trivial(self.path("m.onnx"))
        return self.path("m.onnx"), self.save("x.npy", np.full((1, 1, 4, 4), 2, np.float32))

    def state(self, process):
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    def check(self, engine):
        model, data = self.files()
        with peer.Peer(engine, 1, model, data) as worker:
            process = worker.process
            self.assertEqual(len(worker.hello["cores"]), 1)
            np.testing.assert_array_equal(worker.results(), [np.full((1, 1, 4, 4), 2, np.float32)])
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
        with self.assertRaisesRegex(RuntimeError, "the process of onnxruntime ended with 1: .*none.npy"):
            peer.Peer("onnxruntime", 1, self.path("none.onnx"), self.path("none.npy"))

    def test_an_engine_without_a_converter(self):
        model, data = self.files()
        with mock.patch.object(convert.subprocess, "run", lambda *_, **__: mock.Mock(returncode=1, stderr="a\nno such layer\n")):
            with self.assertRaisesRegex(RuntimeError, "not converted: no such layer"):
                convert.model_for("mnn", model, data, self.path("."))
        self.assertEqual(convert.model_for("onnxruntime", model, data, self.path(".")), model)

    def test_low_precision(self):
        self.assertAlmostEqual(peer.part_of_largest([np.array([1, 9.0])], [np.array([0, 10.0])]), 0.1)
        self.assertEqual(peer.part_of_largest([np.array([np.nan, 9])], [np.array([0, 10.0])]), np.inf)
        self.assertLess(compare.judge("runnel", "int8", [np.array([1, 9.0])], [np.array([0, 10.0])]), 1)
        self.assertGreater(compare.judge("runnel", "f32", [np.array([1, 9.0])], [np.array([0, 10.0])]), 1)

    def test_same_results(self):
        one = np.array([1, 100], np.float32)
        self.assertEqual(peer.same_results([one], [one]), 0)
        self.assertLess(peer.same_results([one + np.float32(5e-4)], [one]), 1)
        self.assertGreater(peer.same_results([one * np.float32(1.01)], [one]), 1)
        self.assertGreater(peer.same_results([one * np.float32(np.nan)], [one]), 1)
        with self.assertRaises(ValueError):
            peer.same_results([one[:1]], [one])


class TurnsTest(unittest.TestCase):
    class Stub:
        """Takes as long as it is told, and keeps a record of whose turn it was."""

        def __init__(self, seconds, turns, name):
            self.seconds, self.turns, self.name = seconds, turns, name

        def ask(self, *_):
            pass

        def measure(self, *_):
            self.turns.append(self.name)
            return [self.seconds] * 2

    def test_turns(self):
        turns = []
        peers = {name: self.Stub(seconds, turns, name) for name, seconds in (("a", 0.5), ("b", 0.25))}
        rounds = compare.take_turns(peers, mock.Mock(rounds=2, warm=0, samples=2, sample_ms=0))
        self.assertEqual(turns, ["a", "b", "a", "b"])
        self.assertEqual(compare.ratios(rounds["a"], rounds["b"]), [2, 2])

    def test_disagreement(self):
        self.assertFalse(compare.disagree([1, 1.01, 1.02, 0.5, 2], 0.05))
        self.assertTrue(compare.disagree([1, 1.01, 1.02, 1.2, 2], 0.05))
        self.assertTrue(compare.disagree([1, 1.1], 0.05))


class BuiltTest(CommandTest):
    def test_the_same_each_time(self):
        build_models.build("squeezenet1_1", self.path("a.onnx"))
        build_models.build("squeezenet1_1", self.path("b.onnx"))
        with open(self.path("a.onnx"), "rb") as a, open(self.path("b.onnx"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_results_are_sane(self):
        for name in ("squeezenet1_1", "mobilenetv2"):
            path = build_models.build(name, self.path(name + ".onnx"))
            logits = engines.ort_outputs(path, bench_models.make_input(onnx.load(path), (2, 3, 224, 224)))[0]
            self.assertEqual(logits.shape, (2, 1000))
            self.assertTrue(0.3 < logits.std() < 10, logits.std())
            self.assertGreater(np.abs(logits[0] - logits[1]).max(), 0.1)

    def test_every_case_has_a_source(self):
        for name, case in bench_models.ALL_CASES.items():
            self.assertTrue(case.source or name in build_models.BUILDERS, name)
            self.assertIsNone(case.shape[0])


class TableTest(CommandTest):
    def row(self, threads, ratio, **more):
        def times(median):
            return {"median_ms": median, "min_ms": 9.0, "p90_ms": 11.0}
        return {"model": "net<1>", "batch": 8, "threads": threads, "precision": "f32", "disturbed": [],
                "differences": {"runnel": 0.1}, "speed": {"onnxruntime": ratio, "mnn": 2 * ratio},
                "engines": {"onnxruntime": times(10.0), "runnel": times(10 / ratio), "mnn": times(20.0)},
                "refused": {"ncnn": "not converted: no such layer", "torch": "other results: 3 times what is allowed"}, **more}

    def test_summary(self):
        self.assertEqual(compare.summary([[0.003, 0.001], [0.002, 0.01]]),
                         {"median_ms": 2.5, "min_ms": 1.0, "p90_ms": 10.0})

    NAMES = ["runnel", "onnxruntime", "mnn", "ncnn", "torch"]

    def test_rows(self):
        self.assertEqual(tables.time_line(self.row(2, 1.25), self.NAMES),
                         "| net<1> | 8 | 2 | 8.00 | 10.00 (1.25) | 20.00 (2.50) | no | wrong | 1.25 (onnxruntime) |  |")
        line = tables.time_line(self.row(2, 1.25, disturbed=["mnn"], differences={"runnel": 2}), self.NAMES)
        self.assertTrue(line.endswith("| disturbed: MNN; runnel's results differ |"), line)
        self.assertEqual(tables.refusals([self.row(1, 1.0), self.row(2, 1.0)])[0], "- ncnn, net<1>: not converted: no such layer")

    def test_rows_of_processes(self):
        row = {"model": "m", "threads": 1, "second_ms": {"runnel": 10, "onnxruntime": 20}, "first_ms": 99}
        self.assertEqual(tables.start_line(row, ["runnel", "onnxruntime", "mnn"]), "| m | 1 | 10 | 20 | no | 99 |")
        row = {"model": "m", "threads": 1, "engines": {"runnel": {"above_mib": 5}, "onnxruntime": {"above_mib": 10}}}
        self.assertEqual(tables.memory_line(row, ["runnel", "onnxruntime", "mnn"]), "| m | 1 | 5 | 10 | no | 0.50 |")

    def main(self, rows):
        """The exit code for these rows."""
        def give(_, out):
            out += rows
        with mock.patch.object(compare, "compare_times", give), redirect_stdout(io.StringIO()), \
                mock.patch.dict(os.environ), mock.patch("sys.stderr", io.StringIO()):
            return compare.main(["--json", self.path("r.json"), "--folder", self.path("models"), "--peers", "onnxruntime,mnn"])

    def test_disturbed_fails(self):
        self.assertEqual(self.main([self.row(1, 1.0)]), 0)
        self.assertEqual(self.main([self.row(1, 1.0), self.row(2, 1.0, disturbed=["runnel"])]), 1)
        self.assertEqual(self.main([self.row(1, 1.0, differences={"runnel": 1.5})]), 1)

    def test_report(self):
        self.main([self.row(1, 2.0), self.row(2, 0.5)])
        with open(self.path("doc.md"), "w", encoding="utf-8") as file:
            file.write(f"before\n{report.BEGIN}old\n{report.END}after\n")
        script = os.path.join(ROOT, "tests", "bench", "report.py")
        for _ in range(2):
            subprocess.run([sys.executable, script, self.path("r.json"), self.path("doc.md")], check=True)
        with open(self.path("doc.md"), encoding="utf-8") as file:
            words = file.read()
        self.assertTrue(words.startswith("before\n") and words.endswith("after\n") and "old" not in words, words)
        self.assertEqual(words.count("| net<1> | 8 |"), 2)
        picture = xml.dom.minidom.parse(self.path("doc.svg"))
        widths = [float(rect.getAttribute("width")) for rect in picture.getElementsByTagName("rect")
                  if rect.getAttribute("x") == str(plot.LEFT) and rect.getAttribute("height") == str(plot.BAR)]
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
