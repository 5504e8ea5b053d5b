# SPDX-License-Identifier: Apache-2.0
"""Operators of one's own in Python: kernels, functions of the host, attributes, types, versions, several devices."""

import concurrent.futures
import inspect
import os
import subprocess
import sys
import tempfile
import threading
import typing
import unittest

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

from package import DEVICE, ROOT, model
import runnel  # noqa: E402

DOMAIN = "com.example"
F32, I64 = 1, 7

SCALE = """
kernel void scale(global const float *x, long x_at, global const float *bias, long bias_at, global float *y, long y_at,
                  float factor, int bias_count, long count)
{
    const long i = get_global_id(0);
    if (i < count)
        y[y_at + i] = x[x_at + i] * factor + (bias ? bias[bias_at + i % bias_count] : 0.0f);
}
"""

# Sums of rows, by halves, in memory between two launches; and what they are compared with as a vector.
ROWS = """
#include "half.h"
kernel void halves(global const float *x, long x_at, global char *between, long between_at, long columns)
{
    global float *sums = (global float *)(between + between_at);
    const long row = get_global_id(0), part = get_global_id(1);
    if (row < ROWS && part < HALVES) {
        float sum = 0;
        for (long i = part; i < columns; i += HALVES)
            sum += x[x_at + row * columns + i];
        sums[row * HALVES + part] = sum;
    }
}
kernel __attribute__((reqd_work_group_size(8, 1, 1))) void join(global const char *between, long between_at, global float *y, long y_at, float4 a, float3 b)
{
    global const float *sums = (global const float *)(between + between_at);
    const long row = get_global_id(0);
    if (row < ROWS)
        y[y_at + row] = sums[row * HALVES] + sums[row * HALVES + 1] + a.x + a.w + b.z;
}
"""


def node(op_type, inputs, outputs, **attributes):
    return helper.make_node(op_type, inputs, outputs, op_type.lower(), domain=DOMAIN, **attributes)


def small(nodes, inputs, outputs, initializers=(), version=1):
    return model(nodes, inputs, outputs, initializers, domains={DOMAIN: version})


