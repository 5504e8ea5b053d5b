# SPDX-License-Identifier: Apache-2.0
"""Operators of the random graphs that work on elements, reduce and normalise."""

import numpy as np
from onnx import helper
from random_graph import (ALL, BF16, BOOL, BYTES, F16, F32, F64, FLOATS, I8, I32, I64, NUMBERS, REALS, U8, WHOLE, Grid,
                          GraphBase, added, joined, product)


class Elementwise(GraphBase):
    def elementwise_kinds(self):
        return [self.unary, self.unary, self.activation, self.activation, self.activation, self.positive, self.clip,
                self.hard_swish, self.swish, self.gelu, self.affine, self.channels, self.channels, self.binary,
                self.binary, self.binary, self.multiply, self.variadic, self.gate, self.where, self.compare,
                self.logic, self.cast, self.cast, self.rounding, self.mask, self.bits]

    def unary(self):
        x = self.value(types=NUMBERS)
        kind = self.pick("Relu", "Abs", "Neg", "Identity", *(["LeakyRelu"] if x.type in REALS else []))
        if kind != "LeakyRelu":
            return self.add(kind, x, grid=x.grid)
        return self.add(kind, x, alpha=0.25, grid=x.grid and Grid(x.grid.bits + 2, x.grid.bound * 4))

    def activation(self):
        x = self.near()
        kind = self.pick("Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Softplus", "Erf", "Sigmoid", "Tanh",
                         "Celu", "Selu", "Softsign", "Sin", "Cos", "Atan", "Asinh", "Mish", "Gelu")
        return self.add(kind, x)

    def positive(self):
        """Functions of what is above 0."""
        x = self.near()
        y = self.add("Add", self.add("Abs", x, grid=x.grid), self.scalar(x, 0.5), about=x.size + 1)
        kind = self.pick("Sqrt", "Log", "Reciprocal", "Pow")
        if kind == "Pow":
            return self.add(kind, y, self.scalar(x, self.pick(2, 0.5, -1)), about=max(4.0, y.size**2))
        return self.add(kind, y, about=max(2.0, y.size))

    def clip(self):
        x = self.value(types=NUMBERS)
        low, high = self.pick(("", 6), (0, 6), (-1, ""), (0, 1))
        bounds = [b if b == "" else self.constant(np.array(b, x.type)) for b in (low, high)]
        return self.add("Clip", x, *bounds, grid=x.grid and x.grid.join(Grid(0, 6)))

    def hard_swish(self):
        x = self.near()
        gate = self.add("Clip", self.add("Add", x, self.scalar(x, 3), about=x.size + 3), self.constant(np.array(0, x.type)),
                        self.constant(np.array(6, x.type)), about=6.0)
        return self.add("Div", self.add("Mul", x, gate), self.scalar(x, 6), about=x.size)

    def swish(self):
        x = self.near()
        return self.add("Mul", x, self.add("Sigmoid", x), about=x.size)

    def gelu(self):
        x = self.near()
        half = self.add("Add", self.add("Erf", self.add("Div", x, self.scalar(x, np.sqrt(2)))), self.scalar(x, 1), about=2.0)
        return self.add("Mul", self.add("Mul", x, half, about=x.size), self.scalar(x, 0.5))

    def affine(self):
        x = self.near()
        y = self.add("Mul", x, self.scalar(x, self.random().uniform(0.5, 1.5)), about=1.5 * x.size)
        return self.add("Add", y, self.scalar(x, self.random().uniform(-1, 1)), about=y.size + 1)

    def channels(self):
        """By or with a constant over the channels."""
        x = self.value(3, 4, types=REALS)
        factors = self.factors(x, x.shape[1], *(1,) * (x.rank - 2))
        kind = self.pick("Mul", "Add", "Sub", "Div", "PRelu", "from")
        if kind in ("Mul", "PRelu"):
            return self.add(kind, x, factors, grid=joined(x, factors) and x.grid.times(factors.grid).join(x.grid),
                            about=2 * x.size)
        if kind == "Div":
            return self.add(kind, x, factors, about=2 * x.size)
        pair = (factors, x) if kind == "from" else (x, factors)
        return self.add("Add" if kind == "Add" else "Sub", *pair, grid=added(*pair), about=x.size + 2)

    def binary(self):
        x = self.value(types=NUMBERS)
        y = self.partner(x)
        kind = self.pick("Add", "Sub", "Max", "Min")
        x, y = self.pick((x, y), (y, x))
        if kind in ("Max", "Min"):
            return self.add(kind, x, y, grid=joined(x, y), about=max(x.size, y.size))
        return self.add(kind, x, y, grid=added(x, y), about=x.size + y.size)

    def multiply(self):
        x = self.value(types=NUMBERS)
        y = self.partner(x)
        return self.add("Mul", *self.pick((x, y), (y, x)), grid=joined(x, y) and x.grid.times(y.grid), about=x.size * y.size)

    def variadic(self):
        x = self.value(types=REALS)
        all_of = [x, self.partner(x), self.partner(x)]
        kind = self.pick("Sum", "Max", "Min", "Mean")
        if kind == "Mean":
            return self.add(kind, *all_of, about=max(v.size for v in all_of))
        return self.add(kind, *all_of, grid=(added if kind == "Sum" else joined)(*all_of), about=sum(v.size for v in all_of))

    def gate(self):
        """Each channel by a number that is made from it."""
        x = self.near(4, where=lambda shape: min(shape[2:]) > 0)
        return self.add("Mul", x, self.add("Sigmoid", self.add("GlobalAveragePool", x)), about=x.size)

    # ---- truth values, whole numbers

    def condition(self, x):
        """A truth value for each element of x, or one that broadcasts to it."""
        known = [v for v in reversed(self.order) if v.type == BOOL and v.rank <= x.rank and
                 all(a in (1, b) for a, b in zip(v.shape[::-1], x.shape[::-1]))]
        return self.pick(*known) if known else self.small(BOOL, *x.shape[-1:])

    def where(self):
        x = self.value(types=ALL)
        y = self.partner(x)
        return self.add("Where", self.condition(x), *self.pick((x, y), (y, x)), grid=joined(x, y), about=max(x.size, y.size))

    def mask(self):
        x = self.value(types=NUMBERS, exact=True)
        condition = self.add(self.pick("Greater", "Less"), x, self.scalar(x, 0), grid=Grid(0, 1))
        y = self.partner(x)
        return self.add("Where", condition, x, y, grid=joined(x, y), about=max(x.size, y.size))

    def compare(self):
        x = self.value(types=NUMBERS + BYTES, exact=True)
        y = self.partner(x)
        self.need(y.grid)
        kind = self.pick("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
        return self.add(kind, *self.pick((x, y), (y, x)), grid=Grid(0, 1))

    def logic(self):
        x = self.value(types=(BOOL,))
        kind = self.pick("Not", "And", "Or", "Xor")
        return self.add(kind, x, *([] if kind == "Not" else [self.partner(x)]), grid=Grid(0, 1))

    def cast(self):
        x = self.value(types=ALL)
        wanted = self.pick(*[t for t in (F32, I32, F16, I64, U8, I8, BF16, F64, BOOL) if t in self.types])
        if x.grid is None:
            self.need(wanted in FLOATS)
            return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(wanted))
        if wanted == BOOL:
            return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(wanted), grid=Grid(0, 1))
        if wanted == U8:
            x = self.add("Abs", x, grid=x.grid) if x.type not in (BOOL, U8) else x
        return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(wanted), grid=x.grid if wanted in REALS else Grid(0, x.grid.bound >> x.grid.bits))

    def rounding(self):
        x = self.value(types=REALS, exact=True)
        return self.add(self.pick("Floor", "Ceil", "Round", "Sign"), x, grid=x.grid.whole())

    def bits(self):
        x = self.value(types=WHOLE)
        kind = self.pick("Mod", "BitwiseAnd")
        return self.add(kind, x, self.constant(np.array(self.pick(3, 5, 7), x.type)), grid=Grid(0, 7))



