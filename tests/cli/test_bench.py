# SPDX-License-Identifier: Apache-2.0
"""What a benchmark prints and writes; no time is judged."""

import json
import os
import re
import tempfile
import unittest

import numpy as np
from onnx import helper

from command import CommandTest

QUICK = ("--repeat", "3", "--seconds", "0", "--warm", "0")
RUN_LINE = (r"^run ms: median (\d+\.\d{3}), min (\d+\.\d{3}), p90 (\d+\.\d{3}); \d+\.\d\d runs/s "
            r"\((\d+) samples, (\d+) runs\)$")
LAYER = r"^ +(\d+) +(\d+\.\d{4}) +(\d+\.\d\d)% +\d+\.\d\d +\d+\.\d\d +\d+% (flops|bytes)  (\S+) +(\S+) +(.*)$"


class BenchTest(CommandTest):
    def network(self):
        """x -> MatMul -> Softmax -> y, for a free number of rows."""
        weight = np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Softmax", ["m"], ["y"])]
        return self.model(nodes, [("x", "float32", ["n", 16])], [("y", "float32", ["n", 32])], {"w": weight})

    def layers(self, result):
        return [match for match in map(lambda line: re.match(LAYER, line), result.lines) if match]

    def test_line(self):
        result = self.succeed("bench", self.network(), *QUICK, "--shape", "8x16")
        self.assertRegex(result.lines[0], r"^device: .+ \(\d+:\d+\)$")
        self.assertEqual(result.lines[1], "input x: not given, random:0 float32 [8,16]")
        median, least, most, samples, runs = re.match(RUN_LINE, result.lines[2]).groups()
        self.assertLessEqual(float(least), float(median))
        self.assertLessEqual(float(median), float(most))
        self.assertEqual(samples, "3")
        self.assertGreaterEqual(int(runs), 3)
        self.assertEqual(len(result.lines), 3)

    def test_precision(self):
        """Where the device cannot, float32 against itself."""
        result = self.call("bench", self.network(), *QUICK, "--shape", "8x16", "--precision", "bf16", "--report")
        self.assertEqual(result.code, 0, result.stderr)
        for message in result.messages:
            self.assertRegex(message, "^runnel: warning: bfloat16 was asked for, but .+ (cannot multiply it in kernels|multiplies it no faster than float32): this")
        line = result.line("y: against float32 ")
        found = re.match(r"^y: against float32 largest difference (\S+), mean (\S+); largest value (\S+)$", line)
        largest, mean, value = map(float, found.groups())
        self.assertLessEqual(mean, largest)
        self.assertLess(largest, 0.1 * value)
        self.assertGreater(value, 0)
        self.succeed("run", self.network(), "--shape", "x=8x16", "--precision", "f32")
        if result.messages:
            self.assertEqual(largest, 0)

    def test_precision_misused(self):
        self.misuse("--precision f16: neither f32 nor bf16", command="bench",
                    arguments=("bench", self.network(), "--precision", "f16"))
        self.misuse("--report needs --precision bf16", arguments=("run", self.network(), "--report"))

    def test_weights_budget(self):
        run = ("run", self.network(), "--shape", "x=8x16", "--weights-budget")
        plain, through = self.succeed(*run[:-1]), self.succeed(*run, "1M")
        self.assertEqual(plain.lines, through.lines)
        self.assertRegex(self.call(*run, "65").stderr, "a budget of 65 bytes for weights is too small")
        for wrong in ("0", "M", "-5", "1T", "5Mx", "99999999999G"):
            self.misuse(f"--weights-budget {wrong}: not a number of bytes, as 300000000, 512M or 2G", arguments=(*run, wrong))

    def test_layers(self):
        result = self.succeed("bench", self.network(), *QUICK, "--layers")
        self.assertRegex(result.line("peak: "), r"^peak: \d+\.\d GFLOP/s, \d+\.\d GB/s ")
        self.assertRegex(result.line("steps: "), r"^steps: \d+\.\d{3} ms of \d+\.\d{3} ms a run, \d+\.\d{3} ms at their ")
        layers = self.layers(result)
        self.assertEqual([int(layer[1]) for layer in layers], list(range(len(layers))))
        self.assertEqual([layer[6] for layer in layers if layer[7] == "product"][-1], "MatMul")
        self.assertIn("y", [layer[7] for layer in layers if layer[6] == "Softmax"])
        self.assertAlmostEqual(sum(float(layer[3]) for layer in layers), 100, delta=0.1)

    def test_layers_by_time(self):
        result = self.succeed("bench", self.network(), *QUICK, "--layers", "--sort", "time")
        times = [float(layer[2]) for layer in self.layers(result)]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_json(self):
        self.succeed("bench", self.network(), *QUICK, "--layers", "--shape", "x=5x16", "--json", "out.json")
        with open(self.path("out.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(len(report["samples_ms"]), 3)
        self.assertEqual(report["min_ms"], report["samples_ms"][0])
        self.assertEqual(report["median_ms"], report["samples_ms"][1])
        self.assertEqual(report["p90_ms"], report["samples_ms"][2])
        self.assertAlmostEqual(report["runs_per_s"], 1000 / report["median_ms"], delta=0.001 * report["runs_per_s"])
        product = [layer for layer in report["layers"] if layer["node"] == "product"][-1]
        self.assertEqual(product["flops"], 2 * 5 * 16 * 32)
        self.assertEqual(product["bytes"], 4 * (5 * 16 + 16 * 32 + 5 * 32))
        peak = report["peak"]
        for layer in report["layers"]:
            self.assertLessEqual(layer["min_ms"], layer["ms"])
            least = max(layer["flops"] / peak["flops_per_s"], layer["bytes"] / peak["bytes_per_s"])
            self.assertAlmostEqual(layer["reached"], least * 1e3 / layer["ms"], delta=1e-6 * layer["reached"])
        self.assertAlmostEqual(sum(layer["ms"] for layer in report["layers"]), report["layers_ms"], places=9)
        self.assertEqual(sum(total["steps"] for total in report["totals"]), len(report["layers"]))

    def test_json_without_layers(self):
        self.succeed("bench", self.network(), *QUICK, "--json", "out.json")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertNotIn("layers", json.load(file))

    def test_model_without_steps(self):
        model = self.model([helper.make_node("Constant", [], ["y"], value_float=2.0)], [], [("y", "float32", [])])
        result = self.succeed("bench", model, *QUICK, "--layers", "--json", "out.json")
        self.assertEqual(self.layers(result), [])

    def test_tune(self):
        result = self.succeed("bench", self.network(), *QUICK, "--shape", "64x16", "--tune")
        self.assertRegex(result.line("tuned: "), r"^tuned: \d+ other kernels? chosen$")
        self.assertRegex(result.line("run ms: "), RUN_LINE)

    def test_tune_model(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.succeed("tune", self.network(), "--shape", "64x16", "--threads", "1",
                                  env={"RUNNEL_CACHE_DIR": folder})
        self.assertRegex(result.line("tuned: "), r"^tuned: \d+ other kernels? chosen$")
        self.assertRegex(result.line("run ms: "), r"^run ms: \d+\.\d+ before, \d+\.\d+ after \(medians of 9\)$")
        self.refuse("none.onnx", arguments=["tune", "none.onnx"])
        self.misuse("no model given", arguments=("tune",), command="tune")
        self.assertIn("runnel tune MODEL", self.succeed("tune", "--help").stdout)

    def test_streams(self):
        result = self.succeed("bench", self.network(), *QUICK, "--streams", "3", "--json", "out.json")
        self.assertRegex(result.line("3 sessions: "),
                         r"^3 sessions: \d+\.\d\d runs/s, \d+\.\d\d times one session's \(3 samples, \d+ runs\)$")
        with open(self.path("out.json"), encoding="utf-8") as file:
            streams = json.load(file)["streams"]
        self.assertEqual(streams["sessions"], 3)
        self.assertAlmostEqual(streams["runs_per_s"] * streams["run_ms"], 1000, delta=1e-6)

    def test_threads(self):
        self.succeed("bench", self.network(), *QUICK, "--threads", "1", "--json", "out.json")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["compute_units"], 1)

    def test_refused(self):
        model = self.network()
        self.refuse("none/out.json", "No such file", arguments=["bench", model, *QUICK, "--json", "none/out.json"])
        self.refuse("none.onnx", arguments=["bench", "none.onnx", *QUICK])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.refuse("/dev/full", "No space", arguments=["bench", self.network(), *QUICK, "--json", "/dev/full"])


class SubjectTest(CommandTest):
    def test_streams(self):
        result = self.succeed("bench", "streams", "--size", "1", "--repeat", "1", "--seconds", "0", "--json", "out.json")
        rows = [line.split() for line in result.lines[3:]]
        self.assertEqual([row[0] for row in rows], ["1", "2", "4", "8"])
        with open(self.path("out.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["bytes"], 1 << 20)
        for row in report["rows"]:
            self.assertEqual(row["ideal_ms"], max(row["copy_ms"], row["compute_ms"]))
            self.assertGreater(row["batch_ms"], 0)

    def test_streams_refused(self):
        for value in ("0", "x", "2000"):
            self.misuse("--size", "whole number from 1 to 1024", arguments=["bench", "streams", "--size", value],
                        command="bench")
        self.misuse("one argument too many", arguments=["bench", "streams", "more"], command="bench")


class UsageTest(CommandTest):
    def misuse(self, *parts, arguments, command="bench", **options):
        return super().misuse(*parts, arguments=arguments, command=command, **options)

    def test_help_names_every_option(self):
        text = self.succeed("bench", "--help").stdout
        for option in ("-i", "--device", "--shape", "--repeat", "--threads", "--verbose", "--seconds", "--warm",
                       "--layers", "--sort", "--json", "--streams"):
            self.assertIn(option, text)
        self.assertEqual(self.succeed("bench", "-h").stdout, text)

    def test_operands(self):
        self.misuse("no model given", arguments=["bench"])
        self.misuse("'b.onnx'", arguments=["bench", "a.onnx", "b.onnx"])

    def test_options(self):
        self.misuse("unknown option '--output'", arguments=["bench", "m.onnx", "--output", "d"])
        self.misuse("unknown option '-o'", arguments=["bench", "m.onnx", "-o", "d"])
        self.misuse("--layers", "takes no value", arguments=["bench", "m.onnx", "--layers=2"])
        for option in ("-i", "--device", "--shape", "--repeat", "--threads", "--seconds", "--warm", "--sort", "--json"):
            self.misuse(option, "missing", arguments=["bench", "m.onnx", option])
        self.misuse("empty", arguments=["bench", "m.onnx", "--json", ""])
        self.misuse("--sort", "neither run nor time", arguments=["bench", "m.onnx", "--layers", "--sort", "name"])
        self.misuse("--sort needs --layers", arguments=["bench", "m.onnx", "--sort", "time"])

    def test_numbers(self):
        for option in ("--seconds", "--warm"):
            for value in ("-1", "x", "", "nan", "inf", "3601", "1s", " 1"):
                self.misuse(option, "not a number from 0 to 3600", arguments=["bench", "m.onnx", option, value])
        for value in ("0", "-1", "1.5"):
            self.misuse("--repeat", arguments=["bench", "m.onnx", "--repeat", value])
            self.misuse("--streams", arguments=["bench", "m.onnx", "--streams", value])

    def test_shared_options_name_this_command(self):
        model = self.relu()
        self.misuse("random:x", arguments=["bench", model, "-i", "random:x"])
        self.misuse("given twice", arguments=["bench", model, "-i", "x=zeros", "-i", "zeros"])
        self.misuse("--mean", "no input is a picture", arguments=["bench", model, "--mean", "1"])
        self.misuse("given twice", arguments=["bench", model, "--shape", "1x4", "--shape", "x=1x4"])


if __name__ == "__main__":
    unittest.main()
