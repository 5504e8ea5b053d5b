# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out of rnl_tensor."""

from __future__ import annotations

import ctypes as c
import mmap
import os
import weakref
from typing import Any, Tuple

import numpy as np

from . import _structs as s
from ._errors import InvalidArgument, Unimplemented
from ._types import BY_CODE, BY_DTYPE

_byte_bounds = getattr(np, "byte_bounds", None) or np.lib.array_utils.byte_bounds  # until, and from numpy 2


def _from_dlpack(name: str, value: Any) -> np.ndarray:
    try:
        return np.from_dlpack(value)
    except Exception as error:
        raise InvalidArgument(f"input '{name}' ({type(value).__name__}) does not lend its memory by DLPack: {error}; "
                              "move it to the CPU, or make it a numpy array") from error


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def hold(array: np.ndarray) -> Any:
    """While what this returns lives, numpy refuses to resize the array whose memory it is, also with refcheck=False."""
    return weakref.ref(_owner(array))


def _out_of_file(name: str, array: np.ndarray) -> np.ndarray:
    """A copy of what lies in a mapped file. The kernel reads it, and says so when the file has become shorter; whoever
    reads the memory himself ends with SIGBUS."""
    low, high = _byte_bounds(array)
    left = memoryview((c.c_ubyte * (high - low)).from_address(low))
    copy = os.memfd_create(f"runnel {name}")
    try:
        while left:
            left = left[os.write(copy, left[:1 << 30]):]
        memory = mmap.mmap(copy, high - low)
    except OSError as error:
        raise InvalidArgument(f"input '{name}' lies in a file that cannot be read any more: {error}") from error
    finally:
        os.close(copy)
    return np.ndarray(array.shape, array.dtype, memory, array.ctypes.data - low, array.strides)


def _check_range(array: np.ndarray, limits: Any) -> None:
    """Before version 2 numpy wraps around."""
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise OverflowError(f"{int(array.min())} to {int(array.max())} do not fit {limits.dtype}")


def as_array(name: str, value: Any, code: int) -> np.ndarray:
    """A dense array in the machine's byte order, on the caller's memory where it is one already and in no file.

    Numbers and lists, which have no type, get the input's; whatever has a type keeps it, and the library compares.
    """
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        value = _from_dlpack(name, value)
    elif not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "__array__") and code in BY_CODE:
        try:
            untyped, kind = np.asarray(value), BY_CODE[code].dtype
            if untyped.dtype.kind not in "biuf":
                raise TypeError(f"{value!r:.60}")
            if kind.kind in "iu" and untyped.dtype.kind in "iu":
                _check_range(untyped, np.iinfo(kind))
            value = untyped if untyped.dtype.kind == "f" and kind.kind in "iub" and untyped.size else np.asarray(value, kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"input '{name}' is no array of numbers: {error}") from error
    array = np.asarray(value)
    if isinstance(_owner(array).base, mmap.mmap) and array.size:
        array = _out_of_file(name, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in BY_DTYPE:
        raise InvalidArgument(f"input '{name}' has numpy type {array.dtype}, which no tensor has")
    if array.ndim > s.MAX_RANK:
        raise InvalidArgument(f"input '{name}' has {array.ndim} dimensions; at most {s.MAX_RANK} are possible")
    array = np.asarray(array, order="C")
    return array.view()  # a shape of its own: the caller's may be changed meanwhile


def fill(slot: "s.Tensor", name: str, array: np.ndarray) -> None:
    """Describes an array, which must be kept alive, to the library."""
    slot.name, slot.dtype, slot.rank = name.encode(), BY_DTYPE[array.dtype].code, array.ndim
    slot.shape[: array.ndim] = array.shape
    slot.data, slot.size_bytes = array.ctypes.data, array.nbytes


class _Lent:
    """Memory of the library's that belongs to arrays from now on."""

    def __init__(self, lib, address: int, size: int):
        self._release = lib.rnl_output_release
        self._address = address
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}

    def __del__(self):
        self._release(self._address)


def take(lib, session, slot: "s.Tensor") -> np.ndarray:
    """An output as an array on the memory that the session lent for it, which is the array's from now on."""
    kind, shape = _described(slot)
    size = int(np.prod(shape, dtype=np.int64)) * kind.dtype.itemsize
    address = lib.rnl_session_take_output(session, c.byref(slot))
    if not address or not size:
        lib.rnl_output_release(address)
        return np.empty(shape, kind.dtype)
    return np.asarray(_Lent(lib, address, size)).view(kind.dtype).reshape(shape)


def own(lib, slot: "s.Tensor") -> np.ndarray:
    """An output as an array on memory that was the caller's from the start."""
    kind, shape = _described(slot)
    size = int(np.prod(shape, dtype=np.int64)) * kind.dtype.itemsize
    if not slot.data or not size:
        lib.rnl_output_release(slot.data)
        return np.empty(shape, kind.dtype)
    return np.asarray(_Lent(lib, slot.data, size)).view(kind.dtype).reshape(shape)


def _described(slot: "s.Tensor") -> Tuple[Any, Tuple[int, ...]]:
    if slot.dtype not in BY_CODE:
        raise Unimplemented(f"output '{slot.name.decode()}' has type {slot.dtype}, which ml_dtypes here does not know")
    return BY_CODE[slot.dtype], tuple(slot.shape[: slot.rank])
