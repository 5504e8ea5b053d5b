# SPDX-License-Identifier: Apache-2.0
"""Random graphs of 2 to 12 operators: the same results fused, unfused (RUNNEL_FUSE=off), and from onnxruntime.

    test_random_graphs.py              the graphs of the suite, as many as fit into its time
    test_random_graphs.py --graphs N   N graphs, however long that takes
    test_random_graphs.py --seed S     the graph of one seed, with its nodes

Weights are scaled so that values stay near 1, functions have no jumps, and divisors stay away from 0: a rounding error
stays one. So the bound is that of one operator, 1e-4 + 1e-3 * |expected|, and is not widened for chains.
"""

import argparse
import os
import sys
import time
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
from random_operators import MoreOperators  # noqa: E402

ABSOLUTE, RELATIVE = 1e-4, 1e-3
GRAPHS, SECONDS = 300, 240
MAX_OPERATORS, MAX_ELEMENTS = 12, 20000


class Graph(MoreOperators):
    """A graph under construction. Values are names; every operator method returns its output's."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.shapes, self.order = [], [], [], {}, []

    # ---- pieces

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=1.0):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def uniform(self, low, high, *shape):
        return self.constant(self.random.uniform(low, high, shape).astype(np.float32))

    def scalar(self, value):
        return self.constant(np.array(value, np.float32).reshape(self.pick((), (1,))))

    def input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.shapes[name] = tuple(shape)
        self.order.append(name)
        return name

    def add(self, op_type, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op_type, inputs, names, name=f"n{len(self.nodes)}", **attributes)
        used = [t for t in self.initializers if t.name in inputs]
        known = [helper.make_tensor_value_info(i, TensorProto.FLOAT, self.shapes[i]) for i in inputs if i in self.shapes]
        graph = helper.make_graph([node], "one", known, [helper.make_empty_tensor_value_info(n) for n in names], used)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        for output in inferred.graph.output:
            self.shapes[output.name] = tuple(d.dim_value for d in output.type.tensor_type.shape.dim)
            self.order.append(output.name)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def rank(self, value):
        return len(self.shapes[value])

    def value(self, *ranks, least=1):
        """One of the values of these ranks, most often the newest; None when there is none."""
        fitting = [v for v in self.order if self.rank(v) in ranks and min(self.shapes[v]) >= least]
        if not fitting:
            return None
        return fitting[-1] if self.random.random() < 0.75 else self.pick(*fitting)

    def partner(self, value):
        """Another value of the shape, or one that broadcasts to it."""
        same = [v for v in self.order if self.shapes[v] == self.shapes[value] and v != value]
        if same and self.random.random() < 0.7:
            return self.pick(*same)
        shape = list(self.shapes[value])
        for axis in range(len(shape)):
            if self.random.random() < 0.5:
                shape[axis] = 1
        return self.uniform(0.5, 2, *shape[self.random.integers(len(shape)):])

    # ---- elementwise

    def activation(self):
        x = self.value(2, 3, 4)
        kind = self.pick("Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Softplus", "Abs",
                         "Neg", "Erf", "Relu", "Sigmoid")
        return self.add(kind, x)

    def clip(self):
        x = self.value(2, 3, 4)
        bounds = self.pick(("", 6.0), (0.0, 6.0), (-1.0, ""), (-0.5, 0.5))
        return self.add("Clip", x, *[b if b == "" else self.constant(np.float32(b)) for b in bounds])

    def hard_swish(self):
        x = self.value(2, 3, 4)
        gate = self.add("Clip", self.add("Add", x, self.scalar(3)), self.constant(np.float32(0)),
                        self.constant(np.float32(6)))
        return self.add("Div", self.add("Mul", x, gate), self.scalar(6))

    def swish(self):
        x = self.value(2, 3, 4)
        return self.add("Mul", x, self.add("Sigmoid", x))

    def gelu(self):
        x = self.value(2, 3, 4)
        half = self.add("Add", self.add("Erf", self.add("Div", x, self.scalar(np.sqrt(2)))), self.scalar(1))
        return self.add("Mul", self.add("Mul", x, half), self.scalar(0.5))

    def affine(self):
        x = self.value(2, 3, 4)
        return self.add("Add", self.add("Mul", x, self.scalar(self.random.uniform(0.5, 1.5))),
                        self.scalar(self.random.uniform(-1, 1)))

    def channels(self):
        """By or with a constant over the channels."""
        x = self.value(3, 4)
        if x is None:
            return None
        shape = (self.shapes[x][1],) + (1,) * (self.rank(x) - 2)
        factors = self.uniform(0.5, 2, *shape)
        return self.pick(lambda: self.add(self.pick("Mul", "Add", "Sub", "Div", "PRelu"), x, factors),
                         lambda: self.add("Sub", factors, x))()

    def binary(self):
        x = self.value(2, 3, 4)
        y = self.partner(x)
        kind = self.pick("Add", "Mul", "Sub", "Add", "Max", "Min")
        return self.add(kind, *self.pick((x, y), (y, x)))

    def variadic(self):
        x = self.value(2, 3, 4)
        return self.add(self.pick("Sum", "Mean", "Max", "Min"), x, self.partner(x), self.partner(x))

    def batch_norm(self):
        x = self.value(2, 3, 4)
        count = self.shapes[x][1]
        return self.add("BatchNormalization", x, self.uniform(0.5, 1.5, count), self.normal(count),
                        self.normal(count, scale=0.5), self.uniform(0.5, 2, count))

    def gate(self):
        """Each channel by a number that is made from it."""
        x = self.value(4)
        if x is None:
            return None
        return self.add("Mul", x, self.add("Sigmoid", self.add("GlobalAveragePool", x)))

    # ---- anchors

    def conv(self):
        x = self.value(4)
        if x is None:
            return None
        c = self.shapes[x][1]
        groups = self.pick(1, 1, 1, c, *([2] if c % 2 == 0 else []))
        k = self.pick(1, 1, 3, (3, 1), 2)
        kernel = (k, k) if isinstance(k, int) else k
        pads, strides, dilation = self.pick(0, 1, 2), self.pick(1, 1, 1, 2), self.pick(1, 1, 1, 2)
        if any(s + 2 * pads < dilation * (w - 1) + 1 for s, w in zip(self.shapes[x][2:], kernel)):
            return None
        filters = groups * self.pick(1, 2, 3) if groups > 1 else self.pick(1, 3, 8, 13, 16, 20, 33)
        weight = self.normal(filters, c // groups, *kernel, scale=(c // groups * np.prod(kernel)) ** -0.5)
        bias = [self.normal(filters)] if self.random.random() < 0.6 else []
        return self.add("Conv", x, weight, *bias, group=groups, pads=[pads] * 4, strides=[strides] * 2,
                        dilations=[dilation] * 2)

    def conv_transpose(self):
        x = self.value(4)
        if x is None:
            return None
        c = self.shapes[x][1]
        groups = self.pick(1, 1, *([2] if c % 2 == 0 else []))
        k, stride = self.pick((2, 2), (3, 1), (3, 2))
        weight = self.normal(c, self.pick(1, 4, 9), k, k, scale=(c // groups * k) ** -0.5)
        return self.add("ConvTranspose", x, weight, group=groups, strides=[stride] * 2)

    def mat_mul(self):
        x = self.value(2, 3, 4)
        k, n = self.shapes[x][-1], self.pick(1, 5, 16, 30)
        return self.add("MatMul", x, self.normal(k, n, scale=k ** -0.5))

    def product(self):
        """Two computed factors."""
        x = self.value(2, 3)
        if x is None:
            return None
        turned = self.add("Transpose", x, perm=[0, 2, 1] if self.rank(x) == 3 else [1, 0])
        return self.add("Mul", self.add("MatMul", x, turned), self.scalar(1 / self.shapes[x][-1]))

    def gemm(self):
        x = self.value(2)
        if x is None:
            return None
        k, n, turned = self.shapes[x][1], self.pick(1, 7, 16, 25), self.pick(0, 1)
        weight = self.normal(*((n, k) if turned else (k, n)), scale=k ** -0.5)
        c = self.pick(lambda: [], lambda: [self.normal(n)], lambda: [self.normal(1, n)], lambda: [self.normal(1)],
                      lambda: [self.normal(self.shapes[x][0], n)])()
        return self.add("Gemm", x, weight, *c, transB=turned, alpha=self.pick(1.0, 0.5), beta=self.pick(1.0, 2.0))

    # ---- others

    def pool(self):
        x = self.value(4, least=1)
        if x is None or min(self.shapes[x][2:]) < 2:
            return None
        kind = self.pick("MaxPool", "AveragePool")
        extra = {"count_include_pad": self.pick(0, 1)} if kind == "AveragePool" else {}
        pad = self.pick(0, 1)
        return self.add(kind, x, kernel_shape=[2, 2], strides=[self.pick(1, 2)] * 2, pads=[pad] * 4, **extra)

    def concat(self):
        x = self.value(2, 3, 4)
        axis = int(self.random.integers(self.rank(x)))
        fitting = [v for v in self.order if self.rank(v) == self.rank(x) and
                   all(a == b or i == axis for i, (a, b) in enumerate(zip(self.shapes[v], self.shapes[x])))]
        return self.add("Concat", x, *[self.pick(*fitting) for _ in range(self.pick(1, 2))], axis=axis)

    def split(self):
        x = self.value(2, 3, 4)
        axis = int(self.random.integers(self.rank(x)))
        size = self.shapes[x][axis]
        if size < 2:
            return None
        first = int(self.random.integers(1, size))
        return self.add("Split", x, self.constant(np.array([first, size - first], np.int64)), outputs=2, axis=axis)[0]

    def slice(self):
        x = self.value(2, 3, 4, least=2)
        if x is None:
            return None
        axis = int(self.random.integers(self.rank(x)))
        bounds = [[self.pick(0, 1)], [self.shapes[x][axis]], [axis], [self.pick(1, 1, 2)]]
        return self.add("Slice", x, *[self.constant(np.array(b, np.int64)) for b in bounds])

    def pad(self):
        x = self.value(4)
        if x is None:
            return None
        amounts = [0, 0, self.pick(0, 1), self.pick(0, 2), 0, self.pick(0, 0, 1), self.pick(0, 1), self.pick(1, 0)]
        return self.add("Pad", x, self.constant(np.array(amounts, np.int64)))

    def reshape(self):
        x = self.value(3, 4)
        if x is None:
            return None
        shape = self.pick([0, -1], [0, 0, -1])
        return self.add("Reshape", x, self.constant(np.array(shape, np.int64)))

    def transpose(self):
        x = self.value(2, 3, 4)
        return self.add("Transpose", x, perm=[int(i) for i in self.random.permutation(self.rank(x))])

    def tokens(self):
        x = self.value(4)
        if x is None:
            return None
        n, c, h, w = self.shapes[x]
        flat = self.add("Reshape", x, self.constant(np.array([n, c, h * w], np.int64)))
        return self.add("Transpose", flat, perm=[0, 2, 1])

    def layer_norm(self):
        x = self.value(2, 3)
        if x is None or self.shapes[x][-1] < 4:
            return None
        count = self.shapes[x][-1]
        return self.add("LayerNormalization", x, self.uniform(0.5, 1.5, count), self.normal(count), axis=-1,
                        epsilon=1e-2)

    def softmax(self):
        return self.add("Softmax", self.value(2, 3, 4), axis=-1)

    def reduce(self):
        x = self.value(2, 3, 4)
        return self.add("ReduceMean", x, axes=[self.rank(x) - 1], keepdims=1)

    def resize(self):
        x = self.value(4)
        if x is None:
            return None
        empty = self.constant(np.array([], np.float32))
        return self.add("Resize", x, empty, self.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                        coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    # ---- the whole

    def grow(self):
        kinds = [self.activation] * 4 + [self.conv] * 6 + [self.mat_mul, self.gemm] * 2 + [
            self.clip, self.hard_swish, self.swish, self.gelu, self.affine, self.channels, self.channels, self.binary,
            self.binary, self.binary, self.variadic, self.batch_norm, self.batch_norm, self.batch_norm, self.gate,
            self.conv_transpose, self.product, self.pool, self.concat, self.split, self.slice, self.pad, self.reshape,
            self.transpose, self.tokens, self.layer_norm, self.softmax, self.reduce, self.resize, *self.more_kinds()]
        self.input(self.pick(1, 2), self.pick(1, 3, 4, 7, 16, 18), self.pick(4, 5, 9), self.pick(3, 6, 8))
        if self.random.random() < 0.3:
            self.input(*self.pick(self.shapes["x0"], (3, 12), (2, 5, 8)))
        wanted = int(self.random.integers(2, MAX_OPERATORS + 1))
        while len(self.nodes) < wanted:
            before = len(self.nodes), len(self.order)
            self.pick(*kinds)()
            largest = max(np.prod(self.shapes[v]) for v in self.order)
            if len(self.nodes) > MAX_OPERATORS or largest > MAX_ELEMENTS:
                del self.nodes[before[0]:]
                for name in self.order[before[1]:]:
                    del self.shapes[name]
                del self.order[before[1]:]
        return self

    def outputs(self):
        """What nothing reads, and now and then a value from within."""
        read = {i for n in self.nodes for i in n.input}
        made = [o for n in self.nodes for o in n.output]
        inner = [self.pick(*made)] if self.random.random() < 0.3 else []
        return [v for v in made if v not in read or v in inner]

    def model(self):
        outputs = [helper.make_tensor_value_info(v, TensorProto.FLOAT, self.shapes[v]) for v in self.outputs()]
        graph = helper.make_graph(self.nodes, "random", self.inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def feed(self):
        return {i.name: self.random.standard_normal(self.shapes[i.name]).astype(np.float32) for i in self.inputs}

    def describe(self):
        lines = [f"  {i.name} {self.shapes[i.name]}" for i in self.inputs]
        for node in self.nodes:
            lines.append(f"  {node.name} {node.op_type}({', '.join(node.input)}) -> "
                         f"{', '.join(f'{o} {self.shapes[o]}' for o in node.output)}")
        return "\n".join(lines)


def run_runnel(device, model, feed, fused):
    os.environ["RUNNEL_FUSE"] = "on" if fused else "off"
    session = runnel.Session(device, model)
    try:
        return session.run(feed)
    finally:
        session.close()
        del os.environ["RUNNEL_FUSE"]


def run_onnxruntime(model, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def difference(got, expected):
    """What is wrong with a result, or None."""
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    with np.errstate(invalid="ignore"):
        excess = np.abs(got.astype(np.float64) - expected) - (ABSOLUTE + RELATIVE * np.abs(expected))
    excess[np.isnan(got) & np.isnan(expected)] = 0
    wrong = ~(excess <= 0)
    if not wrong.any():
        return None
    at = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), got.shape)
    return f"{wrong.sum()} of {got.size} elements differ, worst at {at}: {got[at]} instead of {expected[at]}"


def compare(device, seed):
    """The differences of one seed's graph, as lines."""
    graph = Graph(seed).grow()
    model, feed = graph.model().SerializeToString(), graph.feed()
    expected = run_onnxruntime(model, feed)
    fused, unfused = run_runnel(device, model, feed, True), run_runnel(device, model, feed, False)
    pairs = (("unfused", unfused, "onnxruntime", expected), ("fused", fused, "onnxruntime", expected),
             ("fused", fused, "unfused", unfused))
    found = [f"{a} against {b}, {name}: {text}" for a, left, b, right in pairs for name in expected
             if (text := difference(left[name], right[name]))]
    return [f"seed {seed}:", graph.describe(), *found] if found else []


class RandomGraphTest(unittest.TestCase):
    def test_graphs(self):
        device = runnel.Device(runnel.Library())
        start, done, failures = time.monotonic(), 0, []
        for seed in range(1, GRAPHS + 1):
            if time.monotonic() - start > SECONDS and done > 0:
                break
            failures += compare(device, seed)
            done += 1
        device.close()
        print(f"seeds 1 to {done}, {time.monotonic() - start:.0f} s")
        self.assertFalse(failures, "\n" + "\n".join(failures))


def run_by_hand(arguments):
    device = runnel.Device(runnel.Library())
    seeds = [arguments.seed] if arguments.seed is not None else range(1, arguments.graphs + 1)
    failed = 0
    for seed in seeds:
        if arguments.seed is not None:
            print(Graph(seed).grow().describe())
        try:
            lines = compare(device, seed)
        except runnel.Failure as failure:
            lines = [f"seed {seed}:", Graph(seed).grow().describe(), str(failure)]
        failed += bool(lines)
        if lines:
            print("\n".join(lines), flush=True)
    print(f"{len(seeds)} graphs, {failed} wrong")
    device.close()
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--graphs", type=int)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    if options.graphs is not None or options.seed is not None:
        sys.exit(run_by_hand(options))
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
