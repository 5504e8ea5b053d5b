# SPDX-License-Identifier: Apache-2.0
"""What the tests of operators at the edges of their types share: values, one model of many nodes, and comparison.

Values: `values(dtype, count)` has NaN, infinities, zeros, the least and the largest denormal and normal numbers, or the
limits of an integer type, and then numbers of all magnitudes.

Models: `Batch` collects nodes whose inputs are arrays, runs them all as one model and returns the results in order. With
`constant=True` the arrays are initialisers: small ones are then computed on the host, while the model is loaded.

Comparison: `check(...)` compares with a reference in float64 (of float64: in long double), in units in the last place. An
element passes when it is within half a unit of its own type, for the one rounding where it is stored, and `units` units of
the type computed in (float32 for the half types) of what is exact. A NaN is expected exactly where the reference has one,
an infinity where the exact number, or one within the bound, rounds to it. Zeros have the reference's sign.

Denormals: only where the device does not report CL_FP_DENORM, and only for float32 and bfloat16, it may do what OpenCL C
allows (section 7.5.3): take denormal operands for zeros, and give zero for a result that is denormal before rounding. float16
is computed in float32, where its denormals are normal numbers, and float64 has denormals on every device.
"""

import ctypes as c
import itertools
import os
import sys

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

OPSET = 28
F32, F16, F64, BF16 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)
FLOATS = [F32, F16, BF16, F64]
SIGNED = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64)]
UNSIGNED = [np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64)]
INTEGERS = SIGNED + UNSIGNED
BOOL = np.dtype(np.bool_)
ODD_SIZES = (1, 3, 17, 67, 257)
CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_DOUBLE_FP_CONFIG, CL_FP_DENORM = 0x101B, 0x1032, 1


# ---- types

class Precision:
    """Of a floating type: bits of the significand, exponent of the least normal number, and the largest number."""

    def __init__(self, dtype):
        info = ml_dtypes.finfo(dtype)
        self.bits, self.least, self.largest = info.nmant + 1, int(info.minexp), np.longdouble(info.max)

    def unit(self, exact):
        """The distance of neighbours at a number; that of denormals is the same for all of them."""
        with np.errstate(all="ignore"):
            _, exponent = np.frexp(np.where(np.isfinite(exact), np.abs(exact), 0).astype(np.longdouble))
        exponent = np.clip(np.where(exact == 0, self.least, exponent - 1), self.least, None)
        return np.ldexp(np.longdouble(1), (exponent - self.bits + 1).astype(np.int32))


def is_float(dtype):
    return np.dtype(dtype) in FLOATS


def computed_in(dtype):
    """The type that arithmetic on elements of a floating type is done in."""
    return F64 if np.dtype(dtype) == F64 else F32


def widen(array):
    """For a reference: floats in float64 (float64 in long double), integers and bool as they are."""
    array = np.asarray(array)
    if array.dtype == F64:
        return array.astype(np.longdouble)
    return array.astype(np.float64) if is_float(array.dtype) else array


def exactly(array):
    """Integers as Python's, which never overflow."""
    return np.asarray(array).astype(object)


def wrap(array, dtype):
    """Python's integers to a type, as a machine that wraps does."""
    bits = np.dtype(dtype).itemsize * 8
    flat = [int(n) & ((1 << bits) - 1) for n in np.asarray(array, object).reshape(-1)]
    return np.array(flat, np.dtype(f"u{bits // 8}")).view(dtype).reshape(np.shape(array))


# ---- values

