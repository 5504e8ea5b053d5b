# SPDX-License-Identifier: Apache-2.0
"""Real models against onnxruntime: every output element, and three inner tensors of each filled model.

RUNNEL_MODELS    folder that tools/fetch-models filled (default models/)
RUNNEL_TEST_ONLY comma-separated names of the models to run (default: all that are there)
RUNNEL_TEST_SMALL on a slow implementation: magika and the recogniser at its smallest width
"""

import os
import sys
import unittest

import numpy as np
import onnx
import onnxruntime

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import runnel  # noqa: E402

MODELS = os.environ.get("RUNNEL_MODELS", os.path.join(ROOT, "models"))
SMALL = bool(os.environ.get("RUNNEL_TEST_SMALL"))
ONLY = [name for name in os.environ.get("RUNNEL_TEST_ONLY", "").split(",") if name]
if SMALL and not ONLY:
    ONLY = ["magika", "ch_PP-OCRv4_rec_infer"]
FILLED = ["alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
          "zfnet512"]
ABSOLUTE, RELATIVE = 1e-4, 1e-3


def path_of(name):
    for path in (f"{name}.onnx", f"filled/{name}.onnx"):
        if os.path.exists(os.path.join(MODELS, path)):
            return os.path.join(MODELS, path)
    raise unittest.SkipTest(f"{name} is not in {MODELS}: run tools/fetch-models")


def inner_names(model, count=3):
    """Nodes' outputs spread over the depth of the graph, none of them an output already."""
    computed = [n.output[0] for n in model.graph.node
                if n.op_type in ("Conv", "Relu", "MaxPool", "Concat", "Sum", "BatchNormalization", "Gemm")]
    outputs = {o.name for o in model.graph.output}
    computed = [name for name in computed if name not in outputs]
    return [computed[len(computed) * (i + 1) // (count + 1)] for i in range(count)]


def onnxruntime_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class ModelTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def assert_close(self, name, got, expected):
        self.assertEqual(got.shape, expected.shape, name)
        self.assertEqual(got.dtype, expected.dtype, name)
        with np.errstate(invalid="ignore"):
            excess = np.abs(got.astype(np.float64) - expected) - (ABSOLUTE + RELATIVE * np.abs(expected))
        wrong = ~(excess <= 0)
        if wrong.any():
            at = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), got.shape)
            self.fail(f"{name}: {wrong.sum()} of {got.size} elements differ, worst at {at}: "
                      f"{got[at]} instead of {expected[at]}")

    def compare(self, name, feeds):
        if ONLY and name not in ONLY:
            self.skipTest("not among RUNNEL_TEST_ONLY")
        path = path_of(name)
        source = path
        if name in FILLED:
            model = onnx.load(path)
            for inner in inner_names(model):
                model.graph.output.add().name = inner
            model = onnx.shape_inference.infer_shapes(model)
            for output in model.graph.output:
                info = [v for v in model.graph.value_info if v.name == output.name]
                if info:
                    output.CopyFrom(info[0])
            source = model.SerializeToString()
        reference = onnxruntime_session(source)
        session = runnel.Session(self.device, source)
        names = [output.name for output in reference.get_outputs()]
        try:
            for feed in feeds:
                got = session.run(feed)
                for output, expected in zip(names, reference.run(names, feed)):
                    self.assert_close(f"{name} {output} {[v.shape for v in feed.values()]}", got[output], expected)
            return session.model_stats()
        finally:
            session.close()

    def compare_filled(self, name):
        if ONLY and name not in ONLY:
            self.skipTest("not among RUNNEL_TEST_ONLY")
        model = onnx.load(path_of(name), load_external_data=False)
        constants = {t.name for t in model.graph.initializer}
        entry = [i for i in model.graph.input if i.name not in constants][0]
        shape = [d.dim_value for d in entry.type.tensor_type.shape.dim]
        feed = {entry.name: np.random.default_rng(7).standard_normal(shape, dtype=np.float32)}
        del model
        return self.compare(name, [feed])

    def test_recogniser(self):
        rng = np.random.default_rng(1)
        widths = (48,) if SMALL else (320, 48, 101, 640)
        feeds = [{"x": rng.uniform(-1, 1, (1, 3, 48, width)).astype(np.float32)} for width in widths]
        stats = self.compare("ch_PP-OCRv4_rec_infer", feeds)
        self.assertLessEqual(stats.program_count, 40)

    def test_detector(self):
        rng = np.random.default_rng(2)
        feeds = [{"x": rng.uniform(-2, 2, (1, 3, h, w)).astype(np.float32)} for h, w in ((640, 640), (96, 320), (64, 32))]
        self.compare("ch_PP-OCRv4_det_infer", feeds)

    def test_direction(self):
        rng = np.random.default_rng(3)
        feeds = [{"x": rng.uniform(-1, 1, (n, 3, 48, 192)).astype(np.float32)} for n in (1, 5)]
        self.compare("ch_ppocr_mobile_v2.0_cls_infer", feeds)

    def test_magika(self):
        rng = np.random.default_rng(4)
        feeds = [{"bytes": rng.integers(0, 257, (n, 2048), dtype=np.int32)} for n in ((1,) if SMALL else (1, 3))]
        self.compare("magika", feeds)

    def test_resnet50_programs(self):
        stats = self.compare_filled("resnet50")
        self.assertLessEqual(stats.program_count, 25)


def add_filled(name):
    setattr(ModelTest, f"test_{name}", lambda self: self.compare_filled(name))


for filled in FILLED:
    if filled != "resnet50":
        add_filled(filled)

if __name__ == "__main__":
    unittest.main(verbosity=2)
