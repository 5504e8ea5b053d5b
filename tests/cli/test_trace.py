# SPDX-License-Identifier: Apache-2.0
"""--trace: the file is Chrome trace JSON as Perfetto's importer wants it, and says what the run did."""

import collections
import json
import os
import unittest

import numpy as np
from onnx import helper

from command import COMMAND, CommandTest

NUMBER = (int, float)


class TraceTest(CommandTest):
    def network(self):
        """x -> MatMul 'product' -> Softmax -> y, for a free number of rows."""
        weight = np.linspace(-1, 1, 64 * 96, dtype=np.float32).reshape(64, 96)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name='the "product"'),
                 helper.make_node("Softmax", ["m"], ["y"])]
        return self.model(nodes, [("x", "float32", ["n", 64])], [("y", "float32", ["n", 96])], {"w": weight})

    def read(self, name="trace.json"):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file, parse_constant=self.fail)

    def check_schema(self, trace):
        """What the JSON importer asks for: each event's phase, numbers, names; slices of a thread that nest."""
        self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents", "otherData"})
        threads = collections.defaultdict(list)
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], ("M", "X"))
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["args"], dict)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name", "process_sort_index", "thread_sort_index"))
                self.assertEqual(len(event["args"]), 1)
                continue
            self.assertIsInstance(event["cat"], str)
            self.assertIsInstance(event["ts"], NUMBER)
            self.assertGreaterEqual(event["dur"], 0)
            threads[event["pid"], event["tid"]].append(event)
        for events in threads.values():
            self.check_nested(events)
        return threads

    def check_nested(self, events):
        """In the file's order: a slice starts no earlier than the one before it, and lies within all that are open."""
        ends, before = [], 0
        for event in events:
            start, end = event["ts"], event["ts"] + event["dur"]
            self.assertGreaterEqual(start, before)
            while ends and ends[-1] <= start + 0.0011:
                ends.pop()
            if ends:
                self.assertLessEqual(end, ends[-1] + 0.0011, event)
            ends.append(end)
            before = start

    def named(self, trace, kind):
        return {(event["pid"], event["tid"] if kind == "thread_name" else 0): event["args"]["name"]
                for event in trace["traceEvents"] if event["name"] == kind}

    def test_run(self):
        result = self.succeed("run", self.network(), "--shape", "32x64", "--repeat", "2", "--trace", "trace.json")
        self.assertRegex(result.line("trace: "), r"^trace: \d+ commands and \d+ spans in trace\.json; ")
        trace = self.read()
        threads = self.check_schema(trace)
        self.assertEqual(trace["otherData"]["dropped"], 0)
        self.assertEqual(trace["otherData"]["unfinished"], 0)
        host = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
        names = [event["name"] for event in host]
        self.assertEqual(names.count("run"), 3)
        self.assertEqual(names.count("plan"), 1)
        self.assertTrue(any(name.startswith(("compile ", "load ")) for name in names), names)
        self.assertEqual(self.named(trace, "process_name")[1, 0], "host")
        self.assertIn("session", self.named(trace, "thread_name").values())
        self.assertEqual({pid for pid, _ in threads}, {1, 2})
        self.check_steps(trace, host)

    def check_steps(self, trace, host):
        """The product, three times, with what is known of it, within its run."""
        runs = [event for event in host if event["name"] == "run"]
        found = [event for event in trace["traceEvents"] if event["name"].startswith('the "product" ')]
        self.assertEqual(len(found), 3)
        for event, run in zip(found, runs):
            args = event["args"]
            self.assertEqual(args["operator"], "MatMul")
            self.assertEqual(args["shapes"], "32x64, 64x96 -> 32x96")
            self.assertEqual(args["flops"], 2 * 32 * 64 * 96)
            self.assertAlmostEqual(args["GFLOP/s"], args["flops"] / event["dur"] * 1e-3, delta=0.02 * args["GFLOP/s"])
            self.assertLessEqual(args["queued"], args["submitted"] + 0.0011)
            self.assertLessEqual(args["submitted"], event["ts"] + 0.0011)
            self.assertGreaterEqual(args["waited_us"], 0)
            self.assertGreater(event["ts"], run["ts"] - 1000)
            self.assertLess(event["ts"] + event["dur"], run["ts"] + run["dur"] + 1000)

    def test_bench(self):
        result = self.succeed("bench", self.network(), "--repeat", "4", "--seconds", "0", "--warm", "0", "--trace",
                              "trace.json")
        self.assertRegex(result.line("traced run ms: "),
                         r"^traced run ms: median \d+\.\d{3}, min \d+\.\d{3}; \d+\.\d{3} times the median without$")
        trace = self.read()
        self.check_schema(trace)
        runs = [event for event in trace["traceEvents"] if event["name"] == "run"]
        self.assertEqual(len(runs), 6)  # the first, one after the samples, and four

    def test_bad_path(self):
        for path, code in (("none/trace.json", "No such file"), ("/proc/trace.json", "")):
            self.refuse(path, code, "writing a trace", arguments=("run", self.network(), "--trace", path))
        self.misuse("--trace: the value is empty", arguments=("run", self.network(), "--trace", ""))

    def test_disk_full(self):
        preload = os.path.join(os.path.dirname(COMMAND), "libdisk_full.so")
        if not os.path.exists(preload):
            self.skipTest("a build with sanitizers has no library to preload")
        os.mkdir(self.path("full"))
        self.refuse("No space left on device", "full/trace.json", arguments=(
            "run", self.network(), "--trace", "full/trace.json"),
            env={"LD_PRELOAD": preload, "TEST_FULL_FOLDER": self.path("full")})
        self.assert_no_files(self.path("full"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
