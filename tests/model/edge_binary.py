# SPDX-License-Identifier: Apache-2.0
"""The table of elementwise operators with several inputs: inputs, reference, bounds, types; bounds as in edge_unary.py."""

import math

import edges
import ml_dtypes
import numpy as np
from edge_unary import NO_SIGN, gelu, gelu_tanh, gelu_tanh_units, sigmoid
from edges import BF16, BOOL, F16, F32, F64, FLOATS, INTEGERS, UNSIGNED, values

I32, I64, U8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)


def pairs(dtype, n):
    """Each with each."""
    return [values(dtype, n, seed=2)[:, None], values(dtype, n, seed=3)[None, :]]


def same(dtype, n):
    return [values(dtype, 5 * n, seed=seed).reshape(5, n) for seed in (4, 5)]


def scalar_first(dtype, n):
    return [values(dtype, 1, seed=6).reshape(()), values(dtype, n, seed=7)]


def whole_first(dtype, n):
    """The first has the result's shape, as PRelu wants it."""
    a, b = pairs(dtype, n)
    return [np.ascontiguousarray(np.broadcast_to(a, (n, n))), b]


class Row:
    """One operator: its inputs from a type and a size, how it is computed exactly, how far a device may be off."""

    def __init__(self, op_type, reference, units=(0, 0), types=FLOATS, integer=None, output=None, inputs=pairs, domain="",
                 zero_signs=True, **attributes):
        self.op_type, self.domain, self.attributes, self.output, self.inputs = op_type, domain, attributes, output, inputs
        self.reference, self.units, self.types, self.integer = reference, units, list(types), integer
        self.zero_signs = zero_signs

    def units_of(self, dtype):
        return self.units if callable(self.units) else self.units[int(np.dtype(dtype) == F64)]

    def reference_of(self, dtype):
        if self.integer is None or edges.is_float(dtype):
            return self.reference
        return lambda *x: edges.wrap(self.integer(*[edges.exactly(a) for a in x]), dtype)

    def __str__(self):
        return f"{self.op_type}{self.attributes or ''} by {self.inputs.__name__}"


def each(function):
    return np.vectorize(function, otypes=[object])


def divide(a, b):
    """Towards zero; by zero gives 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    """With the dividend's sign; by zero gives 0."""
    return 0 if b == 0 else a - b * divide(a, b)


def modulo(a, b):
    return 0 if b == 0 else a % b


def shift(left, bits, signed):
    def one(a, b):
        if b < 0 or b >= bits:
            return 0 if left or a >= 0 else -1
        return a << b if left else a >> b
    return each(one)


def whole_power(a, b):
    """Negative exponents give 0 but for the bases 1 and -1."""
    return a**b if b >= 0 else a ** (b & 1) if abs(a) == 1 else 0


def exponents(other, low=-40, high=40):
    def make(dtype, n):
        whole = edges.is_float(other) and not edges.is_float(dtype)
        a = values(dtype, n, seed=2)
        b = values(other, n, max(low, 0) if other in UNSIGNED else low, high, seed=3)
        if whole:
            b = np.arange(n).astype(np.float64).astype(other) % 12
        elif edges.is_float(dtype) and other == F64 != dtype:
            b = b.astype(np.float32).astype(other)
        if not edges.is_float(dtype):
            a = np.where(a == 0, 1, a).astype(dtype)  # 0 to a negative exponent is nothing
        return [a[:, None], b[None, :]]
    make.__name__ = f"exponents of {other}"
    return make


def roots(other):
    """Integers to halves of whole exponents: where the root is whole, that, else what truncating gives."""
    def make(dtype, n):
        return [np.arange(n).astype(dtype)[:, None], (np.arange(5) + 0.5).astype(other)[None, :]]
    make.__name__ = f"roots of {other}"
    return make


def root_of_power(a, b):
    return each(lambda x, y: math.isqrt(int(x) ** int(2 * y)))(a, b)


def power(a, b):
    return np.power(a, b.astype(a.dtype))


def wide_power(a, b):
    return each(lambda x, y: whole_power(int(x), int(y)))(a, b)


