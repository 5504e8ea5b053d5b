# SPDX-License-Identifier: Apache-2.0
"""runnel info: devices and caches, and what a model is made of."""

import json
import os
import unittest

import numpy as np
from onnx import helper

from command import CommandTest


class DevicesTest(CommandTest):
    def test_text(self):
        result = self.succeed("info", env={"RUNNEL_CACHE_DIR": self.path("cache")})
        self.assertRegex(result.lines[0], r"^platform \d+: .+")
        self.assertEqual(sum("(default)" in line for line in result.lines), 1, result.stdout)
        self.assertEqual(result.line("cache programs: "), f"cache programs: {self.path('cache')}, 0 files, 0 bytes")

    def test_json(self):
        facts = json.loads(self.succeed("info", "--json", env={"RUNNEL_CACHE_DIR": self.path("cache")}).stdout)
        self.assertEqual(sum(device["default"] for device in facts["devices"]), 1)
        device = next(device for device in facts["devices"] if device["default"])
        self.assertEqual(facts["default_device"], f"{device['platform_index']}:{device['device_index']}")
        self.assertIn({"index": device["platform_index"], "name": device["platform"]}, facts["platforms"])
        self.assertIn(device["type"], ("cpu", "gpu", "accelerator", "other"))
        for key in ("compute_units", "global_memory_bytes", "max_allocation_bytes", "local_memory_bytes"):
            self.assertGreater(device[key], 0, key)
        cache = next(row for row in facts["caches"] if row["name"] == "programs")
        self.assertEqual((cache["folder"], cache["exists"]), (self.path("cache"), False))

    def test_cache_size(self):
        os.mkdir(self.path("cache"))
        self.write("cache/a", b"12345")
        facts = json.loads(self.succeed("info", "--json", env={"RUNNEL_CACHE_DIR": self.path("cache")}).stdout)
        cache = next(row for row in facts["caches"] if row["name"] == "programs")
        self.assertEqual((cache["bytes"], cache["files"], cache["exists"]), (5, 1, True))

    def test_cache_off(self):
        result = self.succeed("info", env={"RUNNEL_CACHE": "off"})
        self.assertEqual(result.line("cache programs: "), "cache programs: off")
        facts = json.loads(self.succeed("info", "--json", env={"RUNNEL_CACHE": "off"}).stdout)
        self.assertIsNone(next(row for row in facts["caches"] if row["name"] == "programs")["folder"])

    def test_the_default_is_what_runs(self):
        facts = json.loads(self.succeed("info", "--json").stdout)
        device = self.succeed("run", self.relu()).lines[0]
        self.assertTrue(device.endswith(f"({facts['default_device']})"), device)


