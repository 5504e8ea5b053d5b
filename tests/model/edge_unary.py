# SPDX-License-Identifier: Apache-2.0
"""The table of elementwise operators with one input: reference, bounds, types.

Bounds are in units in the last place of the type computed in, first float32, then float64. They are those of OpenCL C 1.2
(section 7.4) for the function, or of clkernels/math.clh where that computes it, and follow from the parts where an operator
is composed: a part with u units has a relative error of at most u * 2^-23, each further rounding adds 2^-24, and a relative
error of r * 2^-23 is at most 2 r units of the result. Parts, in units of float32 and float64: a sum or product 0.5, a quotient
2.5 and 0.5, exp 1 and 3, expm1 1.4 and 3, log1p 1.4 and 2, the sigmoid 2.2 (of float64: a quotient of 1 + exp, 8), erfc 16. Where
parts cancel, or an argument's rounding grows, the bound is a function of what is exact and of the input.
"""

import decimal

import edges
import numpy as np
from edges import F64, FLOATS, INTEGERS, SIGNED


class Row:
    """One operator with its attributes: how it is computed exactly, how far a device may be off, and for which types."""

    def __init__(self, op_type, reference, units=(0, 0), types=FLOATS, output=None, domain="", zero_signs=True, integer=None,
                 **attributes):
        self.op_type, self.domain, self.attributes, self.output = op_type, domain, attributes, output
        self.reference, self.units, self.types, self.integer = reference, units, list(types), integer
        self.zero_signs = zero_signs

    def units_of(self, dtype):
        index = int(np.dtype(dtype) == F64)
        return self.units if callable(self.units) else self.units[index]

    def reference_of(self, dtype):
        if edges.is_float(dtype) or self.integer is None:
            return self.reference
        return lambda x: edges.wrap(self.integer(edges.exactly(x)), dtype) if self.output is None else self.integer(x)

    def __str__(self):
        return f"{self.op_type}{self.attributes or ''}"


def of_decimals(function, x):
    """A function of decimals with 50 digits, for what neither numpy nor math has in long double."""
    out = np.empty(np.shape(x), np.longdouble)
    with decimal.localcontext() as context:
        context.prec, context.Emin, context.Emax = 50, -999999, 999999
        for i, value in np.ndenumerate(x):
            high = float(value)
            exact = decimal.Decimal(high) + decimal.Decimal(float(value - type(value)(high))) if np.isfinite(value) else None
            result = function(exact) if exact is not None else None
            if result is not None and abs(result) < decimal.Decimal("1e-4900"):
                result = decimal.Decimal(0).copy_sign(result)
            out[i] = np.nan if result is None else np.longdouble(str(result))
    return out


PI = decimal.Decimal("3.141592653589793238462643383279502884197169")


def decimal_erf(x):
    """The Taylor series."""
    term = total = x
    for n in range(1, 400):
        term = -term * x * x / n
        total += term / (2 * n + 1)
        if abs(term) < decimal.Decimal("1e-50") * abs(total):
            break
    return 2 / PI.sqrt() * total


def decimal_erfc(x):
    """By the series up to 3, above by Laplace's continued fraction."""
    if x < -3:
        return 2 - decimal_erfc(-x)
    if x <= 3:
        return 1 - decimal_erf(x)
    if x > 200:
        return decimal.Decimal(0)
    fraction = decimal.Decimal(0)
    for n in range(150, 0, -1):
        fraction = decimal.Decimal(n) / 2 / (x + fraction)
    return (-x * x).exp() / PI.sqrt() / (x + fraction)


def erf(x):
    middle = of_decimals(lambda d: decimal_erf(d) if abs(d) < 3 else (1 - decimal_erfc(abs(d))).copy_sign(d), x)
    return np.where(np.isinf(x), np.sign(x), np.where(x == 0, x, middle))


def gelu(x):
    """x / 2 * (1 + erf(x / sqrt(2))), whose second factor is erfc(-x / sqrt(2)); NaN for minus infinity, as 0 times infinity."""
    half = of_decimals(lambda d: d / 2 * decimal_erfc(-d / decimal.Decimal(2).sqrt()), x)
    return np.where(x == np.inf, x, np.where(x == 0, x, half))


