# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM against numpy in float64, written from the specification: directions, layouts, activations, lengths,
optional inputs and outputs, types, odd sizes, empty tensors."""

import itertools
import os
import sys
import unittest

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

TYPES = {"f32": (np.float32, TensorProto.FLOAT, 2e-5), "f16": (np.float16, TensorProto.FLOAT16, 2e-3),
         "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 2e-2), "f64": (np.float64, TensorProto.DOUBLE, 1e-9)}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def elu(x, a):
    return np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x)


# Function of x, alpha, beta; how many of the two it takes; their defaults.
ACTIVATIONS = {
    "Tanh": (lambda x, a, b: np.tanh(x), 0, ()),
    "Sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), 0, ()),
    "Relu": (lambda x, a, b: np.maximum(x, 0), 0, ()),
    "Affine": (lambda x, a, b: a * x + b, 2, (1.0, 0.0)),
    "LeakyRelu": (lambda x, a, b: np.where(x < 0, a * x, x), 1, (0.01,)),
    "ThresholdedRelu": (lambda x, a, b: np.where(x > a, x, 0), 1, (1.0,)),
    "ScaledTanh": (lambda x, a, b: a * np.tanh(b * x), 2, (1.0, 1.0)),
    "HardSigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 2, (0.2, 0.5)),
    "Elu": (lambda x, a, b: elu(x, a), 1, (1.0,)),
    "Softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0, ()),
    "Softplus": (lambda x, a, b: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), 0, ()),
}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def activations_of(op_type, directions, attributes):
    names = attributes.get("activations") or DEFAULTS[op_type] * directions
    alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
    functions = []
    for name in names:
        function, takes, defaults = next(v for k, v in ACTIVATIONS.items() if k.lower() == name.lower())
        alpha = (alphas.pop(0) if alphas else defaults[0]) if takes > 0 else 0
        beta = (betas.pop(0) if betas else defaults[1]) if takes > 1 else 0
        functions.append(lambda x, f=function, a=np.float32(alpha), b=np.float32(beta): f(x, float(a), float(b)))
    each = len(DEFAULTS[op_type])
    return [functions[i * each:(i + 1) * each] for i in range(directions)]


def cell(op_type, x, h, c, w, r, b, p, functions, clip, attributes):
    """One step of all rows: x and h as rows, weights of one direction; returns h and c."""
    size = h.shape[1]
    bound = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    gate = [slice(i * size, (i + 1) * size) for i in range(4)]
    wb, rb = b[:len(b) // 2], b[len(b) // 2:]
    from_x, from_h = x @ w.T + wb, h @ r.T + rb
    if op_type == "RNN":
        return functions[0](bound(from_x + from_h)), c
    if op_type == "GRU":
        f, g = functions
        z, reset = (f(bound(from_x[:, gate[i]] + from_h[:, gate[i]])) for i in (0, 1))
        if attributes.get("linear_before_reset"):
            hidden = reset * from_h[:, gate[2]]
        else:
            hidden = (reset * h) @ r[gate[2]].T + rb[gate[2]]
        return (1 - z) * g(bound(from_x[:, gate[2]] + hidden)) + z * h, c
    f, g, last = functions
    i_sum, o_sum, f_sum, c_sum = ((from_x + from_h)[:, s] for s in gate)
    i = f(bound(i_sum + p[gate[0]] * c))
    forget = 1 - i if attributes.get("input_forget") else f(bound(f_sum + p[gate[2]] * c))
    c = forget * c + i * g(bound(c_sum))
    return f(bound(o_sum + p[gate[1]] * c)) * last(c), c


def reference(op_type, given, attributes):
    given = {k: np.asarray(v, np.float64) for k, v in given.items()}
    first = attributes.get("layout", 0) == 1
    x = given["X"].swapaxes(0, 1) if first else given["X"]
    directions, steps, rows, size = given["W"].shape[0], x.shape[0], x.shape[1], given["R"].shape[2]
    functions = activations_of(op_type, directions, attributes)
    lengths = given.get("sequence_lens", np.full(rows, steps)).astype(int)
    y = np.zeros((steps, directions, rows, size))
    states = []
    for name in ("initial_h", "initial_c"):
        state = given.get(name)
        state = np.zeros((directions, rows, size)) if state is None else state.swapaxes(0, 1) if first else state
        states.append(state.copy())
    for d, row in itertools.product(range(directions), range(rows)):
        h, c = (s[d, row:row + 1] for s in states)
        b = given["B"][d] if "B" in given else np.zeros(2 * GATES[op_type] * size)
        p = given["P"][d] if "P" in given else np.zeros(3 * size)
        times = range(lengths[row])
        backwards = attributes.get("direction") == "reverse" or d == 1
        for t in reversed(times) if backwards else times:
            h, c = cell(op_type, x[t, row:row + 1], h, c, given["W"][d], given["R"][d], b, p, functions[d],
                        attributes.get("clip", 0), attributes)
            y[t, d, row] = h
        states[0][d, row], states[1][d, row] = h, c
    if first:
        return [y.transpose(2, 0, 1, 3)] + [s.swapaxes(0, 1) for s in states]
    return [y] + states


class RecurrentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(11)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def tensors(self, op_type, steps, rows, inputs, size, optional=(), layout=0, directions=1):
        gates = GATES[op_type]
        first = [rows, directions] if layout else [directions, rows]
        shapes = {"X": [rows, steps, inputs] if layout else [steps, rows, inputs], "W": [directions, gates * size, inputs],
                  "R": [directions, gates * size, size], "B": [directions, 2 * gates * size],
                  "initial_h": first + [size], "initial_c": first + [size], "P": [directions, 3 * size]}
        given = {k: self.random.standard_normal(shape) * 0.5 for k, shape in shapes.items()
                 if k in ("X", "W", "R") or k in optional}
        if "sequence_lens" in optional:
            given["sequence_lens"] = self.random.integers(0, steps + 1, rows).astype(np.int32)
        return given

    def model(self, op_type, given, outputs, dtype, constant, opset, attributes):
        last = max(INPUTS.index(k) for k in given)
        node = helper.make_node(op_type, [k if k in given else "" for k in INPUTS[:last + 1]], outputs, **attributes)
        code = {k: TensorProto.INT32 if k == "sequence_lens" else TYPES[dtype][1] for k in given}
        inputs = [helper.make_tensor_value_info(k, code[k], [f"{k}{i}" for i in range(v.ndim)] if k == "X" else v.shape)
                  for k, v in given.items() if k not in constant]
        weights = [helper.make_tensor(k, code[k], given[k].shape, given[k].tobytes(), raw=True) for k in constant]
        results = [helper.make_tensor_value_info(o, TYPES[dtype][1], None) for o in outputs if o]
        graph = helper.make_graph([node], "g", inputs, results, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def check(self, op_type, given, dtype="f32", outputs=None, constant=("W", "R"), opset=22, **attributes):
        names = (["Y", "Y_h", "Y_c"] if op_type == "LSTM" else ["Y", "Y_h"]) if outputs is None else outputs
        cast = {k: v if k == "sequence_lens" else v.astype(TYPES[dtype][0]) for k, v in given.items()}
        constant = [k for k in constant if k in given]
        model = self.model(op_type, cast, names, dtype, constant, opset, attributes)
        session = runnel.Session(self.device, model.SerializeToString())
        try:
            got = session.run({k: v for k, v in cast.items() if k not in constant})
        finally:
            session.close()
        for name, expected in zip(names, reference(op_type, cast, attributes)):
            if name:
                self.assertEqual(got[name].dtype, np.dtype(TYPES[dtype][0]))
                self.assertEqual(got[name].shape, expected.shape)
                bound = TYPES[dtype][2]
                np.testing.assert_allclose(got[name].astype(np.float64), expected, rtol=bound, atol=bound, err_msg=name)

    def test_directions_and_layouts(self):
        for op_type, direction, layout in itertools.product(GATES, ("forward", "reverse", "bidirectional"), (0, 1)):
            with self.subTest(op_type=op_type, direction=direction, layout=layout):
                directions = 2 if direction == "bidirectional" else 1
                optional = ("B", "initial_h") + (("initial_c", "P") if op_type == "LSTM" else ())
                given = self.tensors(op_type, 5, 3, 7, 5, optional, layout, directions)
                self.check(op_type, given, direction=direction, layout=layout, hidden_size=5)

    def test_lengths_by_row(self):
        for op_type, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
            with self.subTest(op_type=op_type, direction=direction):
                directions = 2 if direction == "bidirectional" else 1
                given = self.tensors(op_type, 6, 5, 3, 6, ("B", "sequence_lens", "initial_h"), 0, directions)
                given["sequence_lens"] = np.array([6, 0, 1, 4, 6], np.int32)
                self.check(op_type, given, direction=direction, hidden_size=6)

    def test_lengths_out_of_range(self):
        given = self.tensors("LSTM", 4, 3, 3, 5, ("sequence_lens",))
        given["sequence_lens"] = np.array([-3, 99, 2], np.int32)
        expected = reference("LSTM", dict(given, sequence_lens=np.array([0, 4, 2])), {})
        model = self.model("LSTM", {k: v if k == "sequence_lens" else v.astype(np.float32) for k, v in given.items()},
                           ["Y"], "f32", [], 22, {"hidden_size": 5})
        session = runnel.Session(self.device, model.SerializeToString())
        got = session.run({k: v if k == "sequence_lens" else v.astype(np.float32) for k, v in given.items()})["Y"]
        session.close()
        np.testing.assert_allclose(got, expected[0], rtol=2e-5, atol=2e-5)

    def test_sizes(self):
        for op_type, size, rows, steps in (("LSTM", 1, 1, 1), ("LSTM", 3, 2, 4), ("LSTM", 33, 1, 9), ("LSTM", 130, 2, 3),
                                           ("GRU", 1, 3, 2), ("GRU", 67, 12, 5), ("RNN", 2, 1, 1), ("RNN", 131, 1, 4)):
            with self.subTest(op_type=op_type, size=size, rows=rows, steps=steps):
                given = self.tensors(op_type, steps, rows, 4, size, ("B",))
                given["R"] = given["R"] / np.sqrt(size)
                self.check(op_type, given, hidden_size=size)

    def test_reset_after_the_product(self):
        for size, rows, direction in ((5, 3, "bidirectional"), (70, 12, "forward")):
            directions = 2 if direction == "bidirectional" else 1
            given = self.tensors("GRU", 4, rows, 3, size, ("B", "initial_h"), 0, directions)
            given["R"] = given["R"] / np.sqrt(size)
            self.check("GRU", given, direction=direction, hidden_size=size, linear_before_reset=1)

    def test_activations(self):
        names = list(ACTIVATIONS)
        for i in range(0, len(names), 3): # three of them are one program
            chosen = (names[i:] + names)[:3]
            with self.subTest(names=chosen):
                self.check("LSTM", self.tensors("LSTM", 3, 2, 3, 5, ("B",)), hidden_size=5, activations=chosen)

    def test_activations_of_each_direction(self):
        given = self.tensors("LSTM", 4, 3, 3, 9, ("B", "P"), 0, 2)
        self.check("LSTM", given, direction="bidirectional", hidden_size=9,
                   activations=["HardSigmoid", "Affine", "tanh", "sigmoid", "ScaledTanh", "LeakyRelu"],
                   activation_alpha=[0.3, 0.9, 1.1, 0.2], activation_beta=[0.4, 0.1, 0.7])
        given = self.tensors("GRU", 4, 3, 3, 6, ("B",), 0, 2)
        self.check("GRU", given, direction="bidirectional", hidden_size=6,
                   activations=["HardSigmoid", "Softsign", "Sigmoid", "Elu"], activation_alpha=[0.25])

    def test_clip_and_coupled_gates(self):
        for op_type in GATES:
            given = self.tensors(op_type, 4, 3, 3, 6, ("B",))
            given["X"] *= 10
            self.check(op_type, given, hidden_size=6, clip=0.7)
        self.check("LSTM", self.tensors("LSTM", 4, 3, 3, 6, ("B", "P", "initial_c")), hidden_size=6, input_forget=1)

    def test_left_out_in_the_middle(self):
        self.check("LSTM", self.tensors("LSTM", 3, 2, 3, 4, ("P",)), hidden_size=4)
        self.check("LSTM", self.tensors("LSTM", 3, 2, 3, 4, ("initial_c",)), hidden_size=4)
        self.check("GRU", self.tensors("GRU", 3, 2, 3, 4, ("initial_h",)), hidden_size=4)
        for outputs in (["Y"], ["", "Y_h"], ["", "", "Y_c"], ["Y", "", "Y_c"]):
            with self.subTest(outputs=outputs):
                self.check("LSTM", self.tensors("LSTM", 3, 2, 3, 4), outputs=outputs, hidden_size=4)

    def test_types(self):
        for dtype, op_type in (("f16", "LSTM"), ("bf16", "GRU"), ("f64", "LSTM")):
            with self.subTest(dtype=dtype, op_type=op_type):
                optional = ("B", "initial_h", "sequence_lens") + (("initial_c", "P") if op_type == "LSTM" else ())
                given = self.tensors(op_type, 4, 3, 5, 19, optional, 0, 2)
                try:
                    self.check(op_type, given, dtype, direction="bidirectional", hidden_size=19)
                except runnel.Failure as failure:
                    if dtype != "f64" or failure.status != "UNIMPLEMENTED":
                        raise

    def test_weights_that_are_computed(self):
        for op_type in GATES:
            self.check(op_type, self.tensors(op_type, 5, 2, 3, 6, ("B",)), constant=(), hidden_size=6)

    def test_old_opsets(self):
        for op_type, opset in itertools.product(GATES, (7, 14, 28)):
            self.check(op_type, self.tensors(op_type, 2, 2, 3, 4, ("B",)), opset=opset, hidden_size=4)

    def test_nothing(self):
        for op_type, (steps, rows, inputs) in itertools.product(GATES, ((0, 2, 3), (3, 0, 2), (2, 2, 0))):
            with self.subTest(op_type=op_type, steps=steps, rows=rows, inputs=inputs):
                given = self.tensors(op_type, steps, rows, inputs, 4, ("B", "initial_h"))
                self.check(op_type, given, hidden_size=4)

    def test_not_a_number_stays_in_its_row(self):
        given = self.tensors("LSTM", 4, 3, 3, 17, ("B",))
        given["X"][1, 1, 0], given["X"][2, 2, 1] = np.nan, np.inf
        self.check("LSTM", given, hidden_size=17)

    def test_steps_do_not_need_programs(self):
        counts = []
        for steps in (5, 40):
            given = self.tensors("LSTM", steps, 20, 3, 24, ("B",))
            before = self.device.stats().programs_compiled + self.device.stats().programs_loaded
            self.check("LSTM", given, hidden_size=24)
            counts.append(self.device.stats().programs_compiled + self.device.stats().programs_loaded - before)
        self.assertEqual(counts[1], 0)

    def exported(self, inputs, size):
        """Two LSTM layers in both directions and a GRU behind them, as torch writes them for batches that come first."""
        weights, nodes = {}, []

        def layer(op_type, source, number, width, directions, state):
            names = [f"{k}{number}" for k in "WRB"]
            tensors = self.tensors(op_type, 1, 1, width, size, ("B",), 0, directions)
            weights.update((name, tensors[k].astype(np.float32)) for name, k in zip(names, "WRB"))
            outputs = [f"Y{number}", f"h{number}"] + ([f"c{number}"] if op_type == "LSTM" else [])
            nodes.append(helper.make_node(op_type, [source] + names + [""] + state, outputs, hidden_size=size,
                                          direction="bidirectional" if directions == 2 else "forward",
                                          **({"linear_before_reset": 1} if op_type == "GRU" else {})))
            nodes.append(helper.make_node("Transpose", [f"Y{number}"], [f"T{number}"], perm=[0, 2, 1, 3]))
            nodes.append(helper.make_node("Reshape", [f"T{number}", "flat"], [f"X{number}"]))

        weights.update(rows=np.array(1), flat=np.array([0, 0, -1]), zero=np.array([0]), two=np.array([2]),
                       four=np.array([4]), one=np.array([size]), nought=np.zeros(1, np.float32))
        nodes += [helper.make_node("Transpose", ["x"], ["X0"], perm=[1, 0, 2]),
                  helper.make_node("Shape", ["X0"], ["shape"]),
                  helper.make_node("Gather", ["shape", "rows"], ["batch"], axis=0),
                  helper.make_node("Unsqueeze", ["batch", "zero"], ["batches"]),
                  helper.make_node("Concat", ["four", "batches", "one"], ["state"], axis=0),
                  helper.make_node("Expand", ["nought", "state"], ["h"]),
                  helper.make_node("Slice", ["h", "zero", "two", "zero"], ["first"]),
                  helper.make_node("Slice", ["h", "two", "four", "zero"], ["second"])]
        layer("LSTM", "X0", 1, inputs, 2, ["first", "first"])
        layer("LSTM", "X1", 2, 2 * size, 2, ["second", "second"])
        layer("GRU", "X2", 3, 2 * size, 1, [])
        nodes += [helper.make_node("Concat", ["h1", "h2"], ["hidden"], axis=0),
                  helper.make_node("Concat", ["c1", "c2"], ["cells"], axis=0),
                  helper.make_node("Transpose", ["X3"], ["y"], perm=[1, 0, 2])]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
                  (("x", ["batch", "time", inputs]), ("y", None), ("hidden", None), ("cells", None), ("h3", None))]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(v, k)
                                                                       for k, v in weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()

    def test_as_torch_exports(self):
        model = self.exported(11, 14)
        session = runnel.Session(self.device, model)
        expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [output.name for output in expected.get_outputs()]
        for shape in ((3, 7, 11), (1, 1, 11), (5, 2, 11), (1, 12, 11)):
            x = self.random.standard_normal(shape).astype(np.float32)
            got = session.run({"x": x})
            for name, value in zip(names, expected.run(names, {"x": x})):
                self.assertEqual(got[name].shape, value.shape)
                np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=f"{name} {shape}")
        session.close()

    def test_refusals(self):
        given = self.tensors("LSTM", 2, 2, 3, 4)
        for attributes in ({"hidden_size": 5}, {"hidden_size": 4, "direction": "sideways"},
                           {"hidden_size": 4, "activations": ["Tanh"]}, {"hidden_size": 4, "layout": 3},
                           {"hidden_size": 4, "activations": ["Tanh", "Sine", "Tanh"]}):
            with self.subTest(attributes=attributes), self.assertRaises(runnel.Failure):
                self.check("LSTM", given, **attributes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
