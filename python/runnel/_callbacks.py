# SPDX-License-Identifier: Apache-2.0
"""Calls of Python functions by the C library, and what becomes of their answers and exceptions.

C gets the same few functions for all operators, which live as long as the process, and a number for each operator of each
graph. The number is looked up when C calls, so nothing of the user's is held by C: what refers to a session and is
referred to by it is collected as anything else, and a call that comes too late finds nothing and fails.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import functools
import itertools
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np

from . import _structs as s
from ._device import _info, text
from ._errors import BY_STATUS, Error, Unimplemented
from ._launch import Failed, Launch, Launches, WrongAnswer
from ._library import library
from ._operator import Node, TensorSpec
from ._types import BY_CODE, BY_DTYPE

INFER = c.CFUNCTYPE(c.c_int, c.POINTER(s.CustomCall), c.POINTER(s.TensorDesc))
PLAN = c.CFUNCTYPE(c.c_int, c.POINTER(s.CustomCall), c.POINTER(s.TensorDesc), c.c_void_p)
COMPUTE = c.CFUNCTYPE(c.c_int, c.POINTER(s.CustomCall), c.POINTER(s.TensorDesc), c.POINTER(c.c_void_p))

MOST_REASON_BYTES = 1500  # of the C library's message, which has more to say
MOST_FAILURES = 64


class Calls:
    """The calls into C that are under way for one graph, and why its callbacks failed in them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._failures: List[Tuple[str, BaseException]] = []
        self._inside: Set[int] = set()

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._count -= 1
            forgotten = [] if self._count else self._failures
            if not self._count:
                self._failures = []
        forgotten.clear()  # not while the lock is held: what the exceptions held goes with them

    def note(self, reason: str, error: BaseException) -> None:
        with self._lock:
            forgotten = self._failures[:-MOST_FAILURES]
            self._failures = self._failures[-MOST_FAILURES:] + [(reason, error)]
        forgotten.clear()

    def cause(self, message: str) -> Optional[BaseException]:
        """The exception that a failure's message has as its reason."""
        with self._lock:
            return next((error for reason, error in reversed(self._failures) if message.startswith(reason)), None)

    @contextlib.contextmanager
    def callback(self) -> Any:
        """Around a callback, by the thread that calls it."""
        ident = threading.get_ident()
        self._inside.add(ident)
        try:
            yield
        finally:
            self._inside.discard(ident)

    def is_inside(self) -> bool:
        """Whether this thread is in a callback."""
        return threading.get_ident() in self._inside


class Bound:
    """An operator in one graph."""

    __slots__ = ("operator", "calls", "key", "__weakref__")

    def __init__(self, operator: Any, calls: Calls):
        self.operator, self.calls, self.key = operator, calls, next(_keys)
        _bound[self.key] = self


_keys = itertools.count(1)
_bound: "weakref.WeakValueDictionary[int, Bound]" = weakref.WeakValueDictionary()


# ---- what is given


def _copy(address: Optional[int], dtype: np.dtype, shape: Tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, dtype)
    if array.nbytes:
        c.memmove(array.ctypes.data, address or 0, array.nbytes)
    return array


def _read_only(address: Optional[int], dtype: np.dtype, shape: Tuple[int, ...]) -> np.ndarray:
    array = _copy(address, dtype, shape)
    array.flags.writeable = False
    return array


def _spec(what: str, desc: Any) -> Optional[TensorSpec]:
    if desc.dtype == 0:
        return None
    if desc.dtype not in BY_CODE:
        raise Unimplemented(f"{what} has type {desc.dtype}, which ml_dtypes here does not know")
    spec, address = TensorSpec(BY_CODE[desc.dtype].dtype, desc.shape[:desc.rank]), desc.host
    if address or not spec.size:
        spec._known = functools.partial(_read_only, address, spec.dtype, spec.shape)
    return spec


def _attribute(call: Any, name: bytes) -> Any:
    lib, count, desc = library(), c.c_size_t(), s.TensorDesc()
    kind = s.CUSTOM_ATTRIBUTES[lib.rnl_custom_attribute_type(call, name)]
    if kind == "INT":
        return lib.rnl_custom_int(call, name, 0)
    if kind == "FLOAT":
        return lib.rnl_custom_float(call, name, 0)
    if kind == "STRING":
        return text(lib.rnl_custom_string(call, name, b""))
    if kind == "TENSOR":
        lib.rnl_custom_tensor(call, name, c.byref(desc))
        spec = _spec(f"the attribute '{text(name)}'", desc)
        return None if spec is None else _copy(desc.host, spec.dtype, spec.shape)
    read = {"INTS": lib.rnl_custom_ints, "FLOATS": lib.rnl_custom_floats, "STRINGS": lib.rnl_custom_strings}.get(kind)
    if read is None:
        return None
    found = read(call, name, c.byref(count))
    return [text(found[i]) if kind == "STRINGS" else found[i] for i in range(count.value)]


def _attributes(call: Any) -> Dict[str, Any]:
    lib: Any = library()
    found: Dict[str, Any] = {}
    for index in itertools.count():
        name = lib.rnl_custom_attribute_name(call, index)
        if name is None:
            return found
        value = _attribute(call, name)
        if value is not None:
            found[text(name)] = value
    return found


def _node(call: Any, outputs: Any, device: Any) -> Node:
    raw = call.contents
    inputs = tuple(_spec(f"input {i}", raw.inputs[i]) for i in range(raw.input_count))
    made = [_spec(f"output {i}", outputs[i]) for i in range(raw.output_count)] if outputs else []
    return Node(text(raw.domain), text(raw.op_type), text(raw.name), raw.version, inputs,
                tuple(spec for spec in made if spec is not None), raw.output_count, device, lambda: _attributes(call))


