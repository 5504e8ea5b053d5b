# SPDX-License-Identifier: Apache-2.0
"""What the callbacks of an operator of one's own are given, and what they answer."""

from __future__ import annotations

import dataclasses
import math
import operator
import os
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._device import DeviceInfo
from ._errors import FailedPrecondition


def indices(value: Union[int, Iterable[int]]) -> Tuple[int, ...]:
    """As numpy takes a shape: a whole number, or several."""
    if isinstance(value, Iterable):
        return tuple(operator.index(item) for item in value)
    return (operator.index(value),)


class TensorSpec:
    """A tensor's type and shape: `TensorSpec(np.float32, (2, 3))`. What `infer` answers for each output, and what is known
    of each input."""

    __slots__ = ("dtype", "shape", "_known")

    def __init__(self, dtype: Any, shape: Union[int, Sequence[int]]) -> None:
        self.dtype: np.dtype = np.dtype(dtype)
        self.shape: Tuple[int, ...] = indices(shape)
        self._known: Any = None  # contents, or what reads them while the callback runs

    @property
    def value(self) -> Optional[np.ndarray]:
        """An input's contents where they are known while planning, read-only; else None. Read them in the callback: None
        behind it."""
        if callable(self._known):
            self._known = self._known()
        return self._known

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"TensorSpec({self.dtype}, {self.shape})"


class Node:
    """The node that a callback is called for, at known shapes. `version` is that of its domain, as the model imports it;
    `inputs` has None for an optional one that is left out; `outputs` are there for `plan` and `compute`, what `infer`
    answered; `device`, for `plan`, is the one that is planned for."""

    __slots__ = ("domain", "op_type", "name", "version", "inputs", "outputs", "output_count", "device", "_attributes",
                 "_read")

    def __init__(self, domain: str, op_type: str, name: str, version: int, inputs: Tuple[Optional[TensorSpec], ...],
                 outputs: Tuple[TensorSpec, ...], output_count: int, device: Optional[DeviceInfo],
                 read: Callable[[], Dict[str, Any]]) -> None:
        self.domain, self.op_type, self.name, self.version = domain, op_type, name, version
        self.inputs, self.outputs, self.output_count, self.device = inputs, outputs, output_count, device
        self._attributes: Optional[Dict[str, Any]] = None
        self._read: Optional[Callable[[], Dict[str, Any]]] = read

    @property
    def attributes(self) -> Dict[str, Any]:
        """The node's attributes by name: int, float, str, lists of these, and arrays. Read them in the callback."""
        if self._attributes is None:
            if self._read is None:
                raise FailedPrecondition("a node's attributes are read while its callback runs")
            self._attributes = self._read()
        return self._attributes

    def _end(self) -> None:
        """What is borrowed is gone from here on."""
        self._read = None
        for spec in self.inputs + self.outputs:
            if spec is not None and callable(spec._known):
                spec._known = None

    def __repr__(self) -> str:
        return f"<runnel.Node {self.domain}.{self.op_type} {self.name!r}>"


class Scratch:
    """Device memory of so many bytes for one node, between its launches: undefined before the first. Put one into the
    arguments of each launch that uses it."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = operator.index(nbytes)

    def __repr__(self) -> str:
        return f"Scratch({self.nbytes})"


Arg = Union[TensorSpec, Scratch, np.generic, np.ndarray, None]


@dataclasses.dataclass
class Launch:
    """One launch of a kernel of OpenCL C: what `plan` answers, or a list of them, which run in that order.

    `args`: what the kernel takes, in its order. For one of the node's inputs or outputs (`node.inputs[0]`) or a Scratch
    the kernel has two arguments, a global pointer and a `long`, the element of it at which the tensor begins (of a Scratch
    the byte); for an input that is left out, None, a NULL pointer and 0. For a value it has one: a numpy scalar, or an
    array of 2, 3, 4, 8 or 16 for a vector. `global_size`: how many work-items, in one to three dimensions; rounded up to
    whole work-groups of `local_size`, so the kernel guards. None: a size that the kernel allows.

    The kernel is in `source`, or in the file `path`. `defines` become #define lines, None one without a value;
    `include_folders` are where #include looks; `source_name` is what messages call a source. `log` is called with all that
    the compiler says, if it says something. `flops` and `bytes` are for profiles; bytes 0: each tensor once.
    """

    kernel: str
    args: Sequence[Arg]
    global_size: Union[int, Sequence[int]]
    local_size: Union[None, int, Sequence[int]] = None
    source: Optional[str] = None
    path: Union[None, str, "os.PathLike[str]"] = None
    defines: Mapping[str, Union[None, str, int, float]] = dataclasses.field(default_factory=dict)
    build_options: Optional[str] = None
    include_folders: Sequence[Union[str, "os.PathLike[str]"]] = ()
    source_name: Optional[str] = None
    log: Optional[Callable[[str], None]] = None
    flops: int = 0
    bytes: int = 0
