# SPDX-License-Identifier: Apache-2.0
"""What random graphs are built from: values with their types, shapes and bounds, drawn by hypothesis.

A value may be known to be exact: a whole number of at most `bound` times 2^-bits. As long as its type holds such numbers,
sums and products of them are the same in any order and with any rounding, so results must be equal to the last bit,
may be compared, rounded and quantised, and may be of 16-bit types. Values that are not exact are float32 or float64,
near 1 (`size` says how near), and no function with a jump reads them: a rounding error stays one.
"""

import dataclasses

import ml_dtypes
import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 21, 10
MAX_OPERATORS, MAX_ELEMENTS, MAX_SIZE = 12, 20000, 64

F32, F64, F16, BF16 = (np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
I8, U8, I32, I64, BOOL = (np.dtype(t) for t in (np.int8, np.uint8, np.int32, np.int64, np.bool_))
FLOATS, HALVES, WHOLE, BYTES = (F32, F64), (F16, BF16), (I32, I64), (I8, U8)
REALS = FLOATS + HALVES
NUMBERS = REALS + WHOLE
ALL = NUMBERS + BYTES + (BOOL,)
# The largest whole number up to which a type holds all.
BOUNDS = {F32: 2**24, F64: 2**53, F16: 2**11, BF16: 2**8, I8: 128, U8: 255, I32: 2**31 - 1, I64: 2**62, BOOL: 1}
MAX_BITS = 12  # far from the smallest numbers of float16


class DoesNotFit(Exception):
    """The operator has no place in the graph: no such value, too large, or not exact where it must be."""


@dataclasses.dataclass(frozen=True)
class Grid:
    bits: int
    bound: int

    def size(self):
        return self.bound * 2.0**-self.bits

    def to(self, bits):
        return self.bound << (bits - self.bits)

    def plus(self, other):
        bits = max(self.bits, other.bits)
        return Grid(bits, self.to(bits) + other.to(bits))

    def join(self, other):
        bits = max(self.bits, other.bits)
        return Grid(bits, max(self.to(bits), other.to(bits)))

    def times(self, other, count=1):
        return Grid(self.bits + other.bits, self.bound * other.bound * count)

    def many(self, count):
        return Grid(self.bits, self.bound * count)

    def whole(self):
        """What rounding gives."""
        return Grid(0, (self.bound >> self.bits) + 1)


def all_exact(values, combine):
    """The grids combined, or None when one of the values is not exact."""
    grids = [v.grid for v in values]
    if None in grids:
        return None
    result = grids[0]
    for grid in grids[1:]:
        result = combine(result, grid)
    return result


def joined(*values):
    return all_exact(values, Grid.join)


def added(*values):
    return all_exact(values, Grid.plus)


def product(x, y, count=1):
    """Of sums of so many products. Matrix units and halves are given small factors only."""
    if x.grid is None or y.grid is None or max(x.grid.bound, y.grid.bound) > 2**8:
        return None
    return x.grid.times(y.grid, max(1, count))


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    type: np.dtype
    shape: tuple
    grid: Grid | None
    size: float

    @property
    def rank(self):
        return len(self.shape)

    def info(self):
        return helper.make_tensor_value_info(self.name, helper.np_dtype_to_tensor_dtype(self.type), self.shape)


class GraphBase:
    """A graph under construction. What adds an operator returns its output, or raises DoesNotFit."""

    def __init__(self, draw, types):
        self.draw, self.types = draw, types
        self.seed = draw(st.integers(0, 2**20))
        self.nodes, self.constants, self.inputs, self.order = [], {}, [], []
        self.outputs, self.grew, self.dynamic = [], True, False

    # ---- choices

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def upto(self, low, high):
        return self.draw(st.integers(low, high))

    def chance(self, percent):
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def axis_of(self, x):
        if x.rank == 0:
            raise DoesNotFit
        return self.upto(0, x.rank - 1)

    def need(self, condition):
        if not condition:
            raise DoesNotFit

    # ---- constants

    def random(self):
        """Numbers of their own for each constant, so that leaving out one leaves the others as they are."""
        return np.random.default_rng([self.seed, len(self.constants)])

    def constant(self, array, grid=None):
        array = np.asarray(array)
        size = float(np.max(np.abs(array.astype(np.float64)), initial=0)) if array.dtype != BOOL else 1.0
        value = Value(f"c{len(self.constants)}", array.dtype, array.shape, grid, size)
        self.constants[value.name] = numpy_helper.from_array(array, value.name)
        return value

    def whole(self, numbers):
        """Axes, sizes and the like."""
        return self.constant(np.array(numbers, np.int64))

    def normal(self, *shape, scale=1.0, type=F32):
        return self.constant((self.random().standard_normal(shape) * scale).astype(type))

    def uniform(self, low, high, *shape, type=F32):
        return self.constant(self.random().uniform(low, high, shape).astype(type))

    def small(self, type, *shape, bits=0, low=-2, high=2):
        """Exact numbers: whole ones from low to high, times 2^-bits."""
        bits = bits if type in REALS else 0
        low = max(low, 0) if type in (U8, BOOL) else low
        high = min(high, 1) if type == BOOL else high
        numbers = self.random().integers(low, high, shape, endpoint=True)
        return self.constant((numbers * 2.0**-bits).astype(type), Grid(bits, max(abs(low), abs(high))))

    def stays_exact(self, x):
        """Whether what meets x is to be exact, too: it has to for all but float32 and float64."""
        return x.grid is not None and (x.type not in FLOATS or self.chance(50))

    def weights(self, x, *shape, scale=1.0):
        if self.stays_exact(x):
            return self.small(x.type, *shape, bits=self.pick(0, 1))
        return self.normal(*shape, scale=scale, type=x.type)

    def factors(self, x, *shape):
        """Away from 0."""
        if self.stays_exact(x):
            return self.small(x.type, *shape, bits=1, low=1, high=4)
        return self.uniform(0.5, 2, *shape, type=x.type)

    def scalar(self, x, number):
        return self.constant(np.array(number, x.type).reshape(self.pick((), (1,)) if x.rank else ()))

    # ---- values

    def input(self, type, shape, exact):
        name = f"x{len(self.inputs)}"
        grid = {True: Grid(0, 1 if type == BOOL else 8 if type not in REALS else 4), False: None}[exact]
        value = Value(name, type, tuple(shape), grid, grid.size() if exact else 4.0)
        self.inputs.append(value)
        self.order.append(value)
        return value

    def value(self, *ranks, types=FLOATS, exact=False, where=None):
        """One of the values of these ranks and types, most often the newest."""
        fitting = [v for v in reversed(self.order) if (not ranks or v.rank in ranks) and v.type in types and
                   (v.grid or not exact) and (where is None or where(v.shape))]
        self.need(fitting)
        return self.pick(*[fitting[0]] * (2 * len(fitting)), *fitting)

    def near(self, *ranks, where=None):
        """One for functions that are not exact: not too large."""
        x = self.value(*ranks, where=where)
        self.need(x.size <= MAX_SIZE)
        return x

    def partner(self, x):
        """Another value of the shape, or a constant that broadcasts to it."""
        same = [v for v in reversed(self.order) if v.shape == x.shape and v.type == x.type and v is not x]
        if same and self.chance(70):
            return self.pick(*same)
        shape = [1 if self.chance(50) else size for size in x.shape]
        return self.factors(x, *shape[self.upto(0, max(0, x.rank - 1)):])

    def add(self, op_type, *inputs, outputs=1, grid=None, about=None, known=None, **attributes):
        """grid: of the outputs, None when they are not exact (a list: one each). about: how
        large they get, as the inputs where it is left out. known: type and shape of the output."""
        self.need(len(self.nodes) < MAX_OPERATORS)
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        given = [i for i in inputs if i != ""]
        node = helper.make_node(op_type, [i if i == "" else i.name for i in inputs], names,
                                name=f"n{len(self.nodes)}", **attributes)
        grids = grid if isinstance(grid, list) else [grid] * outputs
        sizes = max((v.size for v in given if v.name not in self.constants), default=1.0) if about is None else about
        made = [self.checked(name, *type_and_shape, g, sizes) for name, type_and_shape, g in
                zip(names, [known] if known else self.infer(node, given), grids)]
        self.nodes.append(node)
        self.order += made
        return made[0] if outputs == 1 else made

    def checked(self, name, type, shape, grid, size):
        if grid is not None and (grid.bound > BOUNDS[type] or (grid.bits > MAX_BITS if type in REALS else grid.bits) or
                                 (type == F16 and grid.size() > 2**14)):
            grid = None
        self.need(int(np.prod(shape, dtype=np.int64)) <= MAX_ELEMENTS and len(shape) <= 6)
        self.need(grid is not None or (type in FLOATS and size <= MAX_SIZE))
        return Value(name, type, shape, grid, grid.size() if grid else size)

    def infer(self, node, inputs):
        constants = [self.constants[v.name] for v in inputs if v.name in self.constants]
        known = [v.info() for v in {v.name: v for v in inputs}.values() if v.name not in self.constants]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
        model = helper.make_model(helper.make_graph([node], "one", known, outputs, constants),
                                  opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        types = [output.type.tensor_type for output in inferred.graph.output]
        return [(np.dtype(helper.tensor_dtype_to_np_dtype(t.elem_type)), tuple(d.dim_value for d in t.shape.dim))
                for t in types]

    # ---- the whole

    def try_one(self, kind):
        """Adds an operator, or leaves everything as it was."""
        before = len(self.nodes), len(self.order), dict(self.constants)
        try:
            kind()
        except DoesNotFit:
            del self.nodes[before[0]:], self.order[before[1]:]
            self.constants = before[2]

    def choose_outputs(self):
        """What nothing reads, and now and then a value from within."""
        read = {i for n in self.nodes for i in n.input}
        made = [v for v in self.order if v not in self.inputs]
        inner = self.pick(*made) if self.chance(30) else None
        self.outputs = [v for v in made if v.name not in read or v is inner]

    def model(self):
        inputs = [v.info() for v in self.inputs]
        if self.dynamic:
            inputs = [helper.make_tensor_value_info(v.name, i.type.tensor_type.elem_type,
                                                    [f"{v.name}_{axis}" for axis in range(v.rank)])
                      for v, i in zip(self.inputs, inputs)]
        outputs = [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.type),
                                                 None if self.dynamic else v.shape) for v in self.outputs]
        used = {i for n in self.nodes for i in n.input}
        graph = helper.make_graph(self.nodes, "random", inputs, outputs,
                                  [c for name, c in self.constants.items() if name in used])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        # onnxruntime (1.31) keeps the axes of empty tensors that it reduces.
        helper.set_model_props(model, {"exact": " ".join(v.name for v in self.outputs if v.grid),
                                       "empty": " ".join(v.name for v in self.order if 0 in v.shape)})
        return model

    def feed(self):
        made = {}
        for index, v in enumerate(self.inputs):
            random = np.random.default_rng([self.seed, 1000 + index])
            low = 0 if v.type in (U8, BOOL) else -4
            array = random.standard_normal(v.shape) if v.grid is None else random.integers(
                low, v.grid.bound, v.shape, endpoint=True)
            made[v.name] = np.asarray(array).astype(v.type)
        return made

    def __repr__(self):
        known = {v.name: v for v in self.order}
        known |= {name: Value(name, np.dtype(helper.tensor_dtype_to_np_dtype(c.data_type)), tuple(c.dims), None, 0)
                  for name, c in self.constants.items()}

        def one(name):
            if not name:
                return "-"
            shape = ",".join(map(str, known[name].shape))
            small = name in self.constants and int(np.prod(known[name].shape)) <= 8
            text = f"={numpy_helper.to_array(self.constants[name]).tolist()}" if small else ""
            return f"{name}:{known[name].type.name}[{shape}]{text}"

        lines = [f"graph of {len(self.nodes)} operators, seed {self.seed}{', dynamic' if self.dynamic else ''}:"]
        for node in self.nodes:
            attributes = [f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute]
            lines.append(f"  {', '.join(map(one, node.output))} = {node.op_type}"
                         f"({', '.join([*map(one, node.input), *attributes])})")
        return "\n".join([*lines, f"  outputs: {' '.join(v.name for v in self.outputs)}"])
