# SPDX-License-Identifier: Apache-2.0
"""The table of reductions, of what runs along an axis, and their bounds; see edges.py.

A sum of n elements is right to n rounding errors of the sum of their magnitudes, which is what any order of adding gives; of
the half types the sum is kept in float32 and rounded once.
"""

import math

import edges
import numpy as np
from edges import BOOL, FLOATS, SIGNED, UNSIGNED, is_float, values

WIDE = SIGNED[2:] + UNSIGNED[2:]
BYTES = [np.dtype(np.int8), np.dtype(np.uint8)]
SHAPE, AXES = (5, 17, 3), ((1,), (0, 2), None, (-1,))


class Row:
    """A reduction. exact(x, axes) on floats and units(work, exact, x, axes) -> units; integer(x, axes) on Python's numbers."""

    def __init__(self, op_type, exact, units, integer=None, types=(), data=None, floats=True):
        self.op_type, self.exact, self.units, self.integer = op_type, exact, units, integer
        self.types, self.data = FLOATS * floats + list(types), data

    def __str__(self):
        return self.op_type

    def units_of(self, dtype, axes):
        return (lambda work, exact, x: self.units(work, exact, x, axes)) if is_float(dtype) else 0

    def reference_of(self, dtype, axes, keep):
        def kept(x, result):
            return np.asarray(result).reshape(np.asarray(np.sum(np.zeros(x.shape), axis=axes, keepdims=keep)).shape)
        if is_float(dtype):
            return lambda x: kept(x, self.exact(x, axes))
        if dtype == BOOL:
            return lambda x: kept(x, self.integer(x, axes))
        return lambda x: edges.wrap(kept(x, self.integer(edges.exactly(x), axes)), dtype)


def ordinary(dtype, shape):
    """What sums of do not overflow, with zeros and denormals among them."""
    if not is_float(dtype):
        return values(dtype, int(np.prod(shape))).reshape(shape)
    x = values(dtype, int(np.prod(shape)), -8, 8, seed=1).reshape(shape)
    if x.ndim == 3 and x.shape[1] > 3:
        x = np.where(np.isnan(x.astype(np.float64)), np.ones_like(x), x)
        x[1, 2, 0], x[2, 3, 1], x[3, 4, 2], x[3, 5, 2] = np.nan, np.inf, -np.inf, np.inf
    return x


def averaged(dtype, shape):
    """The sum of integers is kept in 64 bits, and those of 64 bits must not leave them."""
    x = ordinary(dtype, shape)
    return x if is_float(dtype) or dtype.itemsize < 8 else x // np.array(512, dtype)


def small(dtype, shape):
    """The sum of squares of these is in range."""
    return values(dtype, int(np.prod(shape)), 0 if dtype in UNSIGNED else -1000, 1000).reshape(shape)


def positive(dtype, shape):
    return np.abs(ordinary(dtype, shape))


def near_one(dtype, shape):
    """Products of these stay in range."""
    if not is_float(dtype):
        return ordinary(dtype, shape)
    x = np.random.default_rng(3).uniform(0.7, 1.4, shape).astype(dtype)
    x.reshape(-1)[:: 7] *= np.array(-1).astype(dtype)
    return x


def anything(dtype, shape):
    return values(dtype, int(np.prod(shape)), seed=2).reshape(shape)


def count_of(x, axes):
    return x.size if axes is None else int(np.prod([x.shape[a] for a in axes]))


def sum_units(of, more=0.5):
    """`of` gives the terms; `more` units for what follows."""
    def units(work, exact, x, axes):
        terms = np.sum(np.abs(of(x)), axis=axes, dtype=np.longdouble).reshape(exact.shape)
        return more + (count_of(x, axes) + 1) * work.unit(terms) / 2 / work.unit(exact)
    return units


def root_units(work, exact, x, axes):
    """A square below the least denormal number is nothing."""
    count = count_of(x, axes)
    return 4 + count + np.sqrt(count * np.ldexp(np.longdouble(1), work.least - work.bits)) / work.unit(exact)


def mean_units(work, exact, x, axes):
    terms = np.sum(np.abs(x), axis=axes, dtype=np.longdouble).reshape(exact.shape) / count_of(x, axes)
    return 2.5 + (count_of(x, axes) + 1) * work.unit(terms) / work.unit(exact)


def log_units(work, exact, x, axes):
    """The sum's relative error is an absolute one of the logarithm."""
    absolute = (count_of(x, axes) + 8) * 2.0 ** -work.bits
    return 3 + absolute / work.unit(exact)


def exp_units(work, exact, x, axes):
    """exp(x - m) takes the rounding of x - m, which is as large as half a unit of x."""
    size = np.max(np.where(np.isfinite(x), np.abs(x), 0), axis=axes).reshape(exact.shape)
    absolute = (2 * count_of(x, axes) + 16) * 2.0 ** -work.bits + 4 * work.unit(size)
    return 6 + absolute / work.unit(exact)


def log_sum_exp(x, axes):
    top = np.max(x, axis=axes, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - shift), axis=axes)) + np.squeeze(shift, axis=axes)



def identity(x):
    return x


def exactly_zero(*_):
    return 0


def truncated_mean(x, axes):
    total, count = np.sum(x, axis=axes), count_of(x, axes)
    return np.vectorize(lambda n: abs(n) // count * (-1 if n < 0 else 1), otypes=[object])(total)


ROWS = [
    Row("ReduceSum", lambda x, a: np.sum(x, axis=a), sum_units(identity), lambda x, a: np.sum(x, axis=a), WIDE, ordinary),
    Row("ReduceMean", lambda x, a: np.mean(x, axis=a), mean_units, truncated_mean, WIDE, averaged),
    Row("ReduceMax", lambda x, a: np.max(x, axis=a), exactly_zero, lambda x, a: np.max(x, axis=a), WIDE + BYTES + [BOOL],
        anything),
    Row("ReduceMin", lambda x, a: np.min(x, axis=a), exactly_zero, lambda x, a: np.min(x, axis=a), WIDE + BYTES + [BOOL],
        anything),
    Row("ReduceProd", lambda x, a: np.prod(x, axis=a), lambda w, e, x, a: count_of(x, a) + 0.5, lambda x, a: np.prod(x, axis=a),
        WIDE, near_one),
    Row("ReduceL1", lambda x, a: np.sum(np.abs(x), axis=a), sum_units(identity), lambda x, a: np.sum(np.abs(x), axis=a), WIDE,
        ordinary),
    Row("ReduceSumSquare", lambda x, a: np.sum(x * x, axis=a), sum_units(np.square, 2), lambda x, a: np.sum(x * x, axis=a), WIDE,
        ordinary),
    Row("ReduceL2", lambda x, a: np.sqrt(np.sum(x * x, axis=a)), root_units, None, (), ordinary),
    Row("ReduceL2", None, None, lambda x, a: np.vectorize(math.isqrt, otypes=[object])(np.sum(x * x, axis=a)), WIDE, small,
        floats=False),
    Row("ReduceLogSum", lambda x, a: np.log(np.sum(x, axis=a)), log_units, None, (), positive),
    Row("ReduceLogSumExp", log_sum_exp, exp_units, None, (), ordinary),
]
