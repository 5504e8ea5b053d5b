# SPDX-License-Identifier: Apache-2.0
"""Layers of the random graphs: convolutions, pools, products, attention and recurrent ones."""

import numpy as np
from random_graph import F32, FLOATS, REALS, WHOLE, Grid, GraphBase, product


class Layers(GraphBase):
    def layer_kinds(self):
        return [self.conv] * 6 + [self.mat_mul, self.mat_mul, self.gemm, self.gemm, self.conv_transpose, self.product,
                                  self.attention, self.einsum, self.max_pool, self.average_pool, self.lp_pool,
                                  self.global_pool, self.recurrent]

    def conv(self):
        x = self.value(3, 4, types=REALS, where=lambda shape: min(shape[1:]) > 0)
        c, spatial = x.shape[1], x.rank - 2
        groups = self.pick(1, 1, 1, c, *([2] if c % 2 == 0 else []))
        kernel = self.pick((1, 1), (1, 1), (3, 3), (3, 1), (2, 2))[:spatial]
        pads, strides, dilation = self.pick(0, 1, 2), self.pick(1, 1, 1, 2), self.pick(1, 1, 1, 2)
        self.need(all(s + 2 * pads >= dilation * (w - 1) + 1 for s, w in zip(x.shape[2:], kernel)))
        filters = groups * self.pick(1, 2, 3) if groups > 1 else self.pick(1, 3, 8, 13, 16, 20, 33)
        count = c // groups * int(np.prod(kernel))
        weight = self.weights(x, filters, c // groups, *kernel, scale=count**-0.5)
        grid = product(x, weight, count) if kernel != (3, 3) else None  # which may be multiplied in another way
        bias = []
        if self.chance(60):
            bias = [self.small(x.type, filters) if grid else self.normal(filters, type=x.type)]
            grid = grid and grid.plus(bias[0].grid)
        return self.add("Conv", x, weight, *bias, group=groups, pads=[pads] * (2 * spatial), strides=[strides] * spatial,
                        dilations=[dilation] * spatial, grid=grid, about=1.25 * x.size if x.grid is None else 2 * x.size)

    def conv_transpose(self):
        x = self.near(4, where=lambda shape: min(shape[1:]) > 0)
        c = x.shape[1]
        groups = self.pick(1, 1, *([2] if c % 2 == 0 else []))
        k, stride = self.pick((2, 2), (3, 1), (3, 2))
        weight = self.normal(c, self.pick(1, 4, 9), k, k, scale=(c // groups * k)**-0.5, type=x.type)
        return self.add("ConvTranspose", x, weight, group=groups, strides=[stride] * 2, about=1.25 * x.size)

    def mat_mul(self):
        x = self.value(1, 2, 3, 4, types=REALS + WHOLE, where=lambda shape: shape[-1] > 0)
        k, n = x.shape[-1], self.pick(1, 5, 16, 30)
        weight = self.weights(x, k, n, scale=k**-0.5)
        return self.add("MatMul", x, weight, grid=product(x, weight, k), about=1.25 * x.size)

    def product(self):
        """Two computed factors."""
        x = self.near(2, 3)
        turned = self.add("Transpose", x, perm=[0, 2, 1] if x.rank == 3 else [1, 0], grid=x.grid)
        y = self.add("MatMul", x, turned, about=x.size**2)
        return self.add("Mul", y, self.scalar(x, 1 / max(1, x.shape[-1])), about=x.size)

    def attention(self):
        x = self.near(3, where=lambda shape: min(shape) > 0)
        width = x.shape[-1]
        keys, queries = (self.add("MatMul", x, self.normal(width, width, scale=width**-0.5, type=x.type)) for _ in "kq")
        scores = self.add("MatMul", queries, self.add("Transpose", keys, perm=[0, 2, 1]))
        scaled = self.add("Mul", scores, self.scalar(x, width**-0.5))
        return self.add("MatMul", self.add("Softmax", scaled, axis=-1, about=1.0), x, about=x.size)

    def gemm(self):
        x = self.value(2, types=REALS, where=lambda shape: shape[1] > 0)
        m, k = x.shape
        n, turned = self.pick(1, 7, 16, 25), self.pick(0, 1)
        weight = self.weights(x, *((n, k) if turned else (k, n)), scale=k**-0.5)
        grid = product(x, weight, k)
        shape = self.pick(None, (n,), (1, n), (1,), (m, n))
        c = [] if shape is None else [self.small(x.type, *shape) if grid else self.normal(*shape, type=x.type)]
        alpha, beta = self.pick((1.0, 1.0), (0.5, 2.0))
        if grid and alpha == 0.5:
            grid = Grid(grid.bits + 1, grid.bound)
        if grid and c:
            grid = grid.plus(c[0].grid.many(int(beta)))
        return self.add("Gemm", x, weight, *c, transB=turned, alpha=alpha, beta=beta, grid=grid, about=1.25 * x.size + 4)

    def einsum(self):
        x = self.near(3)
        equation = self.pick("bij,bkj->bik", "bij,bij->bi", "bij,bij->bj")
        size = max(1, x.shape[2 if equation != "bij,bij->bj" else 1])
        small = self.add("Mul", x, self.scalar(x, 1 / size), about=x.size / size)
        return self.add("Einsum", small, x, equation=equation, about=x.size**2)

    # ---- windows

    def max_pool(self):
        x = self.value(4, types=REALS, where=lambda shape: min(shape[1:]) > 1)
        # Before opset 22 onnx's shape inference counts windows that begin in the padding, which nobody else does.
        padding = self.pick(0, 1)
        return self.add("MaxPool", x, kernel_shape=[2, 2], strides=[self.pick(1, 2)] * 2, pads=[padding] * 4,
                        ceil_mode=0 if padding else self.pick(0, 1), grid=x.grid)

    def average_pool(self):
        x = self.near(4, where=lambda shape: min(shape[1:]) > 1)
        return self.add("AveragePool", x, kernel_shape=[2, 2], strides=[self.pick(1, 2)] * 2, pads=[self.pick(0, 1)] * 4,
                        count_include_pad=self.pick(0, 1))

    def lp_pool(self):
        x = self.near(4, where=lambda shape: min(shape[1:]) > 1)
        return self.add("LpPool", x, kernel_shape=[2, 2], strides=[1, 2], p=2, about=4 * x.size)

    def global_pool(self):
        x = self.near(3, 4, where=lambda shape: min(shape[1:]) > 0)
        return self.add(self.pick("GlobalMaxPool", "GlobalAveragePool"), x)

    # ---- recurrent

    def recurrent(self):
        x = self.value(3, types=(F32,), where=lambda shape: min(shape) > 0)
        self.need(x.size <= 64 and x.type in FLOATS)
        kind, gates = self.pick(("RNN", 1), ("GRU", 3), ("LSTM", 4))
        hidden, size, ways = self.pick(3, 8), x.shape[2], self.pick(1, 2)
        direction = "bidirectional" if ways == 2 else self.pick("forward", "reverse")
        weights = (self.normal(ways, gates * hidden, size, scale=size**-0.5),
                   self.normal(ways, gates * hidden, hidden, scale=hidden**-0.5),
                   self.normal(ways, 2 * gates * hidden, scale=0.5))
        return self.add(kind, x, *weights, hidden_size=hidden, direction=direction, about=1.0, outputs=self.pick(1, 2))