def power_rows():
    kinds = {F32: [F32, I32, I64, F16, U8, F64], F16: [F16, F32, I64], BF16: [BF16, I32], F64: [F64, F32, I64],
             I32: [I32, F32, I64, U8], I64: [I64, F32, I32]}
    rows = []
    for base, others in kinds.items():
        for other in others:
            integer = None if edges.is_float(base) else wide_power
            rows.append(Row("Pow", power, (16, 16), [base], integer, inputs=exponents(other)))
    return rows + [Row("Pow", None, types=[base], integer=root_of_power, inputs=roots(F32)) for base in (I32, I64)]


# ---- several inputs

def three(dtype, n):
    """No sum of two finite ones overflows."""
    a, b = pairs(dtype, n)
    c = values(dtype, n, seed=8)
    return [(x.astype(np.float64) / 4).astype(dtype) if edges.is_float(dtype) else x for x in (a, b, c)]


def one(dtype, n):
    return [values(dtype, n, seed=2)]


def add_three(a, b, c):
    return a + b + c


def sum_units(dtype, count):
    """A rounding of each sum, in the type of memory where it lies there in between; of a mean, also its factor's and its own."""
    own = edges.Precision(dtype)

    def of(work, exact, a, b, c):
        first, whole = a + b, a + b + c
        error = np.maximum(own.unit(first), work.unit(first)) / 2 + np.maximum(own.unit(whole), work.unit(whole)) / 2
        error = error / count + (1.5 * np.maximum(own.unit(exact), work.unit(exact)) if count > 1 else 0)
        return error / work.unit(exact)
    return of


def variadic_rows():
    # What cancels may be a zero of either sign.
    rows = [Row("Sum", add_three, sum_units(t, 1), [t], inputs=three, **NO_SIGN) for t in FLOATS]
    rows += [Row("Mean", lambda a, b, c: (a + b + c) / 3, sum_units(t, 3), [t], inputs=three, **NO_SIGN) for t in FLOATS]
    for name, function in (("Max", np.maximum), ("Min", np.minimum)):
        def of_three(a, b, c, function=function):
            return function(function(a, b), c)
        rows.append(Row(name, function, types=FLOATS + INTEGERS, integer=function, **NO_SIGN))
        rows.append(Row(name, of_three, types=FLOATS + INTEGERS, integer=of_three, inputs=three, **NO_SIGN))
    for name in ("Sum", "Mean", "Max", "Min"):
        rows.append(Row(name, lambda a: a, types=FLOATS, inputs=one))
    return rows


def choice(dtype, n):
    return [values(BOOL, n, seed=1)[:, None], values(dtype, n, seed=2)[None, :], values(dtype, n, seed=3)[:, None]]


def bounds(dtype, n):
    ends = (-3, 2.5) if edges.is_float(dtype) else (3, 100)
    return [values(dtype, n), *(np.array(end).astype(dtype) for end in ends)]


def crossed_bounds(dtype, n):
    return [values(dtype, n), *(np.array(end).astype(dtype) for end in (100, 3))]


def low_bound(dtype, n):
    return [values(dtype, n), np.array(1).astype(dtype)]


def high_bound(dtype, n):
    return [values(dtype, n), None, np.array(1).astype(dtype)]


def no_bounds(dtype, n):
    return one(dtype, n)


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


class ClipRow(Row):
    """Floats beyond the type's finite ones become the last of those, also where a bound is left out."""

    def reference_of(self, dtype):
        exact = super().reference_of(dtype)
        if not edges.is_float(dtype):
            return exact
        most = np.longdouble(ml_dtypes.finfo(dtype).max)
        return lambda *x: np.clip(exact(*x), -most, most).astype(x[0].dtype)


def clip_rows():
    kinds = {"types": FLOATS + INTEGERS, **NO_SIGN}
    low, high = (lambda x, a: np.maximum(x, a)), (lambda x, a: np.minimum(x, a))
    return [ClipRow("Clip", f, integer=f, inputs=i, **kinds)
            for f, i in ((clip, bounds), (clip, crossed_bounds), (low, low_bound), (high, high_bound),
                         (lambda x: x, no_bounds))]


