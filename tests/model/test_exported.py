# SPDX-License-Identifier: Apache-2.0
"""Models that tools/export-models made with torch, against onnxruntime at several shapes, one session for all.

The recurrent network (If and Loop, then an LSTM) is kept in tests/fixtures; the sentence encoders are large and run where
they are in RUNNEL_MODELS.
"""

import os
import sys
import unittest

import numpy as np
import onnxruntime

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import runnel  # noqa: E402

MODELS = os.environ.get("RUNNEL_MODELS", os.path.join(ROOT, "models"))


class ExportedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(5)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def compare(self, path, feeds):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        reference = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        session = runnel.Session(self.device, path)
        self.addCleanup(session.close)
        for feed in feeds:
            got = session.run(feed)
            for output, expected in zip(reference.get_outputs(), reference.run(None, feed)):
                self.assertEqual(got[output.name].shape, expected.shape)
                error = np.abs(got[output.name] - expected)
                self.assertTrue((error <= 1e-4 + 1e-3 * np.abs(expected)).all(),
                                f"{output.name} of {[a.shape for a in feed.values()]}: {error.max()}")

    def test_recurrent(self):
        shapes = ((5, 3), (1, 1), (9, 2), (30, 1), (2, 7), (5, 3))
        self.compare(os.path.join(ROOT, "tests", "fixtures", "torch_recurrent.onnx"),
                     [{"x": self.random.standard_normal((*shape, 8), dtype=np.float32)} for shape in shapes])

    def sentences(self, batch, tokens):
        """Each shorter than the one before."""
        lengths = np.maximum(1, tokens - 2 * np.arange(batch))
        return {"input_ids": self.random.integers(1000, 20000, (batch, tokens)),
                "attention_mask": (np.arange(tokens) < lengths[:, None]).astype(np.int64)}

    def test_sentence_encoders(self):
        for name in ("minilm", "minilm_dynamo"):
            path = os.path.join(MODELS, f"{name}.onnx")
            if not os.path.exists(path):
                self.skipTest(f"{path} is not there: see tools/export-models")
            self.compare(path, [self.sentences(*shape)
                                for shape in ((2, 12), (1, 128), (8, 33), (1, 1), (3, 7), (2, 12))])


if __name__ == "__main__":
    unittest.main(verbosity=2)
