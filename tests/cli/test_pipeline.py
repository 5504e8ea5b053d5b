# SPDX-License-Identifier: Apache-2.0
"""run and bench with --pipeline: stages, results, wrong usage. How a cut is made is tests/model/test_pipeline.py's."""

import json
import unittest

import numpy as np
from onnx import helper

from command import CommandTest

STAGE = (r"^stage (\d) on 0:0: (\d+) nodes from '(\w+)' on, \d+\.\d MiB of weights, \d+\.\d{3} MiB come in, "
         r"\d+\.\d{3} ms measured$")


class PipelineTest(CommandTest):
    def network(self):
        rng = np.random.default_rng(0)
        weights = {f"w{i}": rng.standard_normal((128, 128)).astype(np.float32) / 11 for i in range(6)}
        nodes = [helper.make_node("MatMul", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < 5 else "y"],
                                  name=f"product{i}") for i in range(6)]
        return self.model(nodes, [("x", "float32", ["n", 128])], [("y", "float32", ["n", 128])], weights)

    def test_run(self):
        arguments = ("run", self.network(), "--shape", "8x128", "-o", "out")
        alone = self.outputs(*arguments[1:-2], "--device", "0:0")["y"]
        result = self.succeed(*arguments, "--device", "0:0,0:0", "--pipeline", "--repeat", "3")
        self.assertEqual(sum(line.startswith("device: ") for line in result.lines), 2)
        stages = [line for line in result.lines if line.startswith("stage ")]
        self.assertEqual(len(stages), 2)
        self.assertRegex(stages[0], STAGE)
        self.assertRegex(stages[0], "^stage 0 .* from 'product0' on")
        self.assertRegex(stages[1], STAGE)
        np.testing.assert_allclose(np.load(self.path("out", "y.npy")), alone, rtol=1e-5, atol=1e-6)

    def test_bench(self):
        result = self.succeed("bench", self.network(), "--shape", "8x128", "--device", "0:0,0:0", "--pipeline", "--depth",
                              "3", "--repeat", "1", "--seconds", "0", "--warm", "0", "--json", "out.json")
        for line in ("one device", "pipeline"):
            self.assertRegex(result.line(f"{line}: "), r": \d+\.\d\d batches/s, one alone \d+\.\d{3} ms \(\d+ batches\)$")
        self.assertRegex(result.lines[-1], r"^\d+\.\d\d times one device$")
        with open(self.path("out.json"), encoding="utf-8") as file:
            figures = json.load(file)
        self.assertEqual(len(figures["stages"]), 2)
        self.assertEqual(sum(stage["nodes"] for stage in figures["stages"]), 6)
        self.assertGreater(figures["batches_per_s"], 0)
        self.assertGreater(figures["one_device"]["batches_per_s"], 0)

    def test_misuse(self):
        model = self.network()
        self.misuse("--depth needs --pipeline", arguments=("run", model, "--depth", "2"))
        self.misuse("--layers and --pipeline do not go together", command="bench",
                    arguments=("bench", model, "--layers", "--pipeline"))
        result = self.call("run", self.relu((4,)), "--device", "0:0,0:0", "--pipeline")
        self.assertEqual(result.code, 1)
        self.assertIn("the graph cannot be cut into stages", result.stderr)


if __name__ == "__main__":
    unittest.main()