def columns(dtype, n):
    """A bias for each column, of which no sum overflows or rounds: the operator is tested, not the sum."""
    x = values(dtype, 3 * n, -30, 30, seed=2).reshape(3, n)
    return [x, np.zeros(n, dtype)]


def swiglu_inputs(dtype, n):
    """A product with what float32 cannot hold is no test of either factor."""
    a, b = same(dtype, n)
    return [np.where(np.isfinite(a.astype(np.float64)) & (a.astype(np.float64) < -60), np.array(-3).astype(dtype), a), b]


def swiglu(alpha):
    return lambda a, b: a * sigmoid(alpha * a) * b


def swiglu_units(work, exact, a, b):
    """The product of both, of which the first may be denormal."""
    first = a * sigmoid(a)
    lost = np.where(np.abs(first) < 2.0 ** (work.least + 30), np.abs(b) * work.unit(first) / work.unit(exact), 0)
    return (7 if work.bits <= 24 else 22) + np.where(np.isfinite(lost), 2 * lost, 0)


NUMBERS = FLOATS + INTEGERS
ROWS = [
    Row("Add", np.add, (0.5, 0.5), NUMBERS, np.add), Row("Add", np.add, (0.5, 0.5), FLOATS, inputs=same),
    Row("Sub", np.subtract, (0.5, 0.5), NUMBERS, np.subtract),
    Row("Mul", np.multiply, (0.5, 0.5), NUMBERS, np.multiply), Row("Mul", np.multiply, (0.5, 0.5), [F32], inputs=scalar_first),
    Row("Div", np.divide, (2.5, 0.5), NUMBERS, each(divide)),
    Row("Div", np.divide, (2.5, 0.5), [F32, I32], each(divide), inputs=same),
    Row("Mod", np.fmod, (0, 0), NUMBERS, each(remainder), fmod=1),
    Row("Mod", np.mod, (0.5, 0.5), NUMBERS, each(modulo)), Row("Mod", np.mod, (0.5, 0.5), [F32], inputs=same),
    Row("PRelu", lambda x, s: np.where(x < 0, x * s, x), (0.5, 0.5),
        FLOATS + [np.dtype(t) for t in (np.int32, np.int64, np.uint32, np.uint64)], each(lambda x, s: x * s if x < 0 else x),
        inputs=whole_first),
    *(Row(name, f, types=NUMBERS, output=BOOL) for name, f in (
        ("Less", np.less), ("LessOrEqual", np.less_equal), ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal))),
    Row("Equal", np.equal, types=NUMBERS + [BOOL], output=BOOL), Row("Equal", np.equal, types=[F32], output=BOOL, inputs=same),
    Row("And", np.logical_and, types=[BOOL]), Row("Or", np.logical_or, types=[BOOL]), Row("Xor", np.logical_xor, types=[BOOL]),
    *(Row(f"Bitwise{name}", None, types=INTEGERS, integer=f) for name, f in (
        ("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor))),
    *(Row("BitShift", None, types=[t], integer=shift(d == "LEFT", t.itemsize * 8, t not in UNSIGNED), direction=d)
      for t in INTEGERS for d in ("LEFT", "RIGHT")),
    *power_rows(), *variadic_rows(), *clip_rows(),
    Row("Where", lambda c, a, b: np.where(c, a, b), types=NUMBERS + [BOOL], inputs=choice),
    Row("SwiGLU", swiglu(1.0), swiglu_units, inputs=swiglu_inputs),
    Row("BiasGelu", lambda x, b: gelu(x + b), (5.1, 40), inputs=columns, domain="com.microsoft"),
    Row("FastGelu", lambda x, b: gelu_tanh(x + b), lambda w, e, x, b: gelu_tanh_units(w, e, x), inputs=columns,
        domain="com.microsoft"),
    Row("FastGelu", gelu_tanh, gelu_tanh_units, inputs=one, domain="com.microsoft"),
]
