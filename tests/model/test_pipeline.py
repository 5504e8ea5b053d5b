# SPDX-License-Identifier: Apache-2.0
"""One model over several devices as a pipeline, against one device; how it is cut; what is refused."""

import ctypes as c
import os
import sys
import threading
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

COMPLETE = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(runnel.Error))


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("depth", c.c_uint32), ("memory_bytes", c.POINTER(c.c_uint64)),
                ("inputs", c.POINTER(runnel.Tensor)), ("input_count", c.c_size_t), ("estimate", c.c_bool),
                ("model", c.c_void_p)]


class Stage(c.Structure):
    _fields_ = [("device", c.c_size_t), ("first_node", c.c_size_t), ("node_count", c.c_size_t),
                ("first_name", c.c_char_p), ("weight_bytes", c.c_size_t), ("arena_bytes", c.c_size_t),
                ("crossing_bytes", c.c_size_t), ("expected_ns", c.c_double), ("is_measured", c.c_bool),
                ("run_count", c.c_uint64), ("busy_ns", c.c_uint64)]


def tensors(arrays):
    """Of {name: array}; they keep the arrays."""
    given = (runnel.Tensor * max(1, len(arrays)))()
    given.arrays = list(arrays.values())
    for slot, (name, array) in zip(given, arrays.items()):
        slot.name, slot.dtype, slot.rank = name.encode(), runnel.CODES[array.dtype], array.ndim
        slot.shape[: array.ndim] = array.shape
        slot.data, slot.size_bytes = array.ctypes.data, array.nbytes
    return given


class Pipeline:
    def __init__(self, library, devices, model, example, **options):
        self.library, self.lib, self.memory = library, library.lib, model
        self.lib.rnl_pipeline_release.restype = None
        self.lib.rnl_pipeline_wait.restype = None
        self.lib.rnl_pipeline_cancel.restype = None
        self.lib.rnl_output_release.restype = None
        self.lib.rnl_pipeline_get_stages.restype = c.c_size_t
        self.graph, self.handle = c.c_void_p(), c.c_void_p()
        handles = (c.c_void_p * len(devices))(*[device.handle for device in devices])
        memory = options.get("memory")
        given = Options(c.sizeof(Options), options.get("depth", 0),
                        (c.c_uint64 * len(devices))(*memory) if memory else None, tensors(example), len(example),
                        options.get("estimate", True), None)
        try:
            if isinstance(model, bytes):
                library.check(self.lib.rnl_graph_load_memory(model, c.c_size_t(len(model)), c.byref(self.graph)))
            else:
                library.check(self.lib.rnl_graph_load(os.fsencode(model), c.byref(self.graph)))
            library.check(self.lib.rnl_pipeline_create(self.graph, handles, c.c_size_t(len(devices)), c.byref(given),
                                                       c.byref(self.handle)))
        except runnel.Failure:
            self.close()
            raise
        count = c.c_size_t()
        rows = self.lib.rnl_graph_outputs(self.graph, c.byref(count))
        self.outputs = [rows[i].name.decode() for i in range(count.value)]

    def stages(self):
        rows = (Stage * 64)()
        return rows[:self.lib.rnl_pipeline_get_stages(self.handle, rows, c.c_size_t(64))]

    def wanted(self, names):
        slots = (runnel.Tensor * max(1, len(names)))()
        for slot, name in zip(slots, names):
            slot.name = name.encode()
        return slots

    def take(self, slots, names):
        results = {}
        for slot, name in zip(slots, names):
            results[name] = runnel.Session._copy(slot)
            self.lib.rnl_output_release(c.c_void_p(slot.data))
        return results

    def run(self, inputs, names=None):
        names = self.outputs if names is None else names
        slots = self.wanted(names)
        self.library.check(self.lib.rnl_pipeline_run(self.handle, tensors(inputs), c.c_size_t(len(inputs)), slots,
                                                     c.c_size_t(len(names))))
        return self.take(slots, names)

    def run_all(self, batches):
        """Submits all, and returns the results, or the messages, in the order that they came in."""
        kept, order, results = [], [], {}

        def complete(user, error):
            index = (user or 0)
            order.append(index)
            results[index] = error.contents.message.decode() if error else None

        callback = COMPLETE(complete)
        for index, inputs in enumerate(batches):
            slots = self.wanted(self.outputs)
            given = tensors(inputs)
            kept.append((slots, given))
            self.library.check(self.lib.rnl_pipeline_submit(self.handle, given, c.c_size_t(len(inputs)), slots,
                                                            c.c_size_t(len(self.outputs)), callback, c.c_void_p(index)))
        self.lib.rnl_pipeline_wait(self.handle)
        return order, [results[i] if results[i] else self.take(kept[i][0], self.outputs) for i in range(len(kept))]

    def close(self):
        self.lib.rnl_pipeline_release(self.handle)
        self.lib.rnl_graph_release(self.graph)
        self.handle = self.graph = c.c_void_p()


