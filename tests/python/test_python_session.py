# SPDX-License-Identifier: Apache-2.0
"""The Python package from its users' side: what a model is, runs, types, memory, profiles."""

import gc
import json
import os
import tempfile
import unittest

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import helper

from package import DEVICE, model, relu
import runnel  # noqa: E402


class Lender:
    """Has nothing but DLPack, as tensors of other libraries."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(DEVICE)
        cls.session = runnel.Session(relu().SerializeToString(), cls.device)
        cls.x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)

    @classmethod
    def tearDownClass(cls):
        cls.session.close()
        cls.device.close()

    def test_devices(self):
        devices = runnel.get_devices()
        self.assertIn(self.device.info.id, [device.id for device in devices])
        self.assertEqual(sum(device.is_default for device in devices), 1)
        self.assertIn(devices[0].type, ("cpu", "gpu", "accelerator", "other"))
        self.assertGreater(self.device.stats()["pool_budget_bytes"], 0)

    def test_as_onnxruntime_describes_it(self):
        peer = onnxruntime.InferenceSession(relu().SerializeToString())
        for which in ("get_inputs", "get_outputs"):
            ours, theirs = getattr(self.session, which)(), getattr(peer, which)()
            self.assertEqual([(a.name, a.shape, a.type) for a in ours], [(a.name, a.shape, a.type) for a in theirs])
        meta, other = self.session.get_modelmeta(), peer.get_modelmeta()
        self.assertEqual((meta.producer_name, meta.graph_name, meta.custom_metadata_map),
                         (other.producer_name, other.graph_name, other.custom_metadata_map))
        self.assertEqual((meta.opset, meta.node_count), (17, 1))
        self.assertEqual([(o.op_type, o.node_count, o.unsupported_count) for o in self.session.get_operators()],
                         [("Relu", 1, 0)])

    def test_run(self):
        expected = np.maximum(self.x, 0)
        for names in (None, ["y"], ("y",)):
            got, = self.session.run(names, {"x": self.x})
            np.testing.assert_array_equal(got, expected)
            self.assertEqual(got.dtype, np.float32)
        self.assertEqual(self.session.run([], {"x": self.x}), [])
        first, second = self.session.run(["y", "y"], {"x": self.x})
        first[:] = 7
        np.testing.assert_array_equal(second, expected)
        self.assertEqual(self.session.run(None, {"x": np.zeros((0, 4), np.float32)})[0].shape, (0, 4))

    def test_sources_of_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "modèle.onnx")
            with open(path, "wb") as file:
                file.write(relu().SerializeToString())
            for source in (path, os.fsencode(path), relu(), bytearray(relu().SerializeToString())):
                if isinstance(source, bytes):
                    source = os.fsdecode(source)
                with runnel.Session(source, self.device, {"plan_cache_bytes": 1 << 20, "precision": "f32",
                                                          "weight_budget_bytes": 1 << 30,
                                                          "deterministic": True}) as session:
                    np.testing.assert_array_equal(session.run(None, {"x": self.x})[0], np.maximum(self.x, 0))

    def test_outputs_are_the_callers(self):
        with runnel.Session(relu(), self.device) as session:
            first, = session.run(None, {"x": self.x})
            second, = session.run(None, {"x": -self.x})
            self.assertFalse(np.shares_memory(first, second))
        gc.collect()
        np.testing.assert_array_equal(first, np.maximum(self.x, 0))
        np.testing.assert_array_equal(second, np.maximum(-self.x, 0))
        first += 1  # writable

    def test_arrays_of_other_layouts(self):
        wide = np.arange(-24, 24, dtype=np.float32).reshape(6, 8)
        for array in (wide[::2, ::2], wide[::-2, 3::-1], np.asfortranarray(wide[:3, :4]), self.x.astype(">f4"),
                      np.broadcast_to(wide[0, :4], (3, 4)), self.x.tolist(), Lender(self.x)):
            expected = np.maximum(np.asarray(array.array if isinstance(array, Lender) else array), 0)
            np.testing.assert_array_equal(self.session.run(None, {"x": array})[0], expected)
        locked = self.x.copy()
        locked.flags.writeable = False
        np.testing.assert_array_equal(self.session.run(None, {"x": locked})[0], np.maximum(self.x, 0))

    def test_dlpack_out(self):
        got, = self.session.run(None, {"x": self.x})
        np.testing.assert_array_equal(np.from_dlpack(got), got)

    def test_unaligned(self):
        memory = np.zeros(52, np.uint8)
        for offset in range(4):
            array = memory[offset:offset + 48].view(np.float32) if offset == 0 else np.frombuffer(
                b"\0" * offset + self.x.tobytes(), np.float32, offset=offset).reshape(3, 4)
            if offset == 0:
                array[:] = self.x.reshape(-1)
                array = array.reshape(3, 4)
            np.testing.assert_array_equal(self.session.run(None, {"x": array})[0], np.maximum(self.x, 0))

    def test_types(self):
        kinds = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
                 9: np.bool_, 10: np.float16, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16}
        if self.device.info.has_fp64:
            kinds[11] = np.float64
        for code, dtype in kinds.items():
            made = model([helper.make_node("Transpose", ["x"], ["y"])], {"x": (code, [3, 5])}, {"y": (code, [5, 3])})
            array = (np.arange(15).reshape(3, 5) % 2 if dtype is np.bool_ else np.arange(15).reshape(3, 5)).astype(dtype)
            with runnel.Session(made, self.device) as session:
                got, = session.run(None, {"x": array})
            self.assertEqual(got.dtype, np.dtype(dtype))
            np.testing.assert_array_equal(got, array.T)

    def test_scalar(self):
        made = model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (1, [])}, {"y": (1, [])})
        with runnel.Session(made, self.device) as session:
            for value in (1.5, np.float32(1.5), np.array(1.5, np.float32)):
                got, = session.run(None, {"x": value})
                self.assertEqual((got.shape, got[()]), ((), 3))

    def test_profile_and_stats(self):
        steps = self.session.profile({"x": self.x})
        self.assertIn("Relu", [step.op_type for step in steps])
        self.assertTrue(all(step.time_ns >= 0 and step.implementation for step in steps))
        self.session.run(None, {"x": self.x})
        self.assertGreater(self.session.stats()["plan_count"], 0)

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with runnel.Trace(path) as trace:
                self.session.trace(trace)
                with trace.span("two runs"):
                    self.session.run(None, {"x": self.x})
                    self.session.submit(None, {"x": self.x}).result()
                self.session.trace(None)
                self.session.run(None, {"x": self.x})
            with open(path, encoding="utf-8") as file:
                names = [event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
            self.assertEqual((names.count("run"), names.count("two runs")), (2, 1))
            with self.assertRaisesRegex(runnel.FailedPrecondition, "the trace is closed"):
                trace.write(path)
            with self.assertRaisesRegex(runnel.InvalidArgument, "trace is a str; give a runnel.Trace"):
                self.session.trace(path)
            with self.assertRaisesRegex(runnel.NotFound, "none"), runnel.Trace() as other:
                other.write(os.path.join(folder, "none", "trace.json"))

    def test_progress(self):
        seen = []
        options = runnel.SessionOptions(progress=lambda name, done, total: seen.append((name, done, total)))
        device = runnel.Device(DEVICE)
        with runnel.Session(relu(), device, options) as session:
            session.run(None, {"x": self.x})
        device.close()
        self.assertTrue(all(name.endswith(".cl") and 0 <= done <= total for name, done, total in seen), seen)
        self.assertTrue(seen)

    def test_sessions_share_a_device(self):
        with runnel.Session(relu(), DEVICE) as first, runnel.Session(relu(), DEVICE) as second:
            self.assertIs(first.device, second.device)
        with self.assertRaises(runnel.FailedPrecondition):
            first.run(None, {"x": self.x})

    def test_check_model(self):
        made = model([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("NoSuch", ["y"], ["z"])],
                     {"x": (1, [2])}, {"z": (1, [2])})
        rows = {row.op_type: row for row in runnel.check_model(made)}
        self.assertEqual((rows["Relu"].unsupported_count, rows["NoSuch"].unsupported_count), (0, 1))
        self.assertIn("NoSuch", rows["NoSuch"].reason)


if __name__ == "__main__":
    unittest.main(verbosity=2)
