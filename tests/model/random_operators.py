# SPDX-License-Identifier: Apache-2.0
"""Operators of the random graphs that no plan fuses with its neighbours: indexing, sums, recurrent layers and others."""

import numpy as np


class MoreOperators:
    """Methods of test_random_graphs.Graph: each adds its nodes and returns a value's name, or None where nothing fits."""

    def more_kinds(self):
        return [self.function, self.einsum, self.cum_sum, self.trilu, self.gather_elements, self.gather_nd,
                self.scatter_elements, self.where, self.expand, self.tile, self.depth, self.instance_norm, self.lp_pool,
                self.global_pool, self.other_reduction, self.log_softmax, self.recurrent]

    def indices(self, limit, *shape):
        return self.constant(self.random.integers(-limit, limit, shape))

    def any_axis(self, value):
        return int(self.random.integers(self.rank(value)))

    def function(self):
        kind = self.pick("Celu", "Selu", "Softsign", "Sin", "Cos", "Atan", "Asinh", "Identity")
        return self.add(kind, self.value(2, 3, 4))

    def einsum(self):
        x = self.value(3)
        if x is None:
            return None
        equation = self.pick("bij,bkj->bik", "bij,bij->bi", "bij,bij->bj")
        size = self.shapes[x][2 if equation != "bij,bij->bj" else 1]
        return self.add("Einsum", self.add("Mul", x, self.scalar(1 / max(1, size))), x, equation=equation)

    def cum_sum(self):
        x = self.value(2, 3, 4)
        axis = self.any_axis(x)
        small = self.add("Mul", x, self.scalar(1 / max(1, self.shapes[x][axis])))
        return self.add("CumSum", small, self.constant(np.array(axis, np.int64)), exclusive=self.pick(0, 1),
                        reverse=self.pick(0, 1))

    def trilu(self):
        return self.add("Trilu", self.value(2, 3, 4), self.constant(np.array(self.pick(-2, -1, 0, 1), np.int64)),
                        upper=self.pick(0, 1))

    def gather_elements(self):
        x = self.value(2, 3, least=1)
        if x is None:
            return None
        axis = self.any_axis(x)
        shape = [size if i != axis else self.pick(1, 3, 5) for i, size in enumerate(self.shapes[x])]
        return self.add("GatherElements", x, self.indices(self.shapes[x][axis], *shape), axis=axis)

    def gather_nd(self):
        x = self.value(3, least=1)
        if x is None:
            return None
        first, second = (self.random.integers(0, size, (4, 1)) for size in self.shapes[x][:2])
        return self.add("GatherND", x, self.constant(np.concatenate([first, second], axis=1)))

    def scatter_elements(self):
        """Each element is written once, or added to: the order does not matter then."""
        x = self.value(2, 3, least=1)
        if x is None:
            return None
        axis = self.any_axis(x)
        shape = [size if i != axis else 1 for i, size in enumerate(self.shapes[x])]
        more = {"reduction": self.pick("none", "add")}
        return self.add("ScatterElements", x, self.indices(self.shapes[x][axis], *shape), self.normal(*shape),
                        axis=axis, **more)

    def where(self):
        x = self.value(2, 3, 4)
        mask = self.constant(self.random.random(self.shapes[x][-1:]) < 0.5)
        return self.add("Where", mask, x, self.partner(x))

    def expand(self):
        x = self.value(2, 3)
        if x is None:
            return None
        return self.add("Expand", x, self.constant(np.array([2, *self.shapes[x]], np.int64)))

    def tile(self):
        x = self.value(2, 3)
        if x is None:
            return None
        return self.add("Tile", x, self.constant(self.random.integers(1, 3, self.rank(x))))

    def depth(self):
        x = self.value(4, least=1)
        if x is None:
            return None
        if self.shapes[x][1] % 4 == 0:
            return self.add("DepthToSpace", x, blocksize=2, mode=self.pick("DCR", "CRD"))
        if self.shapes[x][2] % 2 == 0 and self.shapes[x][3] % 2 == 0:
            return self.add("SpaceToDepth", x, blocksize=2)
        return None

    def instance_norm(self):
        x = self.value(3, 4, least=2)
        if x is None:
            return None
        count = self.shapes[x][1]
        return self.add("InstanceNormalization", x, self.uniform(0.5, 1.5, count), self.normal(count), epsilon=1e-2)

    def lp_pool(self):
        x = self.value(4, least=2)
        return None if x is None else self.add("LpPool", x, kernel_shape=[2, 2], strides=[1, 2], p=2)

    def global_pool(self):
        x = self.value(3, 4, least=1)
        return None if x is None else self.add(self.pick("GlobalMaxPool", "GlobalAveragePool"), x)

    def other_reduction(self):
        x = self.value(2, 3, 4, least=1)
        if x is None:
            return None
        kind = self.pick("ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")
        axis = self.any_axis(x)
        small = self.add("Mul", x, self.scalar(1 / self.shapes[x][axis]))
        return self.add(kind, small, axes=[axis], keepdims=1)

    def log_softmax(self):
        x = self.value(2, 3, 4)
        return self.add("LogSoftmax", x, axis=self.any_axis(x))

    def recurrent(self):
        x = self.value(3, least=1)
        if x is None:
            return None
        kind, gates = self.pick(("RNN", 1), ("GRU", 3), ("LSTM", 4))
        hidden, size, ways = self.pick(3, 8), self.shapes[x][2], self.pick(1, 2)
        direction = "bidirectional" if ways == 2 else self.pick("forward", "reverse")
        weights = (self.normal(ways, gates * hidden, size, scale=size ** -0.5),
                   self.normal(ways, gates * hidden, hidden, scale=hidden ** -0.5),
                   self.normal(ways, 2 * gates * hidden, scale=0.5))
        return self.add(kind, x, *weights, hidden_size=hidden, direction=direction)