def numbers(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(np.float32)


class Scale:
    """y = x * factor + bias, with a kernel; counts what it plans."""

    def __init__(self):
        self.plans, self.lock = 0, threading.Lock()

    def plan(self, node, x, bias=None):
        with self.lock:
            self.plans += 1
        y, = node.outputs
        assert node.device.max_work_group_size > 0 and y.dtype == np.float32
        return runnel.Launch("scale", [x, bias, y, np.float32(node.attributes.get("factor", 1)),
                                       np.int32(bias.size if bias else 0), np.int64(y.size)], y.size, source=SCALE)

    def registry(self):
        registry = runnel.Registry()
        registry.add(DOMAIN, "Concat", infer=lambda node, x, bias=None: x, plan=self.plan, inputs=(1, 2))
        return registry


def scale_model():
    """The operator with a bias, without one, and with one that is left out by name; parts of one value."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Transpose", ["r"], ["t"]),
             node("Concat", ["t", "bias"], ["a"], factor=2.0), node("Concat", ["t"], ["b"], factor=-3.0),
             node("Concat", ["t", ""], ["c"]), helper.make_node("Concat", ["a", "b", "c"], ["d"], axis=1),
             helper.make_node("Neg", ["d"], ["y"])]
    return small(nodes, {"x": (F32, [3, "n"])}, {"y": (F32, ["n", 9])},
                 [numpy_helper.from_array(np.array([0.5, -1, 2], np.float32), "bias")])


def scaled(x):
    turned = np.maximum(x, 0).astype(np.float64).T
    return -np.concatenate([turned * 2 + [0.5, -1, 2], turned * -3, turned], axis=1)


class KernelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(DEVICE)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def open(self, made, registry, **options):
        session = runnel.Session(made, self.device, options, registry=registry)
        self.addCleanup(session.close)
        return session

    def check(self, session, columns):
        x = numbers(3, columns)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], scaled(x), rtol=1e-6, atol=1e-6)

    def test_among_others(self):
        scale = Scale()
        session = self.open(scale_model(), scale.registry())
        for columns in (1, 4, 7, 4, 0):
            self.check(session, columns)
        self.assertEqual(scale.plans, 9)  # three nodes, three shapes; nothing to plan for where all is empty

    def test_steps_are_named(self):
        session = self.open(scale_model(), Scale().registry(), deterministic=True)
        steps = [step for step in session.profile({"x": numbers(3, 2)}) if step.kernel == "scale"]
        self.assertEqual([(step.node, step.op_type, step.implementation) for step in steps],
                         [("concat", f"{DOMAIN}.Concat", f"custom:{DOMAIN}.Concat")] * 3)

    def test_several_launches(self):
        said = []

        def plan(node, x):
            rows, columns = x.shape
            between = runnel.Scratch(rows * 2 * 4)
            common = dict(path=os.path.join(folder, "rows.cl"), defines={"ROWS": rows, "FAST": None, "TIMES": True},
                          include_folders=[os.path.join(folder, "include")], build_options="-cl-mad-enable", log=said.append)
            return [runnel.Launch("halves", [x, between, np.int64(columns)], (rows, 2), (4, 1), **common),
                    runnel.Launch("join", [between, node.outputs[0], np.float32([1, 0, 0, 2]), np.array([0, 0, 4], ">f4")],
                                  rows, flops=3, bytes=5, **common)]

        registry = runnel.Registry()
        registry.add(DOMAIN, "Rows", infer=lambda node, x: runnel.TensorSpec(x.dtype, x.shape[0]), plan=plan)
        made = small([node("Rows", ["x"], ["y"])], {"x": (F32, ["n", "m"])}, {"y": (F32, ["n"])})
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "include"))
            with open(os.path.join(folder, "rows.cl"), "w", encoding="ascii") as file:
                file.write(ROWS)
            with open(os.path.join(folder, "include", "half.h"), "w", encoding="ascii") as file:
                file.write("#if FAST == 1 && TIMES == 1\n#define HALVES 2\n#endif\n")
            session = self.open(made, registry)
            for shape in ((1, 1), (5, 3), (7, 64)):
                x = numbers(*shape)
                np.testing.assert_allclose(session.run(None, {"x": x})[0], x.astype(np.float64).sum(1) + 7, rtol=1e-5,
                                           atol=1e-5)
        self.assertTrue(all(isinstance(text, str) for text in said))

    def test_shape_from_contents(self):
        """The number of rows is a graph's input, or comes from the device."""
        def infer(node, x, rows):
            count = int(rows.value)
            assert not rows.value.flags.writeable
            if not 0 <= count <= x.shape[0]:
                raise ValueError(f"there are no {count} rows")
            return runnel.TensorSpec(x.dtype, (count, *x.shape[1:]))

        registry = runnel.Registry()
        registry.add(DOMAIN, "First", infer=infer, plan=lambda node, x, rows: Scale().plan(node, x),
                     inputs=(2, 3), contents=[1])
        made = small([helper.make_node("Neg", ["n"], ["m"]), helper.make_node("Abs", ["m"], ["k"]),
                      node("First", ["x", "k"], ["y"])], {"x": (F32, [3, 2]), "n": (I64, [])}, {"y": (F32, [None, 2])})
        session, x = self.open(made, registry), numbers(3, 2)
        for rows in range(4):
            np.testing.assert_array_equal(session.run(None, {"x": x, "n": rows})[0], x[:rows])
        with self.assertRaisesRegex(runnel.InvalidArgument, "there are no 4 rows"):
            session.run(None, {"x": x, "n": 4})

    def test_threads(self):
        scale = Scale()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            registry = scale.registry()
            sessions = [self.open(scale_model(), registry) for _ in range(2)]
            list(pool.map(lambda i: self.check(sessions[i % 2], 1 + i % 5), range(40)))

    def test_several_devices(self):
        with runnel.open(scale_model(), ["0:0", "0:0"], registry=Scale().registry()) as session:
            self.assertIsInstance(session, runnel.MultiSession)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i: self.check(session, 1 + i % 5), range(20)))

    def test_the_model_alone(self):
        made = scale_model()
        unknown, known = ({(row.domain, row.op_type): row.unsupported_count for row in rows}
                          for rows in (runnel.check_model(made), runnel.check_model(made, registry=Scale().registry())))
        self.assertEqual(unknown[DOMAIN, "Concat"], 3)
        self.assertEqual(set(known.values()), {0})
        with self.assertRaisesRegex(runnel.Unimplemented, "Concat"):
            runnel.Session(made, self.device)

    def test_backend_of_onnx(self):
        from runnel import onnx_backend
        made, registry, x = scale_model(), Scale().registry(), numbers(3, 2)
        self.assertFalse(onnx_backend.is_compatible(made))
        self.assertTrue(onnx_backend.is_compatible(made, registry=registry))
        prepared = onnx_backend.prepare(made, self.device, registry=registry)
        np.testing.assert_allclose(prepared.run([x]).y, scaled(x), rtol=1e-6, atol=1e-6)
        prepared.session.close()