class ModelTest(CommandTest):
    def sample(self, **more):
        weights = {"w": np.zeros((4, 5), np.float32), "b": np.zeros(5, np.float32)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
                 helper.make_node("Relu", ["u"], ["v"]), helper.make_node("Relu", ["v"], ["y"])]
        return self.model(nodes, [("x", "float32", ["batch", 4])], [("y", "float32", ["batch", 5])], weights, **more)

    def test_text(self):
        model = self.sample(metadata={"author": "me", "long": "z" * 5000, "odd": "a\x1b[2Jb\nc"})
        result = self.succeed("info", model)
        self.assertIn("producer: tests 1.2", result.lines)
        self.assertIn("opset 17, IR version 8, 4 nodes, 2 initializers, 25 parameters", result.lines)
        self.assertIn("input x: float32 [batch,4]", result.lines)
        self.assertIn("output y: float32 [batch,5]", result.lines)
        self.assertIn("metadata author: me", result.lines)
        self.assertIn("metadata odd: a?[2Jb?c", result.lines)
        self.assertRegex(result.line("metadata long: "), r"^metadata long: z{50,100}… \(5000 bytes\)$")
        self.assertEqual([line for line in result.lines if line.startswith("operator ")],
                         ["operator Add: 1, supported", "operator MatMul: 1, supported",
                          "operator Relu: 2, supported"])

    def test_json(self):
        facts = json.loads(self.succeed("info", self.sample(metadata={"long": "z" * 5000}), "--json").stdout)
        self.assertEqual(facts["inputs"], [{"name": "x", "type": "float32", "shape": ["batch", 4]}])
        self.assertEqual(facts["outputs"], [{"name": "y", "type": "float32", "shape": ["batch", 5]}])
        self.assertEqual((facts["opset"], facts["ir_version"], facts["parameters"]), (17, 8, 25))
        self.assertEqual(facts["metadata"], [{"key": "long", "value": "z" * 5000}])
        self.assertEqual([(row["operator"], row["count"], row["supported"]) for row in facts["operators"]],
                         [("Add", 1, True), ("MatMul", 1, True), ("Relu", 2, True)])

    def test_on_a_device(self):
        model = self.sample()
        result = self.succeed("info", model, "--shape", "x=3x4")
        self.assertTrue(result.lines[0].startswith("device: "), result.stdout)
        self.assertRegex(result.line("operator MatMul: "), r"^operator MatMul: 1, supported; \S+ x1$")
        self.assertRegex(result.line("operator Relu: "), r"^operator Relu: 2, supported; .*x[12]$")
        facts = json.loads(self.call("info", "--json", model, "--device", "cpu").stdout)
        rows = {row["operator"]: row["runs_as"] for row in facts["operators"]}
        self.assertEqual([(use["within"], use["steps"]) for use in rows["MatMul"]], [(False, 1)])
        self.assertEqual(sum(use["steps"] for use in rows["Relu"]), 2)
        plain = json.loads(self.succeed("info", "--json", model).stdout)["operators"]
        self.assertEqual([row["runs_as"] for row in plain], [None, None, None])

    def test_what_is_no_step(self):
        model = self.model([helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
                           [("x", "float32", [2, 3])], [("y", "float32", [3, 2])])
        result = self.succeed("info", model, "--device", "cpu")
        self.assertEqual(result.line("operator Transpose: "),
                         "operator Transpose: 1, supported; no step: views, or computed while planning")

    def test_a_device_that_is_not_there(self):
        self.refuse("no such device", arguments=["info", self.sample(), "--device", "no such device"])
        self.misuse("need a model", arguments=["info", "--device", "cpu"], command="info")

    def test_free_dimension_without_a_name(self):
        self.assertIn("input x: float32 [?,3]", self.succeed("info", self.identity("float32", [None, 3])).lines)

    def test_needs_no_device(self):
        os.mkdir(self.path("empty"))
        self.succeed("info", self.sample(), env={"OCL_ICD_VENDORS": self.path("empty")})

    def unsupported(self):
        nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Frobnicate", ["t"], ["u"], name="frob"),
                 helper.make_node("Twist", ["u"], ["y"], domain="com.example")]
        return self.model(nodes, [("x", "float32", [4])], [("y", "float32", [4])], domains=["com.example"])

    def test_unsupported(self):
        result = self.refuse("2 of 3 nodes", arguments=["info", self.unsupported()])
        self.assertIn("input x: float32 [4]", result.lines)
        self.assertIn("operator Relu: 1, supported", result.lines)
        self.assertRegex(result.line("operator Frobnicate: "), r"1, 1 NOT supported: .+")
        self.assertRegex(result.line("operator com.example.Twist: "), r"1, 1 NOT supported: .+")

    def test_unsupported_json(self):
        result = self.refuse("2 of 3 nodes", arguments=["info", "--json", self.unsupported()])
        rows = {row["operator"]: row for row in json.loads(result.stdout)["operators"]}
        self.assertEqual([rows[name]["supported"] for name in ("Frobnicate", "Relu", "Twist")], [False, True, False])
        self.assertTrue(rows["Twist"]["reason"])

    def test_unsupported_does_not_run(self):
        result = self.refuse("2 of 3 nodes", arguments=["run", self.unsupported(), "-o", "out"])
        self.assert_no_files(self.path("out"))
        for part in ("(Frobnicate 'frob')", "com.example", "model.onnx"):
            self.assertIn(part, result.stderr)


if __name__ == "__main__":
    unittest.main()
