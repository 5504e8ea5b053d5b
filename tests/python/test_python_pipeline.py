# SPDX-License-Identifier: Apache-2.0
"""Pipelines from Python, on two devices where there are two, else on one in two contexts: results, stages, what is
refused, and how long arrays live."""

import asyncio
import concurrent.futures
import gc
import json
import os
import signal
import tempfile
import threading
import time
import unittest

import numpy as np
from onnx import helper, numpy_helper

from package import DEVICE, find_slow, model
import runnel  # noqa: E402

FIRST = DEVICE or "0:0"
DEVICES = [FIRST, "basic" if "basic" in os.environ.get("POCL_DEVICES", "") else FIRST]
WIDTH, LAYERS = 64, 6
rng = np.random.default_rng(1)
WEIGHTS = [(rng.standard_normal((WIDTH, WIDTH)) / WIDTH ** 0.5).astype(np.float32) for _ in range(LAYERS)]


def dense(rows="n"):
    """Products and Tanh, with the sum of the second layer's result added at the end."""
    nodes = []
    for i in range(LAYERS):
        nodes += [helper.make_node("MatMul", [f"v{i}" if i else "x", f"w{i}"], [f"p{i}"]),
                  helper.make_node("Tanh", [f"p{i}"], [f"v{i + 1}"])]
    nodes.append(helper.make_node("Add", [f"v{LAYERS}", "v2"], ["y"]))
    return model(nodes, {"x": (1, [rows, WIDTH])}, {"y": (1, [rows, WIDTH]), "v1": (1, [rows, WIDTH])},
                 [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(WEIGHTS)]).SerializeToString()


def expected(x):
    values = [x.astype(np.float64)]
    for weight in WEIGHTS:
        values.append(np.tanh(values[-1] @ weight))
    return values[-1] + values[2], values[1]


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)


def open_dense(**options):
    return runnel.Pipeline(dense(), DEVICES, {"inputs": {"x": rows(2)}, "estimate": True, **options})


class PipelineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pipeline = open_dense()
        found = find_slow(FIRST)
        cls.slow_model, cls.slow_x, cls.slow_y, cls.seconds = found.model, found.x, found.y, found.seconds

    @classmethod
    def tearDownClass(cls):
        cls.pipeline.close()

    def check(self, got, x):
        for value, wanted in zip(got, expected(x)):
            np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)

    def works(self, pipeline=None):
        x = rows(3, 9)
        self.check((pipeline or self.pipeline).run(None, {"x": x}), x)

    def check_slow(self, future):
        np.testing.assert_allclose(future.result(60)[0], self.slow_y, rtol=1e-4, atol=1e-5)

    def open_slow(self, **options):
        return runnel.Pipeline(self.slow_model, DEVICES, {"estimate": True, **options})

    # ---- results

    def test_as_a_session(self):
        self.assertIsInstance(self.pipeline, runnel.Session)
        with runnel.Session(dense(), FIRST) as session:
            self.assertEqual([arg.name for arg in self.pipeline.get_inputs()], ["x"])
            self.assertEqual(self.pipeline.get_outputs(), session.get_outputs())
            for count in (2, 1, 7, 2):
                x = rows(count, count)
                ours = self.pipeline.run(None, {"x": x})
                self.check(ours, x)
                for got, other in zip(ours, session.run(None, {"x": x})):
                    np.testing.assert_allclose(got, other, rtol=1e-5, atol=1e-6)
        again, first, twice = self.pipeline.run(["v1", "y", "y"], {"x": x})
        self.check([first, again], x)
        twice[:] = 0  # each is the caller's own
        self.check([first], x)
        self.assertEqual(self.pipeline.run([], {"x": x}), [])

    def test_several_under_way(self):
        batches = [rows(1 + i % 3, i) for i in range(20)]
        for x, future in zip(batches, [self.pipeline.submit(None, {"x": x}) for x in batches]):
            self.check(future.result(60), x)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for x, got in zip(batches, threads.map(lambda x: self.pipeline.run(None, {"x": x}), batches)):
                self.check(got, x)

        async def together():
            return await asyncio.gather(*[self.pipeline.run_async(None, {"x": x}) for x in batches])

        for x, got in zip(batches, asyncio.run(together())):
            self.check(got, x)

    def test_a_callback_runs_and_closes(self):
        pipeline, seen = open_dense(), []

        def done(future):
            seen.extend([future.result(), pipeline.run(None, {"x": rows(1)})])
            pipeline.close()
            seen.append("closed")

        pipeline.submit(None, {"x": rows(2)}).add_done_callback(done)
        for _ in range(3000):
            if len(seen) == 3:
                break
            time.sleep(0.01)
        self.check(seen[0], rows(2))
        self.check(seen[1], rows(1))
        with self.assertRaises(runnel.FailedPrecondition):
            pipeline.stages()

    # ---- stages and options

    def test_stages(self):
        with open_dense(depth=3) as pipeline:
            for _ in range(4):
                pipeline.run(None, {"x": rows(2)})
            stages = pipeline.stages()
        self.assertEqual(len(stages), 2)
        self.assertEqual([stage.first_node for stage in stages], [0, stages[0].node_count])
        self.assertEqual(sum(stage.node_count for stage in stages), 2 * LAYERS + 1)
        for stage in stages:
            self.assertTrue(stage.first_name)
            self.assertGreaterEqual(stage.weight_bytes, WEIGHTS[0].nbytes)
            self.assertGreater(stage.expected_ns, 0)
            self.assertFalse(stage.is_measured)
            self.assertEqual(stage.run_count, 4)
            self.assertGreater(stage.busy_ns, 0)
        self.assertEqual(stages[0].crossing_bytes, 0)
        self.assertGreaterEqual(stages[1].crossing_bytes, rows(2).nbytes)
        for stage, name in zip(stages, DEVICES):
            with runnel.Device(name) as device:
                self.assertEqual(stage.device.name, device.info.name)

    def test_measured(self):
        with open_dense(estimate=False) as pipeline:
            self.assertTrue(all(stage.is_measured for stage in pipeline.stages()))
            self.works(pipeline)

    def test_memory_decides(self):
        room = 2 * WEIGHTS[0].nbytes + 65536
        with open_dense(memory_bytes=[0, room]) as pipeline:
            self.assertLessEqual(pipeline.stages()[1].weight_bytes, room)
            self.works(pipeline)
        with self.assertRaisesRegex(runnel.ResourceExhausted, "does not fit, however it is cut"):
            open_dense(memory_bytes=[20000, 20000])

    def test_devices(self):
        with runnel.Device(FIRST) as device:
            for given in ([device, device], [device, DEVICES[1]], ",".join(DEVICES), device, FIRST, None, "all"):
                with runnel.Pipeline(dense(2), given, {"estimate": True}) as pipeline:
                    self.check(pipeline.run(None, {"x": rows(2)}), rows(2))
            self.assertEqual(device.info.name, runnel.Device(FIRST).info.name)
        for given, error in (([FIRST, "none of them"], runnel.NotFound), ("none,of,them", runnel.NotFound),
                             ([], runnel.InvalidArgument), ([FIRST, 3], runnel.InvalidArgument),
                             ([FIRST] * 65, runnel.InvalidArgument), ([device], runnel.FailedPrecondition),
                             (3, runnel.InvalidArgument), (FIRST + ",", runnel.InvalidArgument)):
            with self.assertRaises(error):
                runnel.Pipeline(dense(2), given)

    def test_options(self):
        given = runnel.PipelineOptions(inputs={"x": rows(2)}, estimate=True, depth=1, precision="f32")
        with runnel.Pipeline(dense(), DEVICES, given) as pipeline:
            self.works(pipeline)
        with runnel.Pipeline(dense(2), DEVICES, runnel.SessionOptions(deterministic=True)) as pipeline:
            self.check(pipeline.run(None, {"x": rows(2)}), rows(2))
        for wrong in ({"no_such": 1}, {"depth": -1}, {"depth": 65}, {"depth": "2"}, {"memory_bytes": 3},
                      {"memory_bytes": [1]}, {"memory_bytes": [-1, 0]}, {"memory_bytes": [1, 2, 3]}, {"estimate": 1},
                      {"inputs": rows(2)}, {"inputs": {}}, {"inputs": {"z": rows(2)}}, {"inputs": {"x": object()}},
                      {"trace": "out.json"}, {"plan_cache_bytes": -1}):
            with self.assertRaises(runnel.InvalidArgument, msg=str(wrong)):
                open_dense(**wrong)
        with self.assertRaises(runnel.InvalidArgument):
            runnel.Session(dense(), FIRST, given)
        with self.assertRaisesRegex(runnel.FailedPrecondition, "input 'x' leaves dimensions free"):
            runnel.Pipeline(dense(), DEVICES)

    def test_weight_budget(self):
        with open_dense(weight_budget_bytes=3 * WEIGHTS[0].nbytes) as pipeline:
            self.works(pipeline)
        with self.assertRaises(runnel.ResourceExhausted), open_dense(weight_budget_bytes=4096) as pipeline:
            pipeline.run(None, {"x": rows(2)})

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with runnel.Trace(path, every=1) as trace, open_dense(trace=trace) as pipeline:
                self.works(pipeline)
                pipeline.trace(None)
                self.works(pipeline)
                pipeline.trace(trace)
                self.works(pipeline)
            with open(path, encoding="utf-8") as file:
                names = [event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        for name, times in (("batch 1 in stage 0", 1), ("batch 1 in stage 1", 1), ("batch 2 in stage 0", 0),
                            ("batch 3 in stage 1", 1)):
            self.assertEqual(names.count(name), times, name)

    # ---- what fails

    def test_wrong_batches(self):
        good, bad = rows(2), np.zeros((2, WIDTH - 1), np.float32)
        futures = [self.pipeline.submit(None, {"x": x}) for x in (good, bad, good, bad, good)]
        for i, future in enumerate(futures):
            if i % 2:
                with self.assertRaisesRegex(runnel.InvalidArgument, "(?s)input 'x' has shape 2x63; .*stage 0 of 2, on "):
                    future.result(60)
            else:
                self.check(future.result(60), good)
        for names, feed, text in ((None, {}, "input 'x' is missing"), (["z"], {"x": good}, "no output 'z'"),
                                  (None, {"q": good}, "no input 'q'"), (None, [good], "give a dict"),
                                  (None, {"x": good.astype(np.float64)}, "the model expects float32")):
            with self.assertRaisesRegex(runnel.InvalidArgument, text):
                self.pipeline.run(names, feed)
        self.works()

    def test_what_cannot_be_cut(self):
        made = model([helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["y"], to=1)],
                     {"x": (1, [4, 4])}, {"y": (1, None)})
        with self.assertRaisesRegex(runnel.FailedPrecondition, "the graph cannot be cut into stages"):
            runnel.Pipeline(made, DEVICES)

    def test_one_devices_matters(self):
        for call in (lambda: self.pipeline.device, self.pipeline.stats, lambda: self.pipeline.profile({"x": rows(2)})):
            with self.assertRaises(runnel.Unimplemented):
                call()
        self.assertIn("Pipeline", repr(self.pipeline))
        self.assertIn("MatMul", [row.op_type for row in self.pipeline.get_operators()])

    def test_own_operators(self):
        """A callback of a later stage that raises is the reason why its batch fails, and the others come through."""
        def compute(node, x):
            if x[0, 0] == 2:
                raise LookupError("two is not to be had")
            return x + 1

        own = model([helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Own", ["a"], ["b"], domain="com.example"),
                     helper.make_node("Own", ["b"], ["y"], domain="com.example")],
                    {"x": (1, [1, 4])}, {"y": (1, [1, 4])}, domains={"com.example": 1})
        registry = runnel.Registry()
        registry.add("com.example", "Own", infer=lambda node, x: x, compute=compute)
        with runnel.Pipeline(own, DEVICES, {"estimate": True}, registry=registry) as pipeline:
            xs = [np.full((1, 4), i, np.float32) for i in (0, -1, 5, -2, 7)]
            futures = [pipeline.submit(None, {"x": x}) for x in xs]
            for i, (x, future) in enumerate(zip(xs, futures)):
                if i in (1, 3):  # 1 + 1 in the second, 2 in the first
                    with self.assertRaisesRegex(runnel.Internal, "two is not to be had") as caught:
                        future.result(60)
                    self.assertIsInstance(caught.exception.__cause__, LookupError)
                else:
                    np.testing.assert_array_equal(future.result(60)[0], 2 - x)

    # ---- stopping, and how long arrays live

    def test_arrays_live_as_long(self):
        pipeline, futures = self.open_slow(), []
        for _ in range(12):
            futures.append(pipeline.submit(None, {"x": self.slow_x.copy()}))  # nobody else has it
            gc.collect()
            np.full_like(self.slow_x, np.nan)  # takes the memory, were it free
        whole = np.concatenate([self.slow_x, self.slow_x])
        futures.append(pipeline.submit(None, {"x": whole[:len(self.slow_x)]}))
        if not futures[-1].done():
            with self.assertRaises(ValueError):
                whole.resize((3, 3), refcheck=False)
        del pipeline
        gc.collect()
        for future in futures:
            self.check_slow(future)

    def test_cancel(self):
        with self.open_slow() as pipeline:
            pipeline.cancel()
            futures = [pipeline.submit(None, {"x": self.slow_x}) for _ in range(6)]
            while not all(future.done() for future in futures):
                pipeline.cancel()
                time.sleep(0.001)
            for future in futures:
                if future.exception() is None:
                    self.check_slow(future)
                else:
                    self.assertIsInstance(future.exception(), runnel.Cancelled)
            self.assertTrue(any(future.exception() for future in futures))
            self.check_slow(pipeline.submit(None, {"x": self.slow_x}))

    def test_stopping_one_leaves_the_others(self):
        async def impatient(pipeline, others):
            task = asyncio.ensure_future(pipeline.run_async(None, {"x": self.slow_x}))
            others += [pipeline.submit(None, {"x": self.slow_x}) for _ in range(3)]
            await asyncio.sleep(min(0.01, self.seconds / 4))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with self.open_slow() as pipeline:
            others = []
            asyncio.run(impatient(pipeline, others))
            timer = threading.Timer(min(0.01, self.seconds / 4), os.kill, (os.getpid(), signal.SIGINT))
            others += [pipeline.submit(None, {"x": self.slow_x}) for _ in range(3)]
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                for _ in range(1000):
                    pipeline.run(None, {"x": self.slow_x})
            timer.join()
            for future in others:
                self.check_slow(future)
            self.check_slow(pipeline.submit(None, {"x": self.slow_x}))

    def test_closed(self):
        pipeline = self.open_slow()
        futures = [pipeline.submit(None, {"x": self.slow_x}) for _ in range(8)]
        pipeline.close()
        pipeline.close()
        pipeline.cancel()
        for future in futures:
            concurrent.futures.wait([future], 60)
            self.assertTrue(future.done())
            if future.exception() is None:
                self.check_slow(future)
            else:
                self.assertIsInstance(future.exception(), (runnel.Cancelled, runnel.FailedPrecondition))
        for call in (lambda: pipeline.run(None, {"x": self.slow_x}), pipeline.stages, lambda: pipeline.trace(None),
                     lambda: pipeline.submit(None, {"x": self.slow_x})):
            with self.assertRaises(runnel.FailedPrecondition):
                call()
        repr(pipeline)


if __name__ == "__main__":
    unittest.main(verbosity=2)