def edge_values(dtype):
    """Every number of a type at which something may change."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.array([False, True])
    if not is_float(dtype):
        info = np.iinfo(dtype)
        found = {info.min, info.max, info.min + 1, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, 7, 100}
        found |= {-1, -2, -7, -100} if info.min else set()
        return np.array(sorted(found), dtype)
    info = ml_dtypes.finfo(dtype)
    tiny, least = np.float64(info.tiny), np.float64(info.smallest_subnormal)
    largest, eps = np.float64(info.max), np.float64(info.eps)
    found = np.array([0, least, tiny - least, tiny, tiny + least, eps, 0.5, 1 - eps / 2, 1, 1 + eps, 1.5, 2, 2.5, 3, 10,
                      100, largest / 2, largest, np.inf])
    return np.concatenate([[np.nan], found, -found]).astype(dtype)


def values(dtype, count=257, low=None, high=None, seed=0):
    """All edge values of a type within [low, high], then numbers of all magnitudes in between, in an order of their own."""
    dtype, random = np.dtype(dtype), np.random.default_rng(seed)
    edges = edge_values(dtype)
    if dtype == BOOL:
        return np.concatenate([edges, random.integers(0, 2, count).astype(bool)])[:count]
    if not is_float(dtype):
        info = np.iinfo(dtype)
        low, high = max(info.min, info.min if low is None else low), min(info.max, info.max if high is None else high)
        bits = random.integers(0, info.bits + 1, count)
        more = [int(n) >> int(b) for n, b in zip(random.integers(info.min, info.max, count, dtype, endpoint=True), bits)]
        picked = [n for n in edges.tolist() + more if low <= n <= high] + [low] * count
        return random.permutation(np.array(picked[:count], dtype))
    near = random.normal(0, 3, count)
    info = ml_dtypes.finfo(dtype)
    far = np.exp2(random.uniform(float(info.minexp) - 3, float(info.maxexp) - 0.01, count)) * random.choice([-1, 1], count)
    between = near if low is None or high is None else random.uniform(low, high, count)
    found = np.concatenate([edges, np.stack([near, far, between], 1).reshape(-1).astype(dtype)])
    with np.errstate(all="ignore"):
        wide = found.astype(np.float64)
        inside = np.isnan(wide) | (((low is None) | (wide >= (low or 0))) & ((high is None) | (wide <= (high or 0))))
    found = found[inside]
    return random.permutation(np.resize(found, max(count, 1))[:count])


def taken(rows, dtype):
    """The rows of a table for a type. With RUNNEL_TEST_EACH=N all of float32, float64 and int32, and one in N of the others,
    which are loaded and stored in another way and computed in the same one."""
    rows = [row for row in rows if dtype in row.types]
    some = [row for row in rows if dtype in (F32, F64, np.int32) or runnel.chosen(f"{row} {dtype}")]
    return some or rows[:1]


# ---- models

class Batch:
    """Nodes that become one model of many outputs."""

    def __init__(self, opset=OPSET, constant=False):
        self.opset, self.constant = opset, constant
        self.nodes, self.infos, self.tensors, self.feed, self.outputs, self.known = [], [], [], {}, [], {}

    def value(self, array):
        """The name of an input that holds this array; the same array is one input."""
        if array is None:
            return ""
        array = np.asarray(array)
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes())
        if key not in self.known:
            name = self.known[key] = f"x{len(self.known)}"
            if self.constant:
                self.tensors.append(numpy_helper.from_array(array, name))
            else:
                self.infos.append(helper.make_tensor_value_info(name, runnel.CODES[array.dtype], array.shape))
                self.feed[name] = array
        return self.known[key]

    def weight(self, array):
        """The name of an initialiser, for what a model must know: axes, shapes."""
        name = f"w{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op_type, inputs, outputs, domain="", **attributes):
        """One node. inputs: arrays, names, or None for one left out. outputs: the type, or types. Returns the first's place
        in what `run` returns."""
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        place = len(self.outputs)
        names = [f"y{place + i}" for i in range(len(outputs))]
        sources = [x if isinstance(x, str) else self.value(x) for x in inputs]
        self.nodes.append(helper.make_node(op_type, sources, names, domain=domain, **attributes))
        for name, dtype in zip(names, outputs):
            self.outputs.append(helper.make_tensor_value_info(name, runnel.CODES[np.dtype(dtype)], None))
        return place

    def run(self, device):
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted({n.domain for n in self.nodes} - {""})]
        graph = helper.make_graph(self.nodes, "g", self.infos, self.outputs, self.tensors)
        session = runnel.Session(device, helper.make_model(graph, opset_imports=imports).SerializeToString())
        try:
            results = session.run(self.feed)
        finally:
            session.close()
        return [results[info.name] for info in self.outputs]


# ---- comparison

def fp_config(device, name):
    """A device's CL_DEVICE_SINGLE_FP_CONFIG or CL_DEVICE_DOUBLE_FP_CONFIG."""
    get = device.library.rt.rnl_device_get_cl_device
    get.restype = c.c_void_p
    config = c.c_uint64()
    c.CDLL("libOpenCL.so.1").clGetDeviceInfo(c.c_void_p(get(device.handle)), c.c_uint32(name), c.c_size_t(8),
                                             c.byref(config), None)
    return config.value


