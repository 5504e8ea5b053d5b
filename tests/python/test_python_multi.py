# SPDX-License-Identifier: Apache-2.0
"""Several devices from Python: the test's device twice, each in a context of its own."""

import asyncio
import concurrent.futures
import json
import os
import tempfile
import unittest

import numpy as np
from onnx import helper, numpy_helper, TensorProto

from package import find_slow  # which finds the libraries
import runnel

WEIGHT = np.linspace(-1, 1, 8 * 5, dtype=np.float32).reshape(8, 5)


def model(rows="n"):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 5])], [numpy_helper.from_array(WEIGHT, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def picture(rows):
    return np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)


class MultiTest(unittest.TestCase):
    def check(self, session, rows):
        x = picture(rows)
        y, = session.run(None, {"x": x})
        np.testing.assert_allclose(y, x.astype(np.float64) @ WEIGHT, rtol=1e-5, atol=1e-5)

    def test_batches(self):
        with runnel.open(model(), device=["0:0", "0:0"]) as session:
            for rows in (0, 1, 2, 3, 7, 7, 31):
                self.check(session, rows)
            self.assertEqual(sum(row.share for row in session.shares()), 31)

    def test_threads(self):
        with runnel.open(model(), device="0:0,0:0") as session:
            with concurrent.futures.ThreadPoolExecutor(4) as threads:
                list(threads.map(lambda rows: self.check(session, rows), [1, 2, 3, 4] * 4))
            futures = [session.submit(["y"], {"x": picture(2)}) for _ in range(8)]
            for future in futures:
                self.assertEqual(future.result()[0].shape, (2, 5))

    def test_fixed_batch(self):
        with runnel.open(model(4), device="0:0,0:0") as session:
            self.check(session, 4)
            with self.assertRaises(runnel.InvalidArgument):
                session.run(None, {"x": picture(3)})
            self.check(session, 4)

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder, runnel.open(model(), device="0:0,0:0") as session:
            path = os.path.join(folder, "trace.json")
            with runnel.Trace(path) as trace:
                session.trace(trace)
                self.check(session, 7)
                self.check(session, 7)
                session.trace(None)
                self.check(session, 7)
            with open(path, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
            tracks = [event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] > 1]
            self.assertEqual([(track[:3], track.split(" ", 1)[1]) for track in tracks], [("0:0", "session 1")] * 2)
            names = [event["name"] for event in events if event["ph"] == "X"]
            self.assertIn("batch of 7 rows", names)
            self.assertTrue(any(name.startswith("request ") and " on 0:0" in name for name in names), names)

    def test_every_third_run(self):
        with tempfile.TemporaryDirectory() as folder, runnel.open(model(), device="0:0") as session:
            path = os.path.join(folder, "trace.json")
            with runnel.Trace(path, every=3) as trace:
                session.trace(trace)
                for _ in range(7):
                    self.check(session, 2)
            with open(path, encoding="utf-8") as file:
                names = [event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
            self.assertEqual(names.count("run"), 3)
        for every in (0, -1, 2**32 - 1, 1.5, "all"):
            with self.assertRaisesRegex(runnel.InvalidArgument, "a whole number from 1 on"):
                runnel.Trace(every=every)

    def test_one_device(self):
        with runnel.open(model(), device="0:0") as session:
            self.assertNotIsInstance(session, runnel.MultiSession)
            self.check(session, 3)

    def test_lists(self):
        with runnel.Device("0:0") as device:
            for given in ([device, "0:0"], ("0:0", device), ["0:0,0:0"]):
                with runnel.open(model(), device=given) as session:
                    self.assertEqual(len(session.shares()), 2)
                    self.check(session, 3)
            with runnel.open(model(), device=[device]) as session:
                self.assertIs(session.device, device)
        for given, error in (([], runnel.InvalidArgument), (["0:0", 3], runnel.InvalidArgument),
                             (["0:0", device], runnel.FailedPrecondition), (["0:0"] * 65, runnel.InvalidArgument)):
            with self.assertRaises(error):
                runnel.open(model(), device=given)

    def test_options(self):
        given = {"deterministic": True, "precision": "f32", "weight_budget_bytes": 1 << 20}
        with runnel.open(model(), "0:0,0:0", given) as session:
            self.check(session, 3)
        for rows in (1, 2):  # whole, and split; there are 160 bytes of weights
            with self.assertRaisesRegex(runnel.ResourceExhausted, "64 bytes for weights is too small"):
                with runnel.open(model(), "0:0,0:0", {"weight_budget_bytes": 64}) as session:
                    session.run(None, {"x": picture(rows)})

    def test_a_stopped_run_leaves_the_others(self):
        found = find_slow("0:0")
        x = found.x

        async def impatient(session):
            tasks = [asyncio.ensure_future(session.run_async(None, {"x": x})) for _ in range(4)]
            await asyncio.sleep(0.001)
            tasks[0].cancel()
            with self.assertRaises(asyncio.CancelledError):
                await tasks[0]
            expected, = await session.run_async(None, {"x": x})
            for task in tasks[1:]:
                np.testing.assert_allclose((await task)[0], expected, rtol=1e-4, atol=1e-5)

        with runnel.open(found.model, "0:0,0:0") as session:
            asyncio.run(impatient(session))

    def test_closed(self):
        session = runnel.open(model(), device="0:0,0:0")
        session.close()
        session.close()
        with self.assertRaises(runnel.FailedPrecondition):
            session.run(None, {"x": picture(2)})
        with self.assertRaises(runnel.NotFound):
            runnel.open(model(), device="0:0,none of them")


if __name__ == "__main__":
    unittest.main()