class Reductions(GraphBase):
    def reduction_kinds(self):
        return [self.reduce, self.reduce, self.reduce_exact, self.other_reduction, self.arg, self.top_k, self.cum_sum,
                self.softmax, self.softmax, self.log_softmax, self.batch_norm, self.batch_norm, self.layer_norm,
                self.instance_norm, self.group_norm, self.written_norm, self.lrn]

    def axes(self, x):
        """One axis or several next to each other, as often from the end."""
        first = self.axis_of(x)
        last = self.upto(first, x.rank - 1)
        self.need(min(x.shape[first:last + 1]) > 0)
        turn = x.rank if self.chance(30) else 0
        return [axis - turn for axis in range(first, last + 1)], int(np.prod(x.shape[first:last + 1]))

    def reduce(self):
        x = self.near()
        axes, _ = self.axes(x)
        return self.add("ReduceMean", x, self.whole(axes), keepdims=self.pick(1, 0))

    def reduce_exact(self):
        x = self.value(types=NUMBERS)
        axes, count = self.axes(x)
        kind = self.pick("ReduceMax", "ReduceMin", "ReduceSum", "ReduceSumSquare")
        self.need(kind != "ReduceMax" or x.type != BF16)
        grids = {"ReduceSum": x.grid and x.grid.many(count), "ReduceSumSquare": product(x, x, count)}
        size = {"ReduceSum": x.size * count**0.5, "ReduceSumSquare": x.size * count}.get(kind, x.size)
        return self.add(kind, x, self.whole(axes), keepdims=self.pick(1, 0), grid=grids.get(kind, x.grid), about=size)

    def other_reduction(self):
        x = self.near()
        axes, count = self.axes(x)
        kind = self.pick("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")
        small = self.add("Mul", x, self.scalar(x, 1 / count), about=x.size / count)
        return self.add(kind, small, self.whole(axes), keepdims=self.pick(1, 0), about=x.size + 8)

    def arg(self):
        x = self.value(types=NUMBERS, exact=True)
        axis = self.axis_of(x)
        self.need(x.shape[axis] > 0)
        return self.add(self.pick("ArgMax", "ArgMin"), x, axis=axis, keepdims=self.pick(1, 0),
                        select_last_index=self.pick(0, 1), grid=Grid(0, x.shape[axis] - 1))

    def top_k(self):
        x = self.value(types=FLOATS + WHOLE, exact=True)
        axis = self.axis_of(x)
        self.need(x.shape[axis] > 0)
        return self.add("TopK", x, self.whole([self.upto(1, min(4, x.shape[axis]))]), axis=axis, outputs=2,
                        largest=self.pick(1, 0), grid=[x.grid, Grid(0, x.shape[axis] - 1)])[0]

    def cum_sum(self):
        x = self.value(types=FLOATS + WHOLE)
        axis = self.axis_of(x)
        count = max(1, x.shape[axis])
        if not self.stays_exact(x):
            self.need(x.type in FLOATS)
            x = self.add("Mul", x, self.scalar(x, 1 / count), about=x.size / count)
        return self.add("CumSum", x, self.constant(np.array(axis, np.int64)), exclusive=self.pick(0, 1),
                        reverse=self.pick(0, 1), grid=x.grid and x.grid.many(count), about=x.size * count)

    # ---- softmax, normalisation

    def softmax(self):
        x = self.near(1, 2, 3, 4)
        return self.add("Softmax", x, axis=-1 if self.chance(70) else self.axis_of(x), about=1.0)

    def log_softmax(self):
        x = self.near(2, 3, 4)
        return self.add("LogSoftmax", x, axis=self.axis_of(x), about=2 * x.size + 8)

    def batch_norm(self):
        x = self.near(2, 3, 4)
        count = x.shape[1]
        vectors = (self.uniform(0.5, 1.5, count, type=x.type), self.normal(count, type=x.type),
                   self.normal(count, scale=0.5, type=x.type), self.uniform(0.5, 2, count, type=x.type))
        return self.add("BatchNormalization", x, *vectors, about=2 * x.size + 4)

    def scale_and_bias(self, x, *shape):
        return self.uniform(0.5, 1.5, *shape, type=x.type), self.normal(*shape, type=x.type)

    def layer_norm(self):
        x = self.near(2, 3, 4, where=lambda shape: shape[-1] >= 4)
        axis = self.pick(-1, x.rank - 1, -2)
        self.need(min(x.shape[axis:]) > 0)
        return self.add("LayerNormalization", x, *self.scale_and_bias(x, *x.shape[axis:]), axis=axis, epsilon=1e-2,
                        about=8.0)

    def instance_norm(self):
        x = self.near(3, 4, where=lambda shape: min(shape[2:]) > 1)
        return self.add("InstanceNormalization", x, *self.scale_and_bias(x, x.shape[1]), epsilon=1e-2, about=8.0)

    def group_norm(self):
        x = self.near(3, 4, where=lambda shape: min(shape[2:]) > 1 and shape[1] % 2 == 0 and shape[1])
        return self.add("GroupNormalization", x, *self.scale_and_bias(x, x.shape[1]), epsilon=1e-2, about=8.0,
                        num_groups=self.pick(2, x.shape[1]), known=(x.type, x.shape))

    def written_norm(self):
        """A normalisation over the last axis from its parts."""
        x = self.near(2, 3, where=lambda shape: shape[-1] >= 4)
        axes = self.whole([-1])
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes), about=x.size)
        square = self.pick(lambda: self.add("Mul", centred, centred, about=8.0),
                           lambda: self.add("Pow", centred, self.scalar(x, 2), about=8.0))()
        deviation = self.add("Sqrt", self.add("Add", self.add("ReduceMean", square, axes), self.scalar(x, 0.01)))
        scale, bias = self.scale_and_bias(x, x.shape[-1])
        y = self.add("Mul", self.add("Div", centred, deviation, about=4.0), scale, about=6.0)
        return self.add("Add", y, bias, about=8.0) if self.chance(70) else y

    def lrn(self):
        return self.add("LRN", self.near(4), size=3, alpha=0.01, bias=1.0)
