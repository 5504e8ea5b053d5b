# SPDX-License-Identifier: Apache-2.0
"""Element types: ONNX's codes, numpy's dtypes, onnxruntime's names, and elements of less than a byte."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np


class ElementType(NamedTuple):
    """One type. `bits` of an element in the library's memory; numpy keeps those of 4 and 2 bits in a byte each."""

    code: int
    dtype: np.dtype
    type: str
    bits: int


def _row(code, dtype, text, bits=0):
    return ElementType(code, np.dtype(dtype), f"tensor({text})", bits or 8 * np.dtype(dtype).itemsize)


def _extra(code, name, text, bits=0):
    """A type that ml_dtypes may be too old to have."""
    return [_row(code, getattr(ml_dtypes, name), text, bits)] if hasattr(ml_dtypes, name) else []


_ROWS = [
    _row(1, np.float32, "float"), _row(2, np.uint8, "uint8"), _row(3, np.int8, "int8"), _row(4, np.uint16, "uint16"),
    _row(5, np.int16, "int16"), _row(6, np.int32, "int32"), _row(7, np.int64, "int64"), _row(9, np.bool_, "bool"),
    _row(10, np.float16, "float16"), _row(11, np.float64, "double"), _row(12, np.uint32, "uint32"),
    _row(13, np.uint64, "uint64"), _row(16, ml_dtypes.bfloat16, "bfloat16"),
    *_extra(17, "float8_e4m3fn", "float8e4m3fn"), *_extra(18, "float8_e4m3fnuz", "float8e4m3fnuz"),
    *_extra(19, "float8_e5m2", "float8e5m2"), *_extra(20, "float8_e5m2fnuz", "float8e5m2fnuz"),
    *_extra(21, "uint4", "uint4", 4), *_extra(22, "int4", "int4", 4), *_extra(23, "float4_e2m1fn", "float4e2m1", 4),
    *_extra(24, "float8_e8m0fnu", "float8e8m0"), *_extra(25, "uint2", "uint2", 2), *_extra(26, "int2", "int2", 2),
]
BY_CODE = {row.code: row for row in _ROWS}
BY_DTYPE = {row.dtype: row for row in _ROWS}


def type_text(code: int) -> str:
    """ "tensor(float)", as onnxruntime has it."""
    return BY_CODE[code].type if code in BY_CODE else "tensor(unknown)"


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` elements in the library's memory."""
    return (count * bits + 7) // 8


def pack(array: np.ndarray, bits: int) -> np.ndarray:
    """Elements of 4 or 2 bits as ONNX packs them: in order, the first in a byte's low bits."""
    per_byte = 8 // bits
    values = np.zeros(-(-array.size // per_byte) * per_byte, np.uint8)
    values[: array.size] = array.reshape(-1).view(np.uint8) & (2**bits - 1)
    return np.bitwise_or.reduce(values.reshape(-1, per_byte) << (np.arange(per_byte) * bits).astype(np.uint8), axis=1)


def unpack(data: np.ndarray, kind: ElementType, shape) -> np.ndarray:
    """The other way round, from bytes."""
    per_byte, mask = 8 // kind.bits, 2**kind.bits - 1
    values = (data[:, None] >> (np.arange(per_byte) * kind.bits).astype(np.uint8)) & mask
    values = np.ascontiguousarray(values.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].astype(np.uint8))
    return values.view(kind.dtype).reshape(shape)
