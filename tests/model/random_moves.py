# SPDX-License-Identifier: Apache-2.0
"""Operators of the random graphs that move elements: views, indexing, padding, resizing."""

import numpy as np
from random_graph import ALL, F32, FLOATS, I64, NUMBERS, REALS, WHOLE, Grid, GraphBase, added, joined


class Moves(GraphBase):
    def move_kinds(self):
        return [self.concat, self.concat, self.split, self.slice, self.pad, self.reshape, self.transpose, self.transpose,
                self.tokens, self.flatten, self.unsqueeze, self.squeeze, self.reshape_computed, self.gather,
                self.gather_computed, self.gather_elements, self.gather_nd, self.scatter_elements, self.scatter_nd,
                self.one_hot, self.expand, self.tile, self.depth, self.trilu, self.reverse_sequence, self.resize,
                self.filled]

    def concat(self):
        x = self.value(1, 2, 3, 4, types=ALL)
        axis = self.axis_of(x)
        fitting = [v for v in reversed(self.order) if v.rank == x.rank and v.type == x.type and
                   all(a == b or i == axis for i, (a, b) in enumerate(zip(v.shape, x.shape)))]
        parts = [x, *[self.pick(*fitting) for _ in range(self.pick(1, 2))]]
        return self.add("Concat", *parts, axis=axis, grid=joined(*parts))

    def split(self):
        x = self.value(1, 2, 3, 4, types=ALL)
        axis = self.axis_of(x)
        self.need(x.shape[axis] >= 2)
        first = self.upto(1, x.shape[axis] - 1)
        return self.add("Split", x, self.whole([first, x.shape[axis] - first]), outputs=2, axis=axis, grid=x.grid)[0]

    def slice(self):
        x = self.value(1, 2, 3, 4, types=ALL)
        axis = self.axis_of(x)
        begin, end, step = self.pick((0, -1, 1), (1, 2**40, 1), (0, 2**40, 2), (-1, -(2**40), -1), (1, 1, 1))
        self.need(x.shape[axis] > 1 and ((begin, end) != (1, 1) or self.chance(20)))
        return self.add("Slice", x, *map(self.whole, ([begin], [end], [axis], [step])), grid=x.grid)

    def pad(self):
        x = self.value(2, 3, 4, types=REALS + WHOLE)
        mode = self.pick("constant", "constant", "edge", "reflect")
        least = {"constant": 0, "edge": 1, "reflect": 3}[mode]
        self.need(min(x.shape[-2:]) >= least)
        before, after = ([0] * (x.rank - 2) + [self.pick(0, 1), self.pick(0, 2)] for _ in "ba")
        return self.add("Pad", x, self.whole(before + after), mode=mode, grid=x.grid)

    def reshape(self):
        x = self.value(3, 4, types=ALL, where=lambda shape: min(shape) > 0)
        shape = self.pick([0, -1], [0, 0, -1], [-1], [0, 1, -1])
        return self.add("Reshape", x, self.whole(shape), grid=x.grid)

    def reshape_computed(self):
        """Flattens behind the first axis, whose size the graph reads."""
        x = self.value(2, 3, 4, types=ALL, where=lambda shape: min(shape) > 0)
        shape = self.add("Shape", x, grid=Grid(0, max(x.shape)))
        first = self.add("Slice", shape, self.whole([0]), self.whole([1]), grid=shape.grid)
        wanted = self.add("Concat", first, self.whole([-1]), axis=0, grid=shape.grid)
        rest = int(np.prod(x.shape[1:]))
        return self.add("Reshape", x, wanted, known=(x.type, (x.shape[0], rest)), grid=x.grid)

    def filled(self):
        x = self.value(1, 2, 3, types=(F32,))
        shape = self.add("Shape", x, grid=Grid(0, max(1, *x.shape)))
        zeros = self.add("ConstantOfShape", shape, known=(F32, x.shape), grid=Grid(0, 1))
        return self.add("Add", x, zeros, grid=added(x, zeros), about=x.size)

    def transpose(self):
        x = self.value(2, 3, 4, types=ALL)
        axes = list(range(x.rank))
        perm = [axes.pop(self.upto(0, len(axes) - 1)) for _ in range(x.rank)]
        return self.add("Transpose", x, perm=perm, grid=x.grid)

    def tokens(self):
        x = self.value(4, types=ALL)
        n, c, h, w = x.shape
        flat = self.add("Reshape", x, self.whole([n, c, h * w]), allowzero=1, grid=x.grid)
        return self.add("Transpose", flat, perm=[0, 2, 1], grid=x.grid)

    def flatten(self):
        x = self.value(2, 3, 4, types=ALL)
        return self.add("Flatten", x, axis=self.upto(0, x.rank), grid=x.grid)

    def unsqueeze(self):
        x = self.value(0, 1, 2, 3, types=ALL)
        return self.add("Unsqueeze", x, self.whole([self.pick(0, -1)]), grid=x.grid)

    def squeeze(self):
        x = self.value(types=ALL, where=lambda shape: 1 in shape)
        return self.add("Squeeze", x, self.whole([x.shape.index(1)]), grid=x.grid)

    # ---- indexing

    def indices(self, limit, *shape, low=None):
        self.need(limit > 0)
        return self.constant(self.random().integers(-limit if low is None else low, limit, shape))

    def gather(self):
        x = self.value(1, 2, 3, 4, types=ALL)
        axis = self.axis_of(x)
        return self.add("Gather", x, self.indices(x.shape[axis], *self.pick((), (3,), (2, 2))), axis=axis, grid=x.grid)

    def gather_computed(self):
        """By numbers that the graph computes."""
        x = self.value(1, 2, 3, types=ALL)
        axis = self.axis_of(x)
        fitting = [v for v in reversed(self.order) if v.type == I64 and v.rank <= 2]
        self.need(x.shape[axis] > 0 and fitting)
        index = self.add("Mod", self.pick(*fitting), self.constant(np.array(x.shape[axis], np.int64)),
                         grid=Grid(0, x.shape[axis]))
        return self.add("Gather", x, index, axis=axis, grid=x.grid)

    def gather_elements(self):
        x = self.value(2, 3, types=ALL, where=lambda shape: min(shape) > 0)
        axis = self.axis_of(x)
        shape = [size if i != axis else self.pick(1, 3, 5) for i, size in enumerate(x.shape)]
        return self.add("GatherElements", x, self.indices(x.shape[axis], *shape), axis=axis, grid=x.grid)

    def gather_nd(self):
        x = self.value(3, types=ALL, where=lambda shape: min(shape) > 0)
        random = self.random()
        pairs = np.concatenate([random.integers(0, size, (4, 1)) for size in x.shape[:2]], axis=1)
        return self.add("GatherND", x, self.constant(pairs), grid=x.grid)

    def scatter_elements(self):
        """Each element is written once, or added to: the order does not matter then."""
        x = self.value(2, 3, types=NUMBERS, where=lambda shape: min(shape) > 0)
        axis = self.axis_of(x)
        shape = [size if i != axis else 1 for i, size in enumerate(x.shape)]
        updates = self.factors(x, *shape)
        reduction = self.pick("none", "add", "max")
        return self.add("ScatterElements", x, self.indices(x.shape[axis], *shape), updates, axis=axis,
                        reduction=reduction, grid=(added if reduction == "add" else joined)(x, updates), about=x.size + 2)

    def scatter_nd(self):
        x = self.value(2, 3, types=NUMBERS, where=lambda shape: min(shape) > 0)
        rows = self.random().permutation(x.shape[0])[:2, None]
        updates = self.factors(x, len(rows), *x.shape[1:])
        return self.add("ScatterND", x, self.constant(rows), updates, grid=joined(x, updates), about=max(x.size, 2))

    def one_hot(self):
        x = self.value(1, 2, 3, types=WHOLE)
        return self.add("OneHot", x, self.constant(np.array(5, np.int64)), self.constant(np.array([0, 1], np.float32)),
                        axis=self.pick(-1, 0), grid=Grid(0, 1))

    # ---- more or fewer elements

    def expand(self):
        x = self.value(0, 1, 2, 3, types=ALL)
        return self.add("Expand", x, self.whole([2, *x.shape]), grid=x.grid)

    def tile(self):
        x = self.value(1, 2, 3, types=NUMBERS)
        return self.add("Tile", x, self.constant(self.random().integers(1, 3, x.rank)), grid=x.grid)

    def depth(self):
        x = self.value(4, types=REALS, where=lambda shape: min(shape) > 0)
        if x.shape[1] % 4 == 0:
            return self.add("DepthToSpace", x, blocksize=2, mode=self.pick("DCR", "CRD"), grid=x.grid)
        self.need(x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
        return self.add("SpaceToDepth", x, blocksize=2, grid=x.grid)

    def trilu(self):
        x = self.value(2, 3, 4, types=NUMBERS)
        return self.add("Trilu", x, self.constant(np.array(self.pick(-2, -1, 0, 1), np.int64)), upper=self.pick(0, 1),
                        grid=x.grid)

    def reverse_sequence(self):
        x = self.value(2, 3, 4, types=NUMBERS, where=lambda shape: min(shape) > 0)
        lengths = self.constant(self.random().integers(0, x.shape[0], x.shape[1], endpoint=True))
        return self.add("ReverseSequence", x, lengths, time_axis=0, batch_axis=1, grid=x.grid)

    def resize(self):
        x = self.value(4, types=FLOATS, where=lambda shape: min(shape) > 0)
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        if self.pick("nearest", "linear") == "nearest":
            return self.add("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                            nearest_mode="floor", grid=x.grid)
        return self.add("Resize", x, "", scales, mode="linear",
                        coordinate_transformation_mode=self.pick("half_pixel", "align_corners", "asymmetric"))