class HostTest(unittest.TestCase):
    def run_model(self, made, registry, **feed):
        with runnel.Session(made, DEVICE, registry=registry) as session:
            return session.run(None, feed)

    def test_outputs(self):
        """Any number of inputs, two outputs, one of which nobody reads."""
        def infer(node, *inputs):
            return [inputs[0], runnel.TensorSpec(np.int64, ())]

        def compute(node, *arrays):
            arrays[0][...] += 0  # they are the callback's own
            return sum(a.astype(np.float64) for a in arrays).astype(np.float32), np.int64(len(arrays))

        registry = runnel.Registry()
        registry.add(DOMAIN, "Total", infer=infer, compute=compute, inputs=(1, None), outputs=2)
        made = small([helper.make_node("Neg", ["x"], ["n"]), node("Total", ["x", "n", "x"], ["y", "count"]),
                      node("Total", ["y"], ["z", ""])],
                     {"x": (F32, ["n", 4])}, {"y": (F32, ["n", 4]), "count": (I64, []), "z": (F32, ["n", 4])})
        for rows in (0, 1, 5):
            x = numbers(rows, 4)
            y, count, z = self.run_model(made, registry, x=x)
            np.testing.assert_array_equal(y, x)
            np.testing.assert_array_equal(z, x)
            self.assertEqual(count, 3)

    def test_shape_that_running_tells(self):
        def infer(node, x):
            if x.value is None:
                raise runnel.FailedPrecondition("what x holds is not known yet")
            return runnel.TensorSpec(x.dtype, np.count_nonzero(x.value > node.attributes["limit"]))

        registry = runnel.Registry()
        registry.add(DOMAIN, "Above", infer=infer, compute=lambda node, x: x[x > node.attributes["limit"]])
        made = small([helper.make_node("Neg", ["x"], ["n"]), node("Above", ["n"], ["a"], limit=0.25),
                      helper.make_node("Neg", ["a"], ["y"])], {"x": (F32, ["n", "m"])}, {"y": (F32, [None])})
        for shape in ((2, 3), (9, 9), (0, 3)):
            x = numbers(*shape)
            np.testing.assert_array_equal(self.run_model(made, registry, x=x)[0], x[x < -0.25])

    def test_constants_are_worked_out_once(self):
        calls = []

        def compute(node, x):
            calls.append(x.shape)
            return x.T * 2

        registry = runnel.Registry()
        registry.add(DOMAIN, "Turn", infer=lambda node, x: runnel.TensorSpec(x.dtype, x.shape[::-1]), compute=compute)
        weight = numbers(4, 3)
        made = small([node("Turn", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])],
                     {"x": (F32, ["n", 3])}, {"y": (F32, ["n", 4])}, [numpy_helper.from_array(weight, "w")])
        with runnel.Session(made, DEVICE, registry=registry) as session:
            for rows in (1, 2, 2):
                x = numbers(rows, 3)
                np.testing.assert_allclose(session.run(None, {"x": x})[0], x.astype(np.float64) @ (weight.T * 2.0),
                                           rtol=1e-5, atol=1e-5)
        self.assertEqual(calls, [(4, 3)])

    def test_attributes(self):
        found = {}
        given = {"i": -3, "f": 0.25, "s": "text é", "t": numpy_helper.from_array(np.arange(6, dtype=np.int16).reshape(2, 3)),
                 "ints": [1, -2**40], "floats": [0.5, -1.0], "strings": ["a", "", "ü"]}

        def infer(node, x):
            found.update(node.attributes)
            found["node"] = (node.domain, node.op_type, node.name, node.version, node.output_count, node.outputs)
            return x

        registry = runnel.Registry()
        registry.add(DOMAIN, "Tell", infer=infer, compute=lambda node, x: x)
        self.run_model(small([node("Tell", ["x"], ["y"], **given)], {"x": (F32, [1])}, {"y": (F32, [1])}, version=3),
                       registry, x=numbers(1))
        self.assertEqual(found.pop("node"), (DOMAIN, "Tell", "tell", 3, 1, ()))
        np.testing.assert_array_equal(found.pop("t"), np.arange(6, dtype=np.int16).reshape(2, 3))
        self.assertEqual(found, {name: value for name, value in given.items() if name != "t"})

    def test_types(self):
        kinds = [np.float32, np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32,
                 np.uint32, np.int64, np.uint64, np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]
        registry = runnel.Registry()
        registry.add(DOMAIN, "Twice", infer=lambda node, x: runnel.TensorSpec(x.dtype, (2, *x.shape)),
                     compute=lambda node, x: np.broadcast_to(x, (2, *x.shape)))
        for kind in map(np.dtype, kinds):
            code = helper.np_dtype_to_tensor_dtype(kind)
            made = small([node("Twice", ["x"], ["y"])], {"x": (code, ["n"])}, {"y": (code, [2, "n"])})
            x = np.arange(5).astype(kind)
            got, = self.run_model(made, registry, x=x)
            self.assertEqual(got.dtype, kind)
            np.testing.assert_array_equal(got.view(np.uint8), np.stack([x, x]).view(np.uint8))

    def test_versions(self):
        registry = runnel.Registry()
        for version in (1, 3):
            registry.add(DOMAIN, "Times", infer=lambda node, x: x, since_version=version,
                         compute=lambda node, x, by=version: x * np.float32(by))
        for version, by in ((1, 1), (2, 1), (3, 3), (7, 3)):
            made = small([node("Times", ["x"], ["y"])], {"x": (F32, [2])}, {"y": (F32, [2])}, version=version)
            np.testing.assert_array_equal(self.run_model(made, registry, x=np.float32([1, 2]))[0], np.float32([1, 2]) * by)

    def test_operators_added_later(self):
        registry = runnel.Registry()
        made = small([node("Late", ["x"], ["y"])], {"x": (F32, [2])}, {"y": (F32, [2])})
        with self.assertRaises(runnel.Unimplemented):
            self.run_model(made, registry, x=numbers(2))
        registry.add(DOMAIN, "Late", infer=lambda node, x: x, compute=lambda node, x: x)
        np.testing.assert_array_equal(self.run_model(made, registry, x=numbers(2))[0], numbers(2))
        self.assertEqual(repr(registry), f"<runnel.Registry {DOMAIN}.Late>")

    def test_another_model_in_a_callback(self):
        relu = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (F32, ["n"])}, {"y": (F32, ["n"])})
        made = small([node("Other", ["x"], ["y"])], {"x": (F32, ["n"])}, {"y": (F32, ["n"])})
        registry = runnel.Registry()
        with runnel.Session(relu, DEVICE) as other:
            registry.add(DOMAIN, "Other", infer=lambda node, x: x, compute=lambda node, x: other.run(None, {"x": x}))
            np.testing.assert_array_equal(self.run_model(made, registry, x=numbers(9))[0], np.maximum(numbers(9), 0))


class HintsTest(unittest.TestCase):
    def test_all_that_is_public_says_its_types(self):
        """As a checker of types reads them, which py.typed asks it to."""
        for kind in (runnel.Registry, runnel.TensorSpec, runnel.Node, runnel.Launch, runnel.Scratch):
            for name, member in vars(kind).items():
                member = member.fget if isinstance(member, property) else member
                if callable(member) and (name == "__init__" or not name.startswith("_")) and name != "bytes":
                    hints = typing.get_type_hints(member)
                    given = set(inspect.signature(member).parameters) - {"self"}
                    self.assertEqual(given - set(hints), set(), f"{kind.__name__}.{name}")
                    self.assertIn("return", hints, f"{kind.__name__}.{name}")
        for function in (runnel.Session.__init__, runnel.MultiSession.__init__, runnel.open, runnel.check_model):
            self.assertIn("Registry", str(typing.get_type_hints(function)["registry"]))


class ExampleTest(unittest.TestCase):
    def test_example(self):
        path = os.path.join(ROOT, "examples", "custom_operator.py")
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "RUNNEL_DEVICE": DEVICE or ""}
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        self.assertIn("0.25 0 1.5 -0.5 -2 -4", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