def model(nodes, inputs, outputs, initializers=None, opset=17):
    def infos(rows):
        return [helper.make_tensor_value_info(*row) for row in rows]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs),
                              [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def dense(layers=6, width=64):
    """x of n rows through products and Tanh, with the sum of the second layer's result added at the end."""
    rng = np.random.default_rng(1)
    nodes, weights = [], {}
    for i in range(layers):
        weights[f"w{i}"] = (rng.standard_normal((width, width)) / width ** 0.5).astype(np.float32)
        nodes.append(helper.make_node("MatMul", [f"v{i}" if i else "x", f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"v{i + 1}"]))
    nodes.append(helper.make_node("Add", [f"v{layers}", "v2"], ["y"]))
    return model(nodes, [("x", TensorProto.FLOAT, ["n", width])], [("y", TensorProto.FLOAT, None)], weights)


class PipelineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = runnel.Library()
        first = os.environ.get("RUNNEL_TEST_DEVICE", "0:0")
        second = "basic" if "basic" in os.environ.get("POCL_DEVICES", "") else first
        cls.devices = [runnel.Device(cls.library, first), runnel.Device(cls.library, second)]

    @classmethod
    def tearDownClass(cls):
        for device in cls.devices:
            device.close()

    def alone(self, data, batches):
        session = runnel.Session(self.devices[0], data)
        try:
            return [session.run(inputs) for inputs in batches]
        finally:
            session.close()

    def check(self, data, batches, devices=None, stages=2, exact=False, **options):
        """As many stages as wanted, and what one device gives."""
        expected = self.alone(data, batches)
        pipe = Pipeline(self.library, devices or self.devices, data, batches[0], **options)
        try:
            self.assertEqual(len(pipe.stages()), stages)
            order, results = pipe.run_all(batches)
            self.assertEqual(order, list(range(len(batches))))
            for want, have in zip(expected, results):
                self.assertIsInstance(have, dict, have)
                self.assertEqual(want.keys(), have.keys())
                for name, array in want.items():
                    self.assertEqual(have[name].dtype, array.dtype)
                    np.testing.assert_allclose(have[name], array, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-5)
            return pipe.stages()
        finally:
            pipe.close()

    def rows(self, count, width=64, seed=0):
        return np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)

    def test_dense(self):
        """Batches of different sizes, more than fit the pipeline at a time."""
        batches = [{"x": self.rows(1 + i % 5, seed=i)} for i in range(23)]
        stages = self.check(dense(), batches)
        self.assertEqual(sum(stage.node_count for stage in stages), 13)
        self.assertEqual([stage.device for stage in stages], [0, 1])
        for stage in stages:
            self.assertGreaterEqual(stage.weight_bytes, 2 * 64 * 64 * 4)
            self.assertEqual(stage.run_count, len(batches))

    def test_three_stages_on_two_devices(self):
        """What the first stage makes the last one reads, past the one between."""
        self.check(dense(9), [{"x": self.rows(4, seed=i)} for i in range(9)], [*self.devices, self.devices[0]], 3,
                   depth=1)

    def test_measured(self):
        batches = [{"x": self.rows(8)}] * 5
        pipe = Pipeline(self.library, self.devices, dense(12), batches[0], estimate=False)
        try:
            self.assertTrue(all(stage.is_measured and stage.expected_ns > 0 for stage in pipe.stages()))
            expected = self.alone(dense(12), batches[:1])[0]["y"]
            np.testing.assert_allclose(pipe.run(batches[0])["y"], expected, rtol=1e-4, atol=1e-5)
        finally:
            pipe.close()

    def test_inputs_and_outputs_of_each_stage(self):
        """Inputs that a later stage reads, outputs that an earlier one gives, one of them read on, and one that is an
        input."""
        rng = np.random.default_rng(2)
        weights = {f"w{i}": rng.standard_normal((64, 64)).astype(np.float32) / 8 for i in range(4)}
        nodes = [helper.make_node("MatMul", ["a", "w0"], ["early"]), helper.make_node("Tanh", ["early"], ["t"]),
                 helper.make_node("MatMul", ["t", "w1"], ["u"]), helper.make_node("Sigmoid", ["u"], ["v"]),
                 helper.make_node("MatMul", ["v", "w2"], ["q"]), helper.make_node("Add", ["q", "b"], ["r"]),
                 helper.make_node("MatMul", ["r", "w3"], ["z"]), helper.make_node("Add", ["z", "early"], ["late"])]
        kind = TensorProto.FLOAT
        data = model(nodes, [("a", kind, ["n", 64]), ("b", kind, ["n", 64])],
                     [("late", kind, None), ("early", kind, None), ("b", kind, ["n", 64])], weights)
        batches = [{"b": self.rows(3, seed=i), "a": self.rows(3, seed=100 + i)} for i in range(7)]
        self.check(data, batches)
        pipe = Pipeline(self.library, self.devices, data, batches[0])
        try:
            expected = self.alone(data, batches[:1])[0]["early"]
            np.testing.assert_allclose(pipe.run(batches[0], ["early"])["early"], expected, rtol=1e-5, atol=1e-6)
            self.assertEqual(pipe.run(batches[0], []), {})
        finally:
            pipe.close()

    def test_shapes_and_constants_travel(self):
        """A Reshape behind the cut goes by a shape worked out before it; a weight that is transposed by a node."""
        rng = np.random.default_rng(3)
        weights = {f"w{i}": rng.standard_normal((64, 64)).astype(np.float32) / 8 for i in range(4)}
        weights["half"] = np.array([2], np.int64)
        nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Div", ["s", "half"], ["h"]),
                 helper.make_node("Transpose", ["w0"], ["wt"]), helper.make_node("MatMul", ["x", "wt"], ["a"]),
                 helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w1"], ["c"]),
                 helper.make_node("Tanh", ["c"], ["d"]), helper.make_node("MatMul", ["d", "wt"], ["e"]),
                 helper.make_node("Tanh", ["e"], ["f"]), helper.make_node("MatMul", ["f", "w3"], ["g"]),
                 helper.make_node("Expand", ["one", "h"], ["ones"]),
                 helper.make_node("ReduceSum", ["ones"], ["count"], keepdims=0),
                 helper.make_node("Mul", ["g", "count"], ["y"])]
        weights["one"] = np.array([1], np.float32)
        data = model(nodes, [("x", TensorProto.FLOAT, ["n", 64])], [("y", TensorProto.FLOAT, None)], weights)
        self.check(data, [{"x": self.rows(2 * i + 2, seed=i)} for i in range(6)])

    def test_memory_decides(self):
        """The second device has room for a fifth of the weights."""
        data, layer = dense(10, 64), 64 * 64 * 4
        stages = self.check(data, [{"x": self.rows(2)}], memory=[0, 2 * layer + 65536])
        self.assertLessEqual(stages[1].weight_bytes, 2 * layer + 65536)
        self.assertGreaterEqual(stages[0].weight_bytes, 4 * layer)
        with self.assertRaisesRegex(runnel.Failure, "does not fit, however it is cut: its weights take "):
            Pipeline(self.library, self.devices, data, {"x": self.rows(2)}, memory=[layer, layer])

    def test_shapes_that_depend_on_data(self):
        """The stage with NonZero, If and all behind it."""
        rng = np.random.default_rng(4)
        weights = {f"w{i}": rng.standard_normal((64, 64)).astype(np.float32) / 8 for i in range(4)}
        weights["zero"] = np.float32(0)
        float1 = TensorProto.FLOAT
        then = helper.make_graph([helper.make_node("Neg", ["d"], ["t"])], "t", [],
                                 [helper.make_tensor_value_info("t", float1, None)])
        other = helper.make_graph([helper.make_node("Exp", ["d"], ["o"])], "o", [],
                                  [helper.make_tensor_value_info("o", float1, None)])
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]),
                 helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Tanh", ["c"], ["d"]),
                 helper.make_node("ReduceSum", ["d"], ["sum"], keepdims=0),
                 helper.make_node("Greater", ["sum", "zero"], ["is"]),
                 helper.make_node("If", ["is"], ["e"], then_branch=then, else_branch=other),
                 helper.make_node("Relu", ["e"], ["f"]), helper.make_node("NonZero", ["f"], ["where"]),
                 helper.make_node("MatMul", ["f", "w2"], ["y"])]
        data = model(nodes, [("x", float1, ["n", 64])], [("y", float1, None), ("where", TensorProto.INT64, None)], weights)
        self.check(data, [{"x": self.rows(3, seed=i)} for i in range(6)])

    def test_what_cannot_be_cut(self):
        nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Cast", ["n"], ["y"], to=1)]
        data = model(nodes, [("x", TensorProto.FLOAT, [4, 4])], [("y", TensorProto.FLOAT, None)])
        with self.assertRaisesRegex(runnel.Failure, "FAILED_PRECONDITION: the graph cannot be cut into stages: from node 0 "
                                                    r"\(NonZero ''\) on, shapes depend on what is computed"):
            Pipeline(self.library, self.devices, data, {"x": np.ones((4, 4), np.float32)})
        nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
        data = model(nodes, [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, None)])
        with self.assertRaisesRegex(runnel.Failure, "each cut would go through nodes that are computed as one step"):
            Pipeline(self.library, self.devices, data, {"x": np.ones(4, np.float32)})
        self.check(data, [{"x": np.ones(4, np.float32)}], self.devices[:1], 1)

    def test_wrong_batches(self):
        """They fail alone, and say what is wrong; the others come through, in order."""
        good, bad = {"x": self.rows(2)}, {"x": self.rows(2, width=63)}
        pipe = Pipeline(self.library, self.devices, dense(), good)
        try:
            order, results = pipe.run_all([good, bad, good, bad, good])
            self.assertEqual(order, [0, 1, 2, 3, 4])
            for index in (1, 3):
                self.assertIn("input 'x' has shape 2x63; the model expects ?x64", results[index])
                self.assertIn("stage 0 of 2, on ", results[index])
            for index in (0, 2, 4):
                np.testing.assert_array_equal(results[index]["y"], results[0]["y"])
            with self.assertRaisesRegex(runnel.Failure, "input 'x' is missing"):
                pipe.run({})
            with self.assertRaisesRegex(runnel.Failure, "the model has no output 'z'"):
                pipe.run(good, ["z"])
            pipe.run(good)
        finally:
            pipe.close()
        with self.assertRaisesRegex(runnel.Failure, "input 'x' is missing"):
            Pipeline(self.library, self.devices, dense(), {})

    def test_threads_and_cancelling(self):
        """Several threads run batches while another cancels: each gets its own result, or was cancelled."""
        data = dense(10, 128)
        pipe = Pipeline(self.library, self.devices, data, {"x": self.rows(1, 128)}, depth=2)
        inputs = [{"x": self.rows(1 + i, 128, seed=i)} for i in range(4)]
        expected, wrong, cancelled = self.alone(data, inputs), [], []

        def caller(index):
            for _ in range(12):
                try:
                    have = pipe.run(inputs[index])["y"]
                    if not np.allclose(have, expected[index]["y"], rtol=1e-4, atol=1e-5):
                        wrong.append(index)
                except runnel.Failure as failure:
                    (cancelled if failure.status == "CANCELLED" else wrong).append(failure)

        threads = [threading.Thread(target=caller, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            pipe.lib.rnl_pipeline_cancel(pipe.handle)
        for thread in threads:
            thread.join()
        try:
            self.assertEqual(wrong, [])
            np.testing.assert_allclose(pipe.run(inputs[0])["y"], expected[0]["y"], rtol=1e-4, atol=1e-5)
        finally:
            pipe.close()

    def test_closing_in_the_middle(self):
        ended = []
        callback = COMPLETE(lambda user, error: ended.append(error.contents.status if error else 0))
        pipe = Pipeline(self.library, self.devices, dense(10, 128), {"x": self.rows(1, 128)}, depth=4)
        given, slots = tensors({"x": self.rows(64, 128)}), [pipe.wanted(["y"]) for _ in range(8)]
        for slot in slots:
            self.library.check(pipe.lib.rnl_pipeline_submit(pipe.handle, given, c.c_size_t(1), slot, c.c_size_t(1),
                                                            callback, None))
        pipe.close()
        self.assertEqual(len(ended), 8)
        self.assertLessEqual(set(ended), {0, 1})
        for slot, status in zip(slots, ended):
            if status == 0:
                pipe.lib.rnl_output_release(c.c_void_p(slot[0].data))
            else:
                self.assertIsNone(slot[0].data)


if __name__ == "__main__":
    unittest.main()
