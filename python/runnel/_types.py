# SPDX-License-Identifier: Apache-2.0
"""Element types: ONNX's codes, numpy's dtypes, onnxruntime's names. Elements of 4 and 2 bits take a byte each."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np


class ElementType(NamedTuple):
    code: int
    dtype: np.dtype
    type: str


def _row(code, dtype, text):
    return ElementType(code, np.dtype(dtype), f"tensor({text})")


def _extra(code, name, text):
    """A type that ml_dtypes may be too old to have."""
    return [_row(code, getattr(ml_dtypes, name), text)] if hasattr(ml_dtypes, name) else []


_ROWS = [
    _row(1, np.float32, "float"), _row(2, np.uint8, "uint8"), _row(3, np.int8, "int8"), _row(4, np.uint16, "uint16"),
    _row(5, np.int16, "int16"), _row(6, np.int32, "int32"), _row(7, np.int64, "int64"), _row(9, np.bool_, "bool"),
    _row(10, np.float16, "float16"), _row(11, np.float64, "double"), _row(12, np.uint32, "uint32"),
    _row(13, np.uint64, "uint64"), _row(16, ml_dtypes.bfloat16, "bfloat16"),
    *_extra(17, "float8_e4m3fn", "float8e4m3fn"), *_extra(18, "float8_e4m3fnuz", "float8e4m3fnuz"),
    *_extra(19, "float8_e5m2", "float8e5m2"), *_extra(20, "float8_e5m2fnuz", "float8e5m2fnuz"),
    *_extra(21, "uint4", "uint4"), *_extra(22, "int4", "int4"), *_extra(23, "float4_e2m1fn", "float4e2m1"),
    *_extra(24, "float8_e8m0fnu", "float8e8m0"), *_extra(25, "uint2", "uint2"), *_extra(26, "int2", "int2"),
]
BY_CODE = {row.code: row for row in _ROWS}
BY_DTYPE = {row.dtype: row for row in _ROWS}


def type_text(code: int) -> str:
    """ "tensor(float)", as onnxruntime has it."""
    return BY_CODE[code].type if code in BY_CODE else "tensor(unknown)"
