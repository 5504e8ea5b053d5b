# SPDX-License-Identifier: Apache-2.0
"""A model on several devices: the first one twice, each in a context of its own. No time is judged."""

import json
import os
import unittest

import numpy as np
from onnx import helper

from command import CommandTest

QUICK = ("--repeat", "2", "--seconds", "0", "--warm", "0")
TWICE = ("--device", "0:0,0:0")


class SeveralTest(CommandTest):
    def network(self, rows="n"):
        """x -> MatMul -> Relu -> y."""
        self.weight = np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
        return self.model(nodes, [("x", "float32", [rows, 16])], [("y", "float32", [rows, 32])], {"w": self.weight})

    def shares(self, result, ending):
        """The devices' lines at the end."""
        rows = [line for line in result.lines if line.endswith(ending)]
        self.assertEqual(len(rows), 2, result.stdout)
        return rows

    def test_run_splits_a_batch(self):
        x = np.random.default_rng(1).standard_normal((7, 16)).astype(np.float32)
        np.save(os.path.join(self.folder, "x.npy"), x)
        result = self.succeed("run", self.network(), "-i", "x.npy", "-o", "out", *TWICE)
        self.assertEqual(len([line for line in result.lines if line.startswith("device: ")]), 2)
        y = np.load(os.path.join(self.folder, "out", "y.npy"))
        np.testing.assert_allclose(y, np.maximum(x.astype(np.float64) @ self.weight, 0), rtol=1e-5, atol=1e-5)
        rows = [int(line.split(", ")[-1].split()[0]) for line in self.shares(result, " rows of the batch")]
        self.assertEqual(sum(rows), 7)

    def test_run_of_a_fixed_batch(self):
        result = self.succeed("run", self.network(4), *TWICE, "--repeat", "2")
        self.shares(result, " runs")

    def test_all(self):
        result = self.succeed("run", self.network(), "--device", "all")
        self.assertTrue(result.lines[0].startswith("device: "))

    def test_bench(self):
        result = self.succeed("bench", self.network(), *QUICK, *TWICE, "--shape", "6x16", "--json", "out.json")
        self.assertRegex(result.line("together: "),
                         r"^together: \S+ requests/s; a batch of 6 rows in \S+ ms, \S+ rows/s$")
        self.assertRegex(result.line("that is "), "times the fastest one's requests, and .* times its batches$")
        with open(os.path.join(self.folder, "out.json"), encoding="utf-8") as file:
            written = json.load(file)
        self.assertEqual(sum(device["share"] for device in written["devices"]), 6)
        self.assertGreater(written["requests_per_s"], 0)
        self.assertGreater(written["batch_ms"], 0)

    def test_what_is_for_one_device(self):
        self.misuse("--layers looks at one device; --device names several", command="bench",
                    arguments=("bench", self.network(), *TWICE, "--layers"))

    def test_lists_that_are_wrong(self):
        for devices, message in (("0:0,", "names nothing between its commas"), ("0:0,none of them", "no OpenCL device")):
            result = self.call("run", self.network(), "--device", devices)
            self.assertEqual(result.code, 1)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
