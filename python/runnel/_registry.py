# SPDX-License-Identifier: Apache-2.0
"""Registries: operators of one's own, for the models that are opened with them."""

from __future__ import annotations

import ctypes as c
import operator
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from . import _callbacks
from . import _structs as s
from ._callbacks import Bound, Calls
from ._errors import InvalidArgument
from ._library import Sole, library
from ._operator import Launch, TensorSpec

ANY = 2**32 - 1
Count = Union[int, Tuple[int, Optional[int]]]
Infer = Callable[..., Union[TensorSpec, Sequence[TensorSpec]]]
Plan = Callable[..., Union[Launch, Sequence[Launch]]]
Compute = Callable[..., Any]


class _Operator:
    """What was registered."""

    def __init__(self, infer: Any, plan: Any, compute: Any, raw: Any):
        self.infer, self.plan, self.compute, self.raw = infer, plan, compute, raw


def _text(what: str, value: Any) -> bytes:
    if not isinstance(value, str) or "\0" in value:
        raise InvalidArgument(f"the operator's {what} is {value!r:.60}, which is no name")
    return value.encode("utf-8", "replace")


def _counts(what: str, value: Any) -> Tuple[int, int]:
    """The least and the most."""
    try:
        least, most = value if isinstance(value, (list, tuple)) else (value, value)
        found = operator.index(least), ANY if most is None else operator.index(most)
        if all(0 <= count <= ANY for count in found):
            return found
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(f"{what} is {value!r:.60}; give a number, or the least and the most: (1, 3), (1, None)")


def _bits(contents: Any) -> int:
    bits = 0
    try:
        for index in contents:
            if not 0 <= operator.index(index) < 32:
                raise ValueError
            bits |= 1 << index
    except (TypeError, ValueError):
        raise InvalidArgument(f"contents is {contents!r:.60}; give numbers of inputs, from 0 to 31: [1]") from None
    return bits


def _check_callable(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise InvalidArgument(f"{name} cannot be called")


class Registry(Sole):
    """Operators of one's own, for the models that are opened with it: any number of them, on any devices.

        registry = runnel.Registry()
        registry.add("com.example", "Scale", infer=lambda node, x: x,
                     compute=lambda node, x: x * np.float32(node.attributes["factor"]))
        session = runnel.Session("model.onnx", registry=registry)

    May be used from any thread.
    """

    def __init__(self) -> None:
        self._handle = c.c_void_p()
        self._lib = library()
        self._lib.check(self._lib.rnl_registry_create(c.byref(self._handle)))  # sees to it that operators can be
        self._operators: List[_Operator] = []

    def add(self, domain: str, op_type: str, *, infer: Infer, plan: Optional[Plan] = None,
            compute: Optional[Compute] = None, inputs: Count = 1, outputs: Count = 1, contents: Iterable[int] = (),
            since_version: int = 1) -> None:
        """Adds an operator, for models that are opened afterwards.

        `infer(node, *inputs)` is given a TensorSpec for each input of a `Node` (None: left out), and answers one for each
        output. `plan(node, *inputs)` is given the same, and answers the Launch, or launches, that make `node.outputs` on
        the device; or `compute(node, *arrays)` makes them on the host, and answers an array for each. One of them is
        needed.

        `inputs`, `outputs`: how many nodes have, or the least and the most; (1, None): any number from 1 on. `contents`:
        the inputs whose `value` infer, plan or compute need while planning. `since_version`: of the domain; a model gets
        the newest that is not newer than its import.

        An exception in a callback is the failure's reason, and `__cause__` of what the session's call raises. Callbacks
        are called by any thread, several at once; answers are kept, so they follow from what is given alone; and they
        must not use the session that they are called for. Raises InvalidArgument for an operator that cannot be.
        """
        for name, value in (("infer", infer), ("plan", plan), ("compute", compute)):
            _check_callable(name, value)
        raw = s.CustomOperator(struct_size=c.sizeof(s.CustomOperator), domain=_text("domain", domain),
                               op_type=_text("name", op_type), contents=_bits(contents))
        raw.min_inputs, raw.max_inputs = _counts("inputs", inputs)
        raw.min_outputs, raw.max_outputs = _counts("outputs", outputs)
        if not isinstance(since_version, int) or not 0 <= since_version < 2**63:
            raise InvalidArgument(f"since_version is {since_version!r:.60}; give a whole number from 1 on")
        raw.since_version = since_version
        for name, value in (("infer", infer), ("plan", plan), ("compute", compute)):
            setattr(raw, name, c.cast(getattr(_callbacks, name), c.c_void_p) if value is not None else None)
        self._lib.check(self._lib.rnl_registry_add(self._handle, c.byref(raw)))
        self._operators.append(_Operator(infer, plan, compute, raw))

    def bind(self, calls: Calls) -> Tuple[Any, List[Bound]]:
        """A registry of the C library's for one graph, and what has to live as long as that may call back."""
        handle, bound = c.c_void_p(), [Bound(one, calls) for one in list(self._operators)]
        self._lib.check(self._lib.rnl_registry_create(c.byref(handle)))
        try:
            for one in bound:
                raw = s.CustomOperator.from_buffer_copy(one.operator.raw)
                raw.user = one.key
                self._lib.check(self._lib.rnl_registry_add(handle, c.byref(raw)))
        except BaseException:
            self._lib.rnl_registry_release(handle)
            raise
        return handle, bound

    def __del__(self) -> None:
        if self._handle:
            self._lib.rnl_registry_release(self._handle)

    def __repr__(self) -> str:
        names = sorted({f"{one.raw.domain.decode()}.{one.raw.op_type.decode()}" for one in self._operators})
        return f"<runnel.Registry {', '.join(names)}>"
