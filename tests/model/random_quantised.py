# SPDX-License-Identifier: Apache-2.0
"""Quantised operators of the random graphs: scales are powers of 2, so that rounding is the only loss, and is exact."""

import numpy as np
from random_graph import BYTES, F32, I8, I32, U8, Grid, GraphBase, product

BYTE_BOUND = {I8: 128, U8: 255}


class Quantised(GraphBase):
    def quantised_kinds(self):
        return [self.quantize, self.dequantize, self.dequantize, self.quantize_and_back, self.quantised_conv,
                self.q_linear_conv, self.q_linear_mat_mul, self.mat_mul_integer, self.conv_integer]

    def scale(self, bits, *shape):
        return self.constant(np.full(shape, 2.0**-bits, np.float32))

    def zero(self, type, number):
        return self.constant(np.array(number, type))

    def zero_point(self, type):
        return self.pick(0, 3, 128 if type == U8 else -5)

    def scale_bits(self, x, type):
        """A scale at which x does not saturate much."""
        return self.pick(0, 1, 2) if x.grid.size() < 2 * BYTE_BOUND[type] else 0

    def quantize(self, x=None, type=None):
        x = x or self.value(types=(F32,), exact=True)
        type = type or self.pick(U8, I8)
        return self.add("QuantizeLinear", x, self.scale(self.scale_bits(x, type)), self.zero(type, self.zero_point(type)),
                        grid=Grid(0, BYTE_BOUND[type]))

    def dequantize(self, x=None):
        x = x or self.value(types=BYTES + (I32,), exact=True)
        bits, zero = self.pick(2, 4, 6), 0 if x.type == I32 else self.zero_point(x.type)
        lowest = 0 if x.type == U8 else -x.grid.bound
        grid = Grid(bits, max(abs(lowest - zero), abs(x.grid.bound - zero)))
        if x.rank >= 2 and self.chance(30):
            count = x.shape[1]
            return self.add("DequantizeLinear", x, self.scale(bits, count), self.constant(np.full(count, zero, x.type)),
                            axis=1, grid=grid)
        return self.add("DequantizeLinear", x, self.scale(bits), self.zero(x.type, zero), grid=grid)

    def quantize_and_back(self):
        return self.dequantize(self.quantize())

    def quantised_conv(self):
        """As quantised models have it: bytes to numbers, a convolution of them, and back."""
        x = self.value(4, types=BYTES, where=lambda shape: min(shape[1:]) > 0)
        factors, weight = self.dequantize(x), self.dequantize(self.small(I8, self.pick(1, 8), x.shape[1], 1, 1))
        y = self.add("Conv", factors, weight, grid=product(factors, weight, x.shape[1]), about=8.0)
        return self.quantize(y, x.type) if y.grid else y

    def factors_of(self, x, *shape):
        """Bytes to multiply x with, and their scale and zero point."""
        type = self.pick(I8, U8) if x.type == U8 else I8
        return self.small(type, *shape, low=-8, high=8), self.scale(3), self.zero(type, 0 if type == I8 else 2)

    def q_linear_conv(self):
        x = self.value(4, types=BYTES, where=lambda shape: min(shape[1:]) > 0)
        kernel = self.pick((1, 1), (2, 2), (3, 3))
        self.need(all(size >= k for size, k in zip(x.shape[2:], kernel)))
        return self.add("QLinearConv", x, self.scale(4), self.zero(x.type, self.zero_point(x.type)),
                        *self.factors_of(x, self.pick(1, 5, 8), x.shape[1], *kernel), self.scale(self.pick(0, 1)),
                        self.zero(x.type, self.zero_point(x.type)), pads=[self.pick(0, 1)] * 4,
                        grid=Grid(0, BYTE_BOUND[x.type]))

    def q_linear_mat_mul(self):
        x = self.value(2, 3, types=BYTES, where=lambda shape: shape[-1] > 0)
        return self.add("QLinearMatMul", x, self.scale(4), self.zero(x.type, self.zero_point(x.type)),
                        *self.factors_of(x, x.shape[-1], self.pick(1, 5, 16)), self.scale(self.pick(0, 1)),
                        self.zero(x.type, self.zero_point(x.type)), grid=Grid(0, BYTE_BOUND[x.type]))

    def mat_mul_integer(self):
        x = self.value(2, 3, types=BYTES, where=lambda shape: shape[-1] > 0)
        weight, _, zero = self.factors_of(x, x.shape[-1], self.pick(1, 5, 16))
        return self.add("MatMulInteger", x, weight, self.zero(x.type, self.zero_point(x.type)), zero,
                        grid=Grid(0, 400 * 16 * x.shape[-1]))

    def conv_integer(self):
        x = self.value(4, types=BYTES, where=lambda shape: min(shape[1:]) > 0)
        weight, _, zero = self.factors_of(x, self.pick(1, 5, 8), x.shape[1], 1, 1)
        return self.add("ConvInteger", x, weight, self.zero(x.type, self.zero_point(x.type)), zero,
                        grid=Grid(0, 400 * 16 * x.shape[1]))