def gelu_argument(x):
    return 2 * np.sqrt(np.longdouble(2) / np.longdouble("3.14159265358979323846264338")) * (x + 0.044715 * x**3)


def gelu_tanh(x):
    """x / 2 * (1 + tanh(t / 2)) = x / (1 + exp(-t))."""
    x = x.astype(np.longdouble)
    return np.where(x == -np.inf, np.nan, x / (1 + np.exp(-gelu_argument(x))))


def gelu_tanh_units(work, exact, x):
    """The argument t has five roundings, and exp multiplies its error by t where exp(-t) is not small beside 1."""
    t = gelu_argument(x.astype(np.longdouble))
    return 10 + 6 * np.where(t < 1, np.minimum(np.abs(t), 800), 1)


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def swish(alpha):
    """NaN for minus infinity, as infinity times 0."""
    return lambda x: x * sigmoid(alpha * x)


def mish(x):
    """x * tanh(log(1 + e)), e = exp(x), is x * n / (n + 2) with n = e * (e + 2)."""
    e = np.exp(np.minimum(x, 100))
    return np.where(x > 100, x, x * (e * (e + 2) / (e * (e + 2) + 2)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def times_exp_units(units, alpha=1.0):
    """Of x times something near exp(alpha * x), which is right to two units of its own, also where those are denormals'."""
    def of(work, exact, x):
        e = np.exp(np.minimum(alpha * x, 0))
        lost = 2 * np.abs(x) * work.unit(e) / work.unit(exact)
        return units[work.bits > 24] + np.where((e < 2.0 ** (work.least + 2)) & np.isfinite(x), lost, 0)
    return of


def hard_sigmoid(alpha, beta):
    return lambda x: np.clip(alpha * x + beta, 0, 1)


def hard_sigmoid_units(alpha, beta):
    """A product and a sum, which may cancel."""
    return lambda work, exact, x: 0.5 + (0.5 * work.unit(alpha * x)) / work.unit(exact)


def hard_swish_units(work, exact, x):
    """A sixth is rounded, as are the product, the sum, which may cancel, and the last product."""
    inner = np.clip(x / 6 + 0.5, 0, 1)
    error = 1.5 * work.unit(x / 6) + 0.5 * work.unit(inner)
    return 0.5 + np.where((x < 3.5) & (x > -3.5), np.abs(x) * error / work.unit(exact), 0)


def elu(alpha, gamma=1.0):
    return lambda x: gamma * np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def shrink(bias, lambd):
    return lambda x: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


def shrink_integer(bias, lambd):
    def one(n):
        moved = n + bias if n < -lambd else n - bias if n > lambd else 0
        return int(moved)
    return np.vectorize(one, otypes=[object])


def single(number):
    """What a float attribute holds."""
    return float(np.float32(number))


ALPHA = single(1.7)
SELU = single(1.67326319217681884765625), single(1.05070102214813232421875)
NO_SIGN = {"zero_signs": False}  # ONNX does not say which zero
BOOLS = [edges.BOOL]

ROWS = [
    Row("Abs", np.abs, types=FLOATS + INTEGERS, integer=np.abs),
    Row("Neg", np.negative, types=FLOATS + SIGNED, integer=np.negative),
    Row("Sign", np.sign, types=FLOATS + INTEGERS, integer=np.vectorize(lambda n: (n > 0) - (n < 0), otypes=[object]), **NO_SIGN),
    Row("Relu", lambda x: np.where(x < 0, 0, x), types=FLOATS + SIGNED, integer=lambda n: np.maximum(n, 0), **NO_SIGN),
    Row("Floor", np.floor), Row("Ceil", np.ceil), Row("Round", np.rint),
    Row("Sqrt", np.sqrt, (3, 0.5)), Row("Reciprocal", lambda x: 1 / x, (2.5, 0.5)),
    Row("Exp", np.exp, (1, 3)), Row("Log", np.log, (1, 3)), Row("Tanh", np.tanh, (1.4, 5)),
    Row("Sin", np.sin, (4, 4)), Row("Cos", np.cos, (4, 4)), Row("Tan", np.tan, (5, 5)),
    Row("Asin", np.arcsin, (4, 4)), Row("Acos", np.arccos, (4, 4)), Row("Atan", np.arctan, (5, 5)),
    Row("Sinh", np.sinh, (4, 4)), Row("Cosh", np.cosh, (4, 4)),
    Row("Asinh", np.arcsinh, (4, 4)), Row("Acosh", np.arccosh, (4, 4)), Row("Atanh", np.arctanh, (5, 5)),
    Row("Erf", erf, (1.1, 16)),
    Row("Sigmoid", sigmoid, (2.2, 8)),
    Row("Softplus", softplus, (6, 11)),
    Row("Softsign", lambda x: x / (1 + np.abs(x)), (6, 2)),
    Row("Gelu", gelu, (5.1, 40), approximate="none"), Row("Gelu", gelu_tanh, gelu_tanh_units, approximate="tanh"),
    Row("Mish", mish, times_exp_units((6, 18))),
    Row("Swish", swish(ALPHA), times_exp_units((6, 20), ALPHA), alpha=ALPHA),
    Row("Swish", swish(1.0), times_exp_units((6, 20), 1.0)),
    Row("Elu", elu(ALPHA), (4, 7), alpha=ALPHA), Row("Elu", elu(1.0), (4, 7)),
    Row("Selu", elu(*SELU), (5, 8)), Row("Selu", elu(ALPHA, 0.5), (5, 8), alpha=ALPHA, gamma=0.5),
    Row("Celu", lambda x: np.where(x < 0, ALPHA * np.expm1(np.minimum(x, 0) / ALPHA), x), (9, 8), alpha=ALPHA),
    Row("LeakyRelu", lambda x: np.where(x < 0, single(0.01) * x, x), (0.5, 0.5)),
    Row("LeakyRelu", lambda x: np.where(x < 0, -ALPHA * x, x), (0.5, 0.5), alpha=-ALPHA),
    Row("ThresholdedRelu", lambda x: np.where(x > ALPHA, x, 0), alpha=ALPHA),
    Row("ThresholdedRelu", lambda x: np.where(x > 1, x, 0)),
    Row("Shrink", shrink(0.25, ALPHA), (0.5, 0.5), bias=0.25, lambd=ALPHA, types=FLOATS),
    Row("Shrink", shrink(0, 0.5), types=FLOATS + INTEGERS, integer=shrink_integer(0, 0.5)),
    Row("Shrink", None, types=INTEGERS, integer=shrink_integer(2, 3), bias=2.0, lambd=3.0),
    Row("HardSigmoid", hard_sigmoid(single(0.2), 0.5), hard_sigmoid_units(single(0.2), 0.5), **NO_SIGN),
    Row("HardSigmoid", hard_sigmoid(ALPHA, -0.25), hard_sigmoid_units(ALPHA, -0.25), alpha=ALPHA, beta=-0.25, **NO_SIGN),
    Row("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), hard_swish_units, **NO_SIGN),
    Row("IsNaN", np.isnan, output=edges.BOOL), Row("IsInf", np.isinf, output=edges.BOOL),
    Row("IsInf", np.isposinf, output=edges.BOOL, detect_negative=0),
    Row("IsInf", np.isneginf, output=edges.BOOL, detect_positive=0),
    Row("Not", np.logical_not, types=BOOLS),
    Row("BitwiseNot", None, types=INTEGERS, integer=np.invert),
    Row("Gelu", gelu, (5.1, 40), domain="com.microsoft"),
    Row("QuickGelu", swish(single(1.702)), times_exp_units((6, 20), single(1.702)), domain="com.microsoft"),
    Row("QuickGelu", swish(ALPHA), times_exp_units((6, 20), ALPHA), domain="com.microsoft", alpha=ALPHA),
]