# ---- what comes back


def _reason(error: BaseException) -> str:
    if isinstance(error, WrongAnswer):
        said = str(error)
    else:
        try:
            said = str(error)
        except Exception:
            said = ""
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    encoded = said.replace("\0", " ").encode("utf-8", "replace")
    return encoded[:MOST_REASON_BYTES].decode("utf-8", "ignore")


def _status(error: BaseException) -> str:
    if isinstance(error, Error) and error.status in BY_STATUS:
        return error.status
    for kind, status in ((NotImplementedError, "UNIMPLEMENTED"), (MemoryError, "RESOURCE_EXHAUSTED"),
                         ((ValueError, WrongAnswer), "INVALID_ARGUMENT"), (Exception, "INTERNAL")):
        if isinstance(error, kind):
            return status
    return "CANCELLED"  # KeyboardInterrupt and the like, which the call raises itself


def _fail(status: str, reason: str) -> int:
    lib = library()
    code = next(i for i in range(len(BY_STATUS) + 1) if lib.rnl_status_name(i) == status.encode())
    return lib.rnl_custom_fail(code, b"%s", c.c_char_p(reason.encode()))


def _note(calls: Calls, error: BaseException) -> int:
    reason = _reason(error)
    if not isinstance(error, WrongAnswer):
        trace = error.__traceback__
        while trace and trace.tb_frame.f_globals is globals():
            trace = trace.tb_next
        calls.note(reason, error.with_traceback(trace))
    return _fail(_status(error), reason)


def _call(call: Any, work: Callable[[Bound], None]) -> int:
    """One callback: a status."""
    bound = _bound.get(call.contents.user)
    if bound is None:
        return _fail("FAILED_PRECONDITION", "the session was closed")
    try:
        with bound.calls.callback():
            work(bound)
        return 0
    except Failed as failure:
        return failure.status
    except BaseException as error:
        try:
            return _note(bound.calls, error)
        except BaseException:
            return len(BY_STATUS)  # the last: INTERNAL. What C calls must not raise


def _infer(call: Any, outputs: Any) -> int:
    def work(bound: Bound) -> None:
        node = _node(call, None, None)
        try:
            answer = bound.operator.infer(node, *node.inputs)
        finally:
            node._end()
        _describe(node, answer, outputs)

    return _call(call, work)


def _describe(node: Node, answer: Any, outputs: Any) -> None:
    specs = [answer] if isinstance(answer, TensorSpec) else answer
    if not isinstance(specs, (list, tuple)):
        raise WrongAnswer(f"it gave {answer!r:.60}, and not a TensorSpec for each of {node.output_count} outputs")
    if len(specs) != node.output_count:
        raise WrongAnswer(f"it gave {len(specs)} outputs, and the node has {node.output_count}")
    for i, spec in enumerate(specs):
        if not isinstance(spec, TensorSpec):
            raise WrongAnswer(f"it gave {spec!r:.60} for output {i}, and not a TensorSpec")
        if spec.dtype not in BY_DTYPE:
            raise WrongAnswer(f"it gave output {i} the numpy type {spec.dtype}, which no tensor has")
        if any(not -2**63 <= size < 2**63 for size in spec.shape):
            raise WrongAnswer(f"it gave output {i} the impossible shape {spec.shape}")
        outputs[i].dtype, outputs[i].rank = BY_DTYPE[spec.dtype].code, spec.ndim
        outputs[i].shape[:] = (spec.shape + (0,) * s.MAX_RANK)[:s.MAX_RANK]  # C refuses a rank that is too high


def _plan(call: Any, outputs: Any, plan: int) -> int:
    def work(bound: Bound) -> None:
        lib = library()
        node = _node(call, outputs, _info(lib.rnl_custom_device(plan).contents))
        try:
            answer = bound.operator.plan(node, *node.inputs)
            launches = Launches(lib, plan, node, bound.operator.raw.max_inputs)
            if isinstance(answer, Launch):
                answer = [answer]
            if not isinstance(answer, (list, tuple)):
                raise WrongAnswer(f"it gave {answer!r:.60}, and not a runnel.Launch or a list of them")
            for number, launch in enumerate(answer):
                launches.add(number, launch)
        finally:
            node._end()

    return _call(call, work)


def _compute(call: Any, outputs: Any, results: Any) -> int:
    def work(bound: Bound) -> None:
        raw, node = call.contents, _node(call, outputs, None)
        arrays = [spec and _copy(raw.inputs[i].host, spec.dtype, spec.shape) for i, spec in enumerate(node.inputs)]
        try:
            answer = bound.operator.compute(node, *arrays)
        finally:
            node._end()
        _store(node, answer, results)

    return _call(call, work)


def _store(node: Node, answer: Any, results: Any) -> None:
    given = answer if isinstance(answer, (list, tuple)) else [answer]
    if len(given) != node.output_count:
        raise WrongAnswer(f"it gave {len(given)} outputs, and the node has {node.output_count}")
    for i, (value, spec) in enumerate(zip(given, node.outputs)):
        if not hasattr(value, "__array__"):
            raise WrongAnswer(f"it gave {value!r:.60} for output {i}, and not an array")
        array = np.asarray(value)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        if array.dtype != spec.dtype or array.shape != spec.shape:
            raise WrongAnswer(f"it gave output {i} as {array.dtype} {array.shape}, and infer said {spec.dtype} "
                              f"{spec.shape}")
        if array.nbytes:
            c.memmove(results[i], array.ctypes.data, array.nbytes)


infer, plan, compute = INFER(_infer), PLAN(_plan), COMPUTE(_compute)
