# SPDX-License-Identifier: Apache-2.0
"""Wrong use of the Python package: a right answer or one clear exception, and the session works on."""

import asyncio
import copy
import os
import pickle
import unittest

import numpy as np
from onnx import helper

from package import DEVICE, model, relu
import runnel  # noqa: E402


class BadInputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = runnel.Session(relu(), DEVICE)
        cls.x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def refused(self, text, names, feed, error=runnel.InvalidArgument):
        for call in (self.session.run, lambda *a: self.session.submit(*a).result(60),
                     lambda *a: asyncio.run(self.session.run_async(*a))):
            with self.assertRaises(error) as caught:
                call(names, feed)
            self.assertIn(text, str(caught.exception))
            self.assertEqual(caught.exception.status, error.status)
        np.testing.assert_array_equal(self.session.run(None, {"x": self.x})[0], np.maximum(self.x, 0))

    def test_names(self):
        self.refused("the model has no input 'q'; its inputs are 'x'", None, {"q": self.x})
        self.refused("input 'x' is missing", None, {})
        self.refused("the model has no output 'q'; its outputs are 'y'", ["q"], {"x": self.x})
        self.refused("give a list of names", "y", {"x": self.x})
        self.refused("an output's name is 3", [3], {"x": self.x})
        self.refused("an input's name is 3", None, {3: self.x})
        self.refused("the model has no input ''", None, {"": self.x})
        self.refused("inputs are a list", None, [self.x])

    def test_shapes(self):
        self.refused("input 'x' has shape 3x5; the model expects", None, {"x": np.zeros((3, 5), np.float32)})
        self.refused("input 'x' has shape 4; the model expects", None, {"x": np.zeros(4, np.float32)})
        self.refused("at most 8 are possible", None, {"x": np.zeros((1,) * 9, np.float32)})

    def test_types(self):
        self.refused("input 'x' is float64; the model expects float32", None, {"x": self.x.astype(np.float64)})
        self.refused("input 'x' is int32; the model expects float32", None, {"x": self.x.astype(np.int32)})
        self.refused("numpy type complex64", None, {"x": self.x.astype(np.complex64)})
        self.refused("numpy type object", None, {"x": np.array([[None] * 4])})
        self.refused("numpy type <U1", None, {"x": np.array([["a"] * 4])})
        self.refused("is no array of numbers", None, {"x": [["a"] * 4]})
        self.refused("is no array of numbers", None, {"x": [[1], [2, 3]]})
        self.refused("is no array of numbers", None, {"x": None})
        self.refused("is no array of numbers", None, {"x": object()})

    def test_lists_are_not_rounded(self):
        made = model([helper.make_node("Abs", ["x"], ["y"])], {"x": (2, [1])}, {"y": (2, [1])})
        with runnel.Session(made, DEVICE) as session:
            for value in ([1.5], [300], [-1]):
                with self.assertRaises(runnel.InvalidArgument):
                    session.run(None, {"x": value})
            self.assertEqual(session.run(None, {"x": [255]})[0][0], 255)
        made = model([helper.make_node("Abs", ["x"], ["y"])], {"x": (6, ["n"])}, {"y": (6, ["n"])})
        with runnel.Session(made, DEVICE) as session:
            self.assertEqual(session.run(None, {"x": []})[0].shape, (0,))

    def test_foreign_memory(self):
        class Elsewhere:
            def __dlpack__(self, **_):
                raise RuntimeError("the memory is a GPU's")

            def __dlpack_device__(self):
                return (2, 0)

        self.refused("does not lend its memory by DLPack", None, {"x": Elsewhere()})

    def test_models(self):
        for source, error, text in (
                ("/nonexistent/model.onnx", runnel.NotFound, "/nonexistent/model.onnx"),
                (b"", (runnel.InvalidArgument, runnel.DataLoss), ""),
                (b"not a model at all", (runnel.InvalidArgument, runnel.DataLoss), ""),
                (relu().SerializeToString()[:-3], (runnel.InvalidArgument, runnel.DataLoss), ""),
                ("a\0b", runnel.InvalidArgument, "NUL"), (None, runnel.InvalidArgument, "NoneType"),
                (3, runnel.InvalidArgument, "int"), (os.path.dirname(__file__), runnel.Error, "")):
            with self.assertRaises(error) as caught:
                runnel.Session(source, DEVICE)
            self.assertIn(text, str(caught.exception))
            self.assertTrue(str(caught.exception))

    def test_all_that_is_unknown_is_named(self):
        made = model([helper.make_node("NoSuch", ["x"], ["a"]), helper.make_node("Neither", ["a"], ["y"])],
                     {"x": (1, [2])}, {"y": (1, [2])})
        with self.assertRaises(runnel.Unimplemented) as caught:
            runnel.Session(made, DEVICE)
        self.assertIn("NoSuch", str(caught.exception))
        self.assertIn("Neither", str(caught.exception))
        self.assertIsInstance(caught.exception, NotImplementedError)

    def test_devices(self):
        for spec, error in (("no such device", runnel.NotFound), ("99:0", runnel.NotFound), (3, runnel.InvalidArgument)):
            with self.assertRaises(error):
                runnel.Session(relu(), spec)
        with self.assertRaises(runnel.InvalidArgument):
            runnel.Device(3)
        with self.assertRaisesRegex(runnel.InvalidArgument, "runnel.open and runnel.Pipeline take several"):
            runnel.Session(relu(), ["0:0", "0:0"])
        for options in ({"compute_units": -1}, {"memory_fraction": -0.5}, {"memory_limit_bytes": 2**64}):
            with self.assertRaises(runnel.InvalidArgument):
                runnel.Device(DEVICE, **options)

    def test_shares(self):
        whole = runnel.Device(DEVICE).info.id
        for rest in ("/", "/0", "/x", "/2.2", "/-1", "/0.5", "/nan", "/2 "):
            with self.assertRaises(runnel.InvalidArgument):
                runnel.Device(whole + rest)
        for rest in ("/99999", "/99999999999999999999", "/numa99999"):
            with self.assertRaises((runnel.InvalidArgument, NotImplementedError)):
                runnel.Device(whole + rest)
        for fraction in (-0.1, 1.5, float("inf"), float("nan")):
            with self.assertRaises(runnel.InvalidArgument):
                runnel.Device(whole, memory_fraction=fraction)
        listed = next(each for each in runnel.get_devices() if each.id == whole)
        if listed.most_shares > 1:
            with runnel.Device(whole + "/2.1") as half:
                self.assertEqual(half.info.first_unit, listed.most_shares // 2)
                self.assertEqual(half.info.whole_units, listed.compute_units)
                runnel.Session(relu(), half).run(None, {"x": self.x})

    def test_options(self):
        for options in ({"no_such": 1}, {"plan_cache_bytes": -1}, {"plan_cache_bytes": "8"}, {"weight_budget_bytes": -1},
                        {"progress": 3}, 3, {"precision": "f16"}, {"precision": 2}, {"precision": []},
                        {"deterministic": 1}):
            with self.assertRaises(runnel.InvalidArgument):
                runnel.Session(relu(), DEVICE, options)
        with self.assertRaises(runnel.InvalidArgument):
            self.session.run(None, {"x": self.x}, run_options=object())

    def test_memory_limit(self):
        weight = helper.make_tensor("w", 1, [256, 256], np.zeros(65536, np.float32).tobytes(), raw=True)
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, [256, 256])}, {"y": (1, [256, 256])},
                     [weight])
        with self.assertRaises(runnel.ResourceExhausted) as caught:
            runnel.Session(made, runnel.Device(DEVICE, memory_limit_bytes=70000))
        self.assertIsInstance(caught.exception, MemoryError)

    def test_copies(self):
        with runnel.Device(DEVICE) as device, runnel.Trace() as trace:
            for owner in (device, self.session, trace, runnel.Registry()):
                for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.assertRaisesRegex(TypeError, "can be neither copied nor pickled"):
                        copied(owner)
            self.assertEqual(pickle.loads(pickle.dumps(device.info)), device.info)
        with self.assertRaises(runnel.InvalidArgument) as caught:
            self.session.run(None, {})
        same = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(same), str(same), same.status), (runnel.InvalidArgument, str(caught.exception), same.status))

    def test_closed(self):
        session = runnel.Session(relu(), DEVICE)
        session.close()
        session.close()
        session.cancel()
        for call in (lambda: session.run(None, {"x": self.x}), lambda: session.profile({"x": self.x}), session.stats,
                     session.get_operators, lambda: session.submit(None, {"x": self.x})):
            with self.assertRaises(runnel.FailedPrecondition):
                call()
        repr(session)


if __name__ == "__main__":
    unittest.main(verbosity=2)