def has_type(device, dtype):
    return np.dtype(dtype) != F64 or fp_config(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0


def flushes(device, dtype):
    """Whether a device may flush denormals of a type to zero."""
    return np.dtype(dtype) in (F32, BF16) and not fp_config(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM


def accepted(got, exact, units, zero_signs=True):
    """Whether each element is within the bound of what is exact. units: a number, or one for each element."""
    dtype = got.dtype
    exact = np.asarray(exact)
    if not is_float(dtype):
        return got == exact
    own, work = Precision(dtype), Precision(computed_in(dtype))
    wide, exact = got.astype(np.longdouble), exact.astype(np.longdouble)
    with np.errstate(all="ignore"):
        stored = 0 if dtype == computed_in(dtype) else own.unit(exact) / 2
        allowed = (units * work.unit(exact) + stored) * (1 + np.longdouble(2) ** -10)  # the reference is rounded, too
        near = np.abs(wide - exact) <= allowed
        ends = own.largest + own.unit(own.largest) / 2
        over = np.isinf(wide) & (np.sign(wide) == np.sign(exact)) & (np.abs(exact) + allowed >= ends)
    zeros = (wide != 0) | (np.signbit(wide) == np.signbit(exact)) if zero_signs else True
    same = (np.isnan(wide) & np.isnan(exact)) | (wide == exact) | (np.isfinite(exact) & (over | near))
    return same & (zeros | np.isnan(wide))


def flush(array):
    """Denormal numbers as zeros of their sign."""
    if not is_float(array.dtype):
        return array
    small = np.abs(array.astype(np.float64)) < float(ml_dtypes.finfo(array.dtype).tiny)
    return np.where(small, np.copysign(np.zeros_like(array), array), array)


def check(test, name, got, reference, inputs, units=0.0, may_flush=False, zero_signs=True):
    """Fails `test` where `got` is not what `reference` gives for the inputs (arrays as they were given; it gets them wide).

    units: a number, or a function of (the Precision computed in, what is exact, the wide inputs ...) that gives them.
    """
    def fits(taken):
        wide = [widen(x) for x in taken]
        exact = np.asarray(reference(*wide))
        work = Precision(computed_in(got.dtype)) if is_float(got.dtype) else None
        return exact, accepted(got, exact, units(work, exact, *wide) if callable(units) else units, zero_signs)

    with np.errstate(all="ignore"):
        exact, fine = fits(inputs)
        test.assertEqual(got.shape, exact.shape, name)
        if may_flush and not np.all(fine):
            for flushed in itertools.product((False, True), repeat=len(inputs)):
                taken = [flush(x) if off else x for x, off in zip(inputs, flushed)]
                other, near = fits(taken)
                fine |= near
                if is_float(got.dtype):
                    fine |= (np.abs(other) < float(ml_dtypes.finfo(got.dtype).tiny)) & (got == 0)
    if np.all(fine):
        return
    wrong = ~fine
    shown = [shown_inputs(x, got.shape, wrong) for x in inputs]
    test.fail(f"{name}: {int(wrong.sum())} of {wrong.size}, as of {shown}: {got[wrong][:4]}, not {exact[wrong][:4]}")


def shown_inputs(array, shape, wrong):
    try:
        return np.broadcast_to(array, shape)[wrong][:4]
    except ValueError:
        return f"{array.dtype} {array.shape}"


# ---- coverage

class Support(c.Structure):
    _fields_ = [("domain", c.c_char_p), ("op_type", c.c_char_p), ("since", c.c_int32), ("until", c.c_int32),
                ("types", c.c_uint32)]


def claimed(library):
    """{(domain, operator): {type of the first input: the newest opset that has it}}, of all that the library lists."""
    count = library.lib.rnl_operator_list
    count.restype = c.c_size_t
    rows = (Support * count(None, c.c_size_t(0)))()
    count(rows, c.c_size_t(len(rows)))
    found = {}
    for row in rows:
        types = found.setdefault((row.domain.decode(), row.op_type.decode()), {})
        for code, dtype in runnel.DTYPES.items():
            if row.types >> code & 1:
                types[np.dtype(dtype)] = max(row.until, types.get(np.dtype(dtype), 0))
    return found
