# SPDX-License-Identifier: Apache-2.0
"""Operators that only rearrange: right in every arrangement, and without steps of their own where views can say it.

Each case is a small graph, compared with onnxruntime. Its steps, counted by what is launched, are at most those of the
operators that compute, and `edges`: copies that the case cannot do without, such as turning images round.

RUNNEL_TEST_SMALL  one in RUNNEL_TEST_EACH of the tests, and those that have every kind of writer
RUNNEL_TEST_SEEDS  FIRST,COUNT of the random graphs
"""

import os
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

SMALL = bool(os.environ.get("RUNNEL_TEST_SMALL"))
REARRANGE = {"Concat", "Pad", "Slice", "Split", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",
             "Dropout", "Expand"}


class Net:
    """A graph under construction; every method adds a node and returns its output's name."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.initializers, self.feed = [], [], [], [], {}

    def input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.feed[name] = self.random.standard_normal(shape).astype(np.float32)
        return name

    def constant(self, value):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape).astype(np.float32) / 4)

    def add(self, op_type, *inputs, outputs=1, **attributes):
        names = [f"{op_type}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, channels, filters, kernel=3, groups=1, **attributes):
        weight = self.weight(filters, channels // groups, kernel, kernel)
        return self.add("Conv", x, weight, self.weight(filters), group=groups, pads=[kernel // 2] * 4, **attributes)

    def concat(self, *inputs, axis=1):
        return self.add("Concat", *inputs, axis=axis)

    def reshape(self, x, *shape):
        return self.add("Reshape", x, self.constant(np.array(shape, np.int64)))

    def slice(self, x, axis, start, end, step=1):
        values = [self.constant(np.array([v], np.int64)) for v in (start, end, axis, step)]
        return self.add("Slice", x, *values)

    def pad(self, x, pads, value=None, mode="constant"):
        extra = [] if value is None else [self.constant(np.float32(value))]
        return self.add("Pad", x, self.constant(np.array(pads, np.int64)), *extra, mode=mode)

    def output(self, *names):
        self.outputs += names

    def model(self):
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "views", self.inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def dense_block(net, batch, layers, grows=8):
    x = net.conv(net.input(batch, 3, 9, 7), 3, 16)
    channels = 16
    for _ in range(layers):
        y = net.add("Relu", x)
        y = net.conv(net.conv(y, channels, 24, 1), 24, grows)
        x = net.concat(x, y)
        channels += grows
    return x, channels


class RandomNet(Net):
    """Operators that rearrange, between others that write what they are asked to; `known` has the shapes."""

    def __init__(self, seed):
        super().__init__(seed)
        shapes = [(int(self.random.integers(1, 3)), 4, 6, 5), (2, 3, 8), (4, 6)]
        self.known = {self.input(*shape): shape for shape in shapes}
        rules = [self.join, self.join, self.join, self.turn, self.shape, self.cut, self.divide, self.surround,
                 self.compute, self.compute, self.compute, self.windows, self.products]
        while len(self.nodes) < 16:
            rules[self.pick(len(rules))]()
        made = [output for node in self.nodes for output in node.output]
        self.output(*(made[i] for i in sorted({self.pick(len(made)) for _ in range(4)} | {len(made) - 1})))

    def pick(self, count):
        return int(self.random.integers(count))

    def any_value(self, rank=None):
        names = [name for name, shape in self.known.items() if rank in (None, len(shape))]
        recent = names[-6:] if self.pick(4) else names
        name = recent[self.pick(len(recent))]
        return name, self.known[name]

    def keep(self, name, shape):
        if np.prod(shape) <= 20000:
            self.known[name] = tuple(int(size) for size in shape)

    def join(self):
        x, shape = self.any_value()
        axis = self.pick(len(shape))
        fits = [n for n, other in self.known.items() if len(other) == len(shape) and
                all(a == b or i == axis for i, (a, b) in enumerate(zip(shape, other)))]
        parts = [x] + [fits[self.pick(len(fits))] for _ in range(1 + self.pick(3))]
        parts = [parts[i] for i in self.random.permutation(len(parts))]
        size = sum(self.known[part][axis] for part in parts)
        self.keep(self.concat(*parts, axis=axis), shape[:axis] + (size,) + shape[axis + 1:])

    def turn(self):
        x, shape = self.any_value()
        perm = [int(i) for i in self.random.permutation(len(shape))]
        self.keep(self.add("Transpose", x, perm=perm), [shape[i] for i in perm])

    def shape(self):
        x, shape = self.any_value()
        sizes, total = [], int(np.prod(shape))
        for _ in range(self.pick(4)):
            divisors = [d for d in range(1, 13) if total % d == 0]
            sizes.append(divisors[self.pick(len(divisors))])
            total //= sizes[-1]
        sizes.insert(self.pick(len(sizes) + 1), total)
        self.keep(self.reshape(x, *sizes), sizes)

    def cut(self):
        x, shape = self.any_value()
        axis = self.pick(len(shape))
        start, step = self.pick(shape[axis]), (1, 2, -1)[self.pick(3)]
        end = shape[axis] if step > 0 else -shape[axis] - 1
        size = len(range(shape[axis])[start::step])
        self.keep(self.slice(x, axis, start, end, step), shape[:axis] + (size,) + shape[axis + 1:])

    def divide(self):
        x, shape = self.any_value()
        axis = self.pick(len(shape))
        if shape[axis] > 1:
            sizes = [1 + self.pick(shape[axis] - 1)]
            sizes.append(shape[axis] - sizes[0])
            for name, size in zip(self.add("Split", x, self.constant(np.array(sizes)), outputs=2, axis=axis), sizes):
                self.keep(name, shape[:axis] + (size,) + shape[axis + 1:])

    def surround(self):
        x, shape = self.any_value()
        pads = [self.pick(3) for _ in range(2 * len(shape))]
        self.keep(self.pad(x, pads, 0.25), np.add(shape, np.add(pads[:len(shape)], pads[len(shape):])))

    def compute(self):
        x, shape = self.any_value()
        same = [name for name, other in self.known.items() if other == shape]
        inputs = [x] if self.pick(3) else [x, same[self.pick(len(same))]]
        name = ("Tanh", "Relu", "Identity")[self.pick(3)] if len(inputs) == 1 else ("Add", "Sub")[self.pick(2)]
        self.keep(self.add(name, *inputs), shape)

    def windows(self):
        x, shape = self.any_value(rank=4)
        if self.pick(2):
            filters = 1 + self.pick(9)
            self.keep(self.conv(x, shape[1], filters, (1, 3)[self.pick(2)]), (shape[0], filters) + shape[2:])
        else:
            self.keep(self.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4), shape)

    def products(self):
        x, shape = self.any_value()
        columns = 1 + self.pick(9)
        if len(shape) > 1 and self.pick(2):
            self.keep(self.add("MatMul", x, self.weight(shape[-1], columns)), shape[:-1] + (columns,))
        else:
            self.keep(self.add("Softmax", x, axis=self.pick(len(shape))), shape)


class ViewsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def setUp(self):
        name = self.id().rsplit(".", 1)[-1]
        if SMALL and "every_kind_of_writer" not in name and not runnel.chosen(name):
            self.skipTest("not one of RUNNEL_TEST_EACH")

    def check(self, net, edges=None):
        model = net.model()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        expected = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, net.feed)
        session = runnel.Session(self.device, model)
        try:
            session.run(net.feed)
            before = self.device.stats().kernels_launched
            got = session.run(net.feed)
            launched = self.device.stats().kernels_launched - before
        finally:
            session.close()
        for name, value in zip(net.outputs, expected):
            self.assertEqual(got[name].shape, value.shape, name)
            scale = max(1.0, float(np.abs(value).max(initial=0)))
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5 * scale, err_msg=name)
        if edges is not None:
            computing = sum(n.op_type not in REARRANGE for n in net.nodes)
            self.assertLessEqual(launched, computing + edges, "steps that only move data")

    # ---- Concat ----

    def test_dense_block(self):
        for batch in (1, 3):
            net = Net()
            x, _ = dense_block(net, batch, 4)
            net.output(net.add("Relu", x))
            self.check(net, edges=2)

    def test_dense_block_that_lists_all_parts(self):
        net = Net()
        parts, channels = [net.conv(net.input(2, 3, 6, 5), 3, 8)], 8
        for _ in range(3):
            joined = net.concat(*parts) if len(parts) > 1 else parts[0]
            parts.append(net.conv(net.add("Relu", joined), channels, 4))
            channels += 4
        net.output(net.add("Relu", net.concat(*parts)))
        self.check(net, edges=2)

    def test_nested_on_several_axes(self):
        net = Net()
        x = net.input(2, 4, 6, 6)
        a, b, c = net.conv(x, 4, 5), net.conv(x, 4, 3), net.conv(x, 4, 8)
        columns = net.concat(net.concat(a, b), c, axis=3)
        rows = net.concat(columns, net.concat(c, c, axis=3), axis=2)
        net.output(net.conv(rows, 8, 4))
        self.check(net, edges=5)  # the input and the output, and c, three times more

    def test_every_axis(self):
        for axis in range(-4, 4):
            net = Net()
            x = net.input(2, 4, 5, 3)
            a, b = net.conv(x, 4, 4), net.add("Relu", net.conv(x, 4, 4))
            net.output(net.add("Tanh", net.concat(a, b, axis=axis)))
            self.check(net, edges=2)

    def test_parts_used_elsewhere_and_outputs(self):
        net = Net()
        x = net.input(2, 4, 5, 6)
        a, b = net.conv(x, 4, 6), net.conv(x, 4, 2)
        joined = net.concat(a, b)
        net.output(a, joined, net.conv(a, 6, 3), net.add("MaxPool", b, kernel_shape=[2, 2]),
                   net.add("Add", net.slice(joined, 1, 1, 7), a))
        self.check(net, edges=6)

    def test_inputs_constants_and_repeats(self):
        net = Net()
        x, y = net.input(2, 3, 4, 4), net.input(2, 2, 4, 4)
        a = net.add("Relu", x)
        net.output(net.concat(x, y), net.concat(a, a, x), net.concat(net.weight(2, 1, 4, 4), a, y),
                   net.concat(net.weight(1, 3), net.weight(2, 3), axis=0))
        self.check(net)

    def test_parts_of_a_split(self):
        net = Net()
        x = net.conv(net.input(1, 3, 5, 4), 3, 8)
        a, b, c = net.add("Split", x, net.constant(np.array([2, 3, 3], np.int64)), outputs=3, axis=1)
        net.output(net.add("Tanh", net.concat(a, b, c)), net.add("Tanh", net.concat(c, b, a)),
                   net.add("Tanh", net.concat(b, c)))
        self.check(net, edges=7)

    def test_slices_and_views_of_parts(self):
        net = Net()
        x = net.input(2, 6, 5, 4)
        a = net.add("Sigmoid", x)
        b = net.slice(a, 1, 4, 0, -2)
        c = net.add("Transpose", net.add("Tanh", net.add("Transpose", x, perm=[0, 2, 3, 1])), perm=[0, 3, 1, 2])
        d = net.add("Identity", net.add("Neg", x))
        net.output(net.concat(a, b, c, d), net.concat(c, d, axis=2))
        self.check(net)

    def test_through_transpose_and_reshape(self):
        net = Net()
        x = net.input(2, 3, 8)
        parts = [net.reshape(net.add("Transpose", net.add(op, x), perm=[1, 0, 2]), 3, 2, 2, 4)
                 for op in ("Tanh", "Neg", "Abs")]
        net.output(net.add("Relu", net.concat(*parts)))
        self.check(net, edges=0)

    def test_rows_that_cannot_be_parts(self):
        net = Net()
        x = net.input(2, 6, 4)
        heads = [net.add("Transpose", net.reshape(net.add("MatMul", x, net.weight(4, 8)), 2, 6, 2, 4), perm=[0, 2, 1, 3])
                 for _ in range(2)]
        net.output(net.add("Tanh", net.concat(*heads)))
        self.check(net, edges=2)

    def test_heads_of_attention(self):
        for batch in (1, 2):
            net = Net()
            x = net.input(batch, 5, 8)
            q, k, v = (net.add("Transpose", net.reshape(net.add("MatMul", x, net.weight(8, 8)), batch, 5, 2, 4), perm=perm)
                       for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
            mixed = net.add("MatMul", net.add("Softmax", net.add("MatMul", q, k)), v)
            joined = net.reshape(net.add("Transpose", mixed, perm=[0, 2, 1, 3]), batch, 5, 8)
            net.output(net.add("MatMul", joined, net.weight(8, 8)))
            self.check(net, edges=0)

    def test_shuffled_channels(self):
        for batch in (1, 2):
            net = Net()
            x = net.conv(net.input(batch, 3, 6, 5), 3, 12)
            x = net.add("Transpose", net.reshape(x, batch, 3, 4, 6, 5), perm=[0, 2, 1, 3, 4])
            net.output(net.conv(net.reshape(x, batch, 12, 6, 5), 12, 12, groups=12))
            self.check(net, edges=3)

    def test_reshapes_that_split_nothing(self):
        net = Net()
        x = net.add("Transpose", net.add("Relu", net.input(4, 6, 5)), perm=[2, 1, 0])
        net.output(net.reshape(x, 8, 15), net.reshape(net.slice(x, 1, 0, 4), 10, 8), net.reshape(x, 5, 2, 3, 2, 2),
                   net.reshape(net.slice(x, 2, 3, 0, -1), 3, 30))
        self.check(net)

    def test_new_axes(self):
        net = Net()
        x = net.input(3, 4)
        axis = net.constant(np.array([1], np.int64))
        rows = [net.add("Unsqueeze", net.add(op, x), axis) for op in ("Tanh", "Neg", "Abs")]
        net.output(net.add("Relu", net.concat(*rows)))
        self.check(net, edges=0)

    def test_layouts_that_disagree(self):
        net = Net()
        x, y = net.input(2, 3, 4, 4), net.input(2, 5, 16)
        flat = net.reshape(net.add("MatMul", y, net.weight(16, 16)), 2, 5, 4, 4)
        image = net.conv(x, 3, 5)
        net.output(net.add("Relu", net.concat(flat, image)), net.add("Relu", net.concat(image, flat, axis=0)))
        self.check(net)

    def test_rows_of_products(self):
        net = Net()
        x = net.input(5, 7)
        parts = [net.add("Gemm", x, net.weight(7, n), net.weight(n)) for n in (4, 1, 9)]
        parts.append(net.add("MatMul", x, net.weight(7, 3)))
        joined = net.concat(*parts)
        net.output(net.add("Softmax", joined, axis=1), net.add("ReduceSum", joined, net.constant(np.array([0], np.int64))))
        self.check(net, edges=1)  # a column is no row

    def test_every_kind_of_writer(self):
        """The parts lie in the reverse order of their writing, so that a write past a part's end spoils another."""
        for channels in (5,) if SMALL else (8, 5, 19):
            net = Net()
            x = net.conv(net.input(2, 3, 6, 6), 3, channels)
            norm = [net.weight(channels), net.weight(channels), net.weight(channels),
                    net.constant(np.full(channels, 2, np.float32))]
            parts = [net.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4),
                     net.add("BatchNormalization", x, *norm),
                     net.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4),
                     net.add("LRN", x, size=3),
                     net.add("ConvTranspose", x, net.weight(channels, 3, 3, 3), pads=[1] * 4),
                     net.add("Softmax", x, axis=1),
                     net.add("Add", x, net.weight(1, channels, 1, 1)),
                     net.add("Sum", x, x, x),
                     net.add("Clip", x, "", ""),
                     net.conv(x, channels, channels, groups=channels),
                     net.conv(x, channels, 2 * channels, 1, groups=channels),
                     net.add("InstanceNormalization", x, net.weight(channels), net.weight(channels)),
                     net.add("Relu", net.conv(x, channels, 7, 1)),
                     net.add("Mul", net.conv(x, channels, channels), x)]
            joined = net.concat(*reversed(parts))
            resized = net.add("Resize", x, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
            pooled = net.add("GlobalAveragePool", joined)
            most = net.add("GlobalMaxPool", joined)
            net.output(joined, net.concat(net.add("Tanh", resized), resized, axis=3), net.concat(most, pooled))
            self.check(net)

    def test_every_kind_of_writer_of_rows(self):
        for columns in (5,) if SMALL else (8, 5, 19):
            net = Net()
            x = net.input(3, 4, columns)
            vector = net.weight(columns)
            parts = [net.add("MatMul", x, net.weight(columns, columns)),
                     net.add("Add", net.add("MatMul", x, net.weight(columns, columns + 2)), net.weight(columns + 2)),
                     net.add("LayerNormalization", x, vector, vector),
                     net.add("Softmax", x, axis=-1),
                     net.add("ReduceSum", x, net.constant(np.array([2], np.int64)), keepdims=1),
                     net.add("Gather", x, net.constant(np.array([2, 0, 1], np.int64)), axis=2),
                     net.add("Tile", x, net.constant(np.array([1, 1, 2], np.int64))),
                     net.add("Cast", net.add("Cast", x, to=TensorProto.FLOAT16), to=TensorProto.FLOAT),
                     net.add("Where", net.constant(np.arange(columns) % 3 == 0), x, net.add("Neg", x)),
                     net.add("Relu", x)]
            joined = net.concat(*reversed(parts), axis=2)
            net.output(joined, net.add("ReduceSum", joined, net.constant(np.array([1], np.int64))))
            self.check(net)

    def test_nothing_in_a_part(self):
        net = Net()
        x = net.conv(net.input(2, 3, 4, 4), 3, 4)
        net.output(net.concat(net.slice(x, 1, 0, 0), net.add("Relu", x)),
                   net.concat(net.add("Relu", net.slice(x, 2, 1, 1)), net.add("Tanh", x), axis=2))
        self.check(net)

    def test_deep_nesting(self):
        net = Net()
        x = net.add("Relu", net.input(2, 3))
        for i in range(300):
            x = net.concat(x, net.add("Neg", net.slice(x, 1, i, i + 1)))
        net.output(x)
        self.check(net)

    # ---- Pad ----

    def test_pad(self):
        for batch in (1, 2):
            net = Net()
            x = net.conv(net.input(batch, 3, 5, 6), 3, 4)
            net.output(net.add("Relu", net.pad(net.add("Tanh", x), [0, 0, 1, 2, 0, 0, 3, 0], 0.5)))
            self.check(net, edges=2 + 3)  # three sides have padding

    def test_pad_of_all_sides_and_modes(self):
        for mode in ("constant", "reflect", "edge"):
            net = Net()
            x = net.input(2, 3, 5, 4)
            y = net.conv(x, 3, 4)
            net.output(net.pad(x, [1, 0, 2, 1, 0, 1, 1, 2], mode=mode), net.pad(y, [0, 1, 2, 2, 1, 1, 1, 1], mode=mode),
                       net.pad(net.add("Neg", y), [1, -1, 2, -2, 1, 1, -1, 1], mode=mode), net.conv(y, 4, 3))
            self.check(net)

    def test_padded_parts(self):
        net = Net()
        x = net.conv(net.input(2, 3, 5, 6), 3, 4)
        wide = net.pad(net.add("Tanh", x), [0, 0, 0, 1, 0, 0, 0, 1], -1.0)
        more = net.pad(net.concat(wide, net.conv(wide, 4, 2)), [0, 0, 1, 0, 0, 0, 1, 0])
        net.output(net.concat(more, net.add("Abs", more), axis=3), net.pad(net.pad(x, [1] * 8), [0, 2] * 4, 3.0))
        self.check(net)

    # ---- reading views ----

    def test_images_that_are_parts_of_images(self):
        for batch in (1, 2):
            net = Net()
            x = net.conv(net.input(batch, 3, 9, 8), 3, 12)
            parts = [net.slice(x, 1, 4, 12), net.slice(x, 2, 1, 8), net.slice(x, 3, 0, 8, 2), net.slice(x, 2, 8, 0, -2)]
            results = [net.conv(part, channels, 4) for part, channels in zip(parts, (8, 12, 12, 12))]
            results += [net.add("MaxPool", part, kernel_shape=[2, 2]) for part in parts]
            results += [net.conv(parts[0], 8, 8, groups=8), net.add("GlobalAveragePool", parts[1]),
                        net.add("ConvTranspose", parts[2], net.weight(12, 4, 2, 2))]
            net.output(*(net.add("ReduceMean", net.add("Relu", y), axes=[1, 2, 3]) for y in results))
            self.check(net, edges=1)

    def test_input_turned_once(self):
        net = Net()
        x = net.input(2, 3, 8, 8)
        results = [net.conv(x, 3, 4), net.conv(x, 3, 5, 1), net.add("MaxPool", x, kernel_shape=[2, 2])]
        net.output(*(net.add("GlobalAveragePool", y) for y in results))
        self.check(net, edges=1)

    def test_vector_behind_an_image(self):
        for batch in (1, 3):
            net = Net()
            x = net.add("GlobalAveragePool", net.conv(net.input(batch, 3, 5, 5), 3, 8))
            y = net.add("Gemm", net.add("Flatten", x), net.weight(8, 4), net.weight(4))
            z = net.add("MatMul", net.add("Squeeze", x, net.constant(np.array([2, 3], np.int64))), net.weight(8, 4))
            w = net.add("MatMul", net.reshape(x, batch, 8), net.weight(8, 2))
            net.output(y, z, w)
            self.check(net, edges=1)

    # ---- all of it ----

    def test_random(self):
        first, count = (int(v) for v in os.environ.get("RUNNEL_TEST_SEEDS", "0,2" if SMALL else f"0,{60 // runnel.EACH}").split(","))
        for seed in range(first, first + count):
            with self.subTest(seed=seed):
                self.check(RandomNet(seed))


if __name__ == "__main__":
    unittest.main(verbosity=2)
