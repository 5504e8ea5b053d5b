# SPDX-License-Identifier: Apache-2.0
"""What a model's file says; no device."""

from __future__ import annotations

import ctypes as c
import dataclasses
import os
from typing import Any, Dict, List, Optional, Union

from . import _structs as s
from ._callbacks import Bound, Calls
from ._device import text
from ._errors import FailedPrecondition, InvalidArgument, Unimplemented
from ._library import library
from ._registry import Registry
from ._types import type_text

NO_RANK = c.c_size_t(-1).value


@dataclasses.dataclass(frozen=True)
class NodeArg:
    """An input or output. `shape`: sizes; a free dimension is its name, or None without one; None when the file gives no
    shape. `type`: as onnxruntime writes it, "tensor(float)"."""

    name: str
    shape: Union[None, List[Union[int, str, None]]]
    type: str


@dataclasses.dataclass(frozen=True)
class ModelMeta:
    """`opset` is the default domain's; `parameter_count` the elements of all weights."""

    producer_name: str
    producer_version: str
    graph_name: str
    ir_version: int
    opset: int
    node_count: int
    initializer_count: int
    parameter_count: int
    custom_metadata_map: Dict[str, str]


@dataclasses.dataclass(frozen=True)
class OperatorInfo:
    """An operator of a model: how many nodes, how many of these cannot run, and why the first one cannot ("")."""

    domain: str
    op_type: str
    node_count: int
    unsupported_count: int
    reason: str


@dataclasses.dataclass(frozen=True)
class OperatorSupport:
    """An operator that runnel has at versions `since` to `until` of its domain ("": ai.onnx). `types`: what its first
    input may be ("tensor(float)", …), empty when it has none."""

    domain: str
    op_type: str
    since: int
    until: int
    types: List[str]


def get_operators() -> List[OperatorSupport]:
    """All operators that runnel has, sorted by domain, name and version."""
    lib = library()
    rows = (s.OperatorSupport * lib.rnl_operator_list(None, 0))()
    lib.rnl_operator_list(rows, len(rows))
    return [OperatorSupport(text(row.domain), text(row.op_type), row.since, row.until,
                            [type_text(code) for code in range(32) if row.types >> code & 1]) for row in rows]


def _node_arg(row) -> NodeArg:
    shape = None
    if row.rank != NO_RANK:
        shape = [row.shape[i] if row.shape[i] >= 0 else (text(row.dim_names[i]) or None) for i in range(row.rank)]
    return NodeArg(text(row.name), shape, type_text(row.dtype))


class Graph:
    """A loaded file. The bytes it was loaded from live as long, and so do the callbacks of its registry.

    `calls` is held around each call into C that may call back, and `check` says how it ended."""

    def __init__(self, path_or_bytes: Any, registry: Optional[Registry] = None):
        self._lib, self.handle = library(), c.c_void_p()
        self.calls = Calls()
        self._bound: List[Bound] = []
        operators = c.c_void_p()
        if registry is not None:
            if not isinstance(registry, Registry):
                raise InvalidArgument(f"registry is a {type(registry).__name__}; give a runnel.Registry")
            operators, self._bound = registry.bind(self.calls)
        try:
            self._load(path_or_bytes, operators)
        finally:
            self._lib.rnl_registry_release(operators)
        self._describe()

    def _load(self, path_or_bytes: Any, operators: Any) -> None:
        if hasattr(path_or_bytes, "SerializeToString"):
            path_or_bytes = path_or_bytes.SerializeToString()
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            self._bytes = bytes(path_or_bytes)
            status = self._lib.rnl_graph_load_memory_with(self._bytes, len(self._bytes), operators,
                                                          c.byref(self.handle))
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            path = os.fsencode(path_or_bytes)
            if b"\0" in path:
                raise InvalidArgument("the path has a NUL in it")
            status = self._lib.rnl_graph_load_with(path, operators, c.byref(self.handle))
        else:
            raise InvalidArgument(f"the model is a {type(path_or_bytes).__name__}; give a path, bytes or a ModelProto")
        self._lib.check(status)

    @property
    def has_callbacks(self) -> bool:
        return bool(self._bound)

    def check(self, status: int) -> None:
        """Raises what a failed call left behind for this thread. What a callback raised is the cause of it; what is no
        error, such as KeyboardInterrupt, is raised itself."""
        if status == 0:
            return
        error = self._lib.error(status)
        cause = self.calls.cause(str(error))
        if cause is None:
            raise error
        if not isinstance(cause, Exception):
            raise cause
        raise error from cause

    def check_outside(self) -> None:
        if self.calls.is_inside():
            raise FailedPrecondition("a callback cannot use the session that it is called for")

    def _rows(self, function) -> list:
        count = c.c_size_t()
        rows = function(self.handle, c.byref(count))
        return [rows[i] for i in range(count.value)]

    def _describe(self) -> None:
        inputs, outputs = self._rows(self._lib.rnl_graph_inputs), self._rows(self._lib.rnl_graph_outputs)
        self.inputs, self.outputs = [_node_arg(row) for row in inputs], [_node_arg(row) for row in outputs]
        self.input_codes = {text(row.name): row.dtype for row in inputs}
        info = s.GraphInfo()
        self._lib.rnl_graph_get_info(self.handle, c.byref(info))
        own = {text(row.key): text(row.value) for row in self._rows(self._lib.rnl_graph_metadata)}
        values = {name: getattr(info, name) for name, _ in info._fields_}
        self.meta = ModelMeta(custom_metadata_map=own, **{
            name: text(value) if isinstance(value, (bytes, type(None))) else value for name, value in values.items()})

    def _check(self):
        if not self.handle:
            raise FailedPrecondition("the session was closed")
        rows, count = c.POINTER(s.OperatorInfo)(), c.c_size_t()
        status = self._lib.rnl_graph_check(self.handle, c.byref(rows), c.byref(count))
        return status, [rows[i] for i in range(count.value)]

    def check_supported(self) -> None:
        self._lib.check(self._check()[0])

    def operators(self) -> List[OperatorInfo]:
        status, rows = self._check()
        error = self._lib.error(status) if status else None
        if error and not isinstance(error, Unimplemented):
            raise error
        return [OperatorInfo(text(row.domain), text(row.op_type), row.node_count, row.unsupported_count,
                             text(row.reason)) for row in rows]

    def close(self) -> None:
        handle, self.handle = self.handle, c.c_void_p()
        self._lib.rnl_graph_release(handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()


def check_model(path_or_bytes: Any, *, registry: Optional[Registry] = None) -> List[OperatorInfo]:
    """Each operator of a model, sorted, and whether runnel, or the registry, can run its nodes. Needs no device.

    Raises NotFound, InvalidArgument or DataLoss where the file cannot be read or is not a sound model.
    """
    return Graph(path_or_bytes, registry).operators()
