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
        self.assertEqual((trace["otherData"]["runs"], trace["otherData"]["recorded_runs"]), (3, 3))
        self.assertIn("; 3 of 3 runs; ", result.line("trace: "))
        host = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
        names = [event["name"] for event in host]
        self.assertEqual(names.count("run"), 3)
        self.assertEqual(names.count("plan"), 1)
        self.assertTrue(any(name.startswith(("compile ", "load ")) for name in names), names)
        self.assertEqual(self.named(trace, "process_name")[1, 0], "host")
        self.assertIn("session 1", self.named(trace, "thread_name").values())
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
                         r"^traced run ms: median \d+\.\d{3}, min \d+\.\d{3}; \d+\.\d{3} times the runs right before "
                         r"\(4 of each\)$")
        self.assertRegex(result.line("traced automatically: "),
                         r"^traced automatically: one run in \d+ is, and all take \d\.\d{3} times as long on average$")
        trace = self.read()
        self.check_schema(trace)
        runs = [event for event in trace["traceEvents"] if event["name"] == "run"]
        self.assertEqual(len(runs), 5)  # the first, and one behind each sample
        self.assertEqual(list(self.named(trace, "thread_name").values()), ["host thread 1", "session 1"])

    def test_bench_of_many_samples(self):
        self.succeed("bench", self.network(), "--repeat", "21", "--seconds", "0", "--warm", "0", "--trace", "trace.json")
        runs = [event for event in self.read()["traceEvents"] if event["name"] == "run"]
        self.assertEqual(len(runs), 8)  # the first, and behind each third sample of 21

    def test_as_many_as_cost_little(self):
        """The first five, then some of 96; which, the times say."""
        self.succeed("run", self.network(), "--repeat", "100", "--trace", "trace.json")
        trace = self.read()
        self.check_schema(trace)
        runs = sorted(event["ts"] for event in trace["traceEvents"] if event["name"] == "run")
        self.assertEqual(trace["otherData"]["runs"], 101)
        self.assertEqual(trace["otherData"]["recorded_runs"], len(runs))
        self.assertGreater(len(runs), 5 + 5)
        self.assertLess(len(runs), 101)  # some were not, to see what they take
        self.succeed("run", self.network(), "--repeat", "100", "--trace", "trace.json", "--trace-every", "1")
        self.assertEqual(self.read()["otherData"]["recorded_runs"], 101)

    def test_every_third_run(self):
        self.succeed("run", self.network(), "--repeat", "6", "--trace", "trace.json", "--trace-every", "3")
        trace = self.read()
        self.check_schema(trace)
        slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertEqual(sum(event["name"] == "run" for event in slices), 3)  # the first, fourth and seventh
        self.assertEqual(sum(event["name"].startswith('the "product" ') for event in slices), 3)
        self.assertEqual(sum(event["name"].startswith("enqueue ") for event in slices), 3)
        self.misuse("--trace-every needs --trace", arguments=("run", self.network(), "--trace-every", "3"))
        self.misuse("--trace-every", "not a whole number from 1",
                    arguments=("run", self.network(), "--trace", "t", "--trace-every", "0"))

    # ---- Several devices --------------------------------------------------------------------------------------------

    def chain(self):
        rng = np.random.default_rng(0)
        weights = {f"w{i}": rng.standard_normal((128, 128)).astype(np.float32) / 11 for i in range(6)}
        nodes = [helper.make_node("MatMul", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < 5 else "y"],
                                  name=f"product{i}") for i in range(6)]
        return self.model(nodes, [("x", "float32", ["n", 128])], [("y", "float32", ["n", 128])], weights)

    def pair(self):
        """Halves of the first device."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("a device with two compute units is needed")
        return "0:0/2.0", "0:0/2.1"

    def slices(self, trace):
        """Those of the host, and each track's by its name."""
        tracks, host = self.named(trace, "thread_name"), []
        of_tracks = collections.defaultdict(list)
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["pid"] == 1:
                host.append(event)
            elif event["ph"] == "X" and event["cat"] != "wait":
                of_tracks[tracks[event["pid"], event["tid"]]].append(event)
        return host, of_tracks

    def inside(self, event, spans, trace):
        """The spans that the event lies in, as far as the clocks tell."""
        error = trace["otherData"]["clock_error_ns"] / 1000 + 1000
        return [span for span in spans if span["ts"] - error <= event["ts"] and
                event["ts"] + event["dur"] <= span["ts"] + span["dur"] + error]

    def test_several_devices(self):
        pair = self.pair()
        self.succeed("run", self.chain(), "--shape", "9x128", "--device", ",".join(pair), "--repeat", "3", "--trace",
                     "trace.json")
        trace = self.read()
        self.check_schema(trace)
        self.assertEqual(trace["otherData"]["unfinished"], 0)
        host, tracks = self.slices(trace)
        self.assertEqual(set(tracks), {f"{spec} session 1" for spec in pair})
        processes = self.named(trace, "process_name")
        self.assertEqual(len(processes), 3)
        self.assertEqual(sorted(name.split()[0] for name in processes.values()), sorted(["host", *pair]))
        batches = [span for span in host if span["name"] == "batch of 9 rows"]
        self.assertGreaterEqual(len(batches), 3)
        for spec in pair:
            requests = [span for span in host if span["name"].startswith("request ") and span["name"].endswith(f"on {spec}")]
            steps = [event for event in tracks[f"{spec} session 1"] if event["name"].startswith("product")]
            self.assertTrue(requests and steps)
            for step in steps:
                self.assertTrue(self.inside(step, requests, trace), step)
        in_batches = [span for span in host if span["name"].startswith("request ") and self.inside(span, batches, trace)]
        self.assertGreaterEqual(len(in_batches), len(batches))

    def test_pipeline(self):
        pair = self.pair()
        result = self.succeed("run", self.chain(), "--shape", "9x128", "--device", ",".join(pair), "--pipeline", "--repeat",
                              "3", "--trace", "trace.json")
        for i, spec in enumerate(pair):
            self.assertRegex(result.line(f"stage {i} "), f"^stage {i} on {spec}: ")
        trace = self.read()
        self.check_schema(trace)
        host, tracks = self.slices(trace)
        self.assertEqual(set(tracks), {f"stage {i} on {spec}" for i, spec in enumerate(pair)})
        spans = {span["name"]: span for span in host if span["name"].startswith("batch ")}
        self.assertEqual(set(spans), {f"batch {n} in stage {i}" for n in range(1, 5) for i in range(2)})
        for i, spec in enumerate(pair):
            steps = [event for event in tracks[f"stage {i} on {spec}"] if event["name"].startswith("product")]
            of_stage = [spans[f"batch {n} in stage {i}"] for n in range(1, 5)]
            self.assertEqual(len(steps) % 4, 0)
            self.assertTrue(steps)
            for step in steps:
                self.assertTrue(self.inside(step, of_stage, trace), step)
        for n in range(1, 5):
            first, second = (spans[f"batch {n} in stage {i}"] for i in range(2))
            self.assertLessEqual(first["ts"] + first["dur"], second["ts"] + 1)  # one clock
        names = {event["name"].split()[0] for events in tracks.values() for event in events}
        self.assertLessEqual({f"product{i}" for i in range(6)}, names)

    def test_bench_of_several(self):
        quick = ("--shape", "4x128", "--repeat", "3", "--seconds", "0", "--warm", "0", "--trace", "trace.json")
        devices = ("--device", ",".join(self.pair()))
        result = self.succeed("bench", self.chain(), *devices, *quick)
        self.assertRegex(result.line("traced: "), r"^traced: \d+\.\d\d requests/s, \d+\.\d{3} of those without$")
        trace = self.read()
        self.check_schema(trace)
        self.assertTrue(any(name.endswith(" session 1") for name in self.slices(trace)[1]))
        result = self.succeed("bench", self.chain(), *devices, "--pipeline", *quick)
        self.assertRegex(result.line("traced: "), r"^traced: \d+\.\d\d batches/s, \d+\.\d{3} of those without$")
        trace = self.read()
        self.check_schema(trace)
        host, tracks = self.slices(trace)
        self.assertEqual(len(tracks), 2)
        batches = [span for span in host if span["name"].startswith("batch ")]
        self.assertGreaterEqual(len(batches), 3 * 2)
        self.assertLess(len(batches), 200)  # those of the samples are not among them

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
