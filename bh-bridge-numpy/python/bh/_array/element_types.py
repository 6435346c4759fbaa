"""The element types of bh, and what NumPy's objects say about them."""

import numpy as np

NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
DTYPES = tuple(np.dtype(name) for name in NAMES)
CODE = {dtype: code for code, dtype in enumerate(DTYPES)}
BOOL, INT64, UINT64, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = (NAMES.index(n) for n in (
    "bool", "int64", "uint64", "float32", "float64", "complex64", "complex128"))  # fmt: skip

# Arrays of more dimensions are NumPy's.
MOST_DIMENSIONS = 16

# Codes of Python's own numbers, whose type gives way to that of arrays.
WEAK = {int: 13, float: 14, complex: 15}
WEAK_TYPES = {13: int, 14: float, 15: complex}


# Codes by what callers write for types, as NumPy takes time to look them up.
_CODE_OF = {bool: BOOL, int: INT64, float: FLOAT64, complex: COMPLEX128} | {dtype.type: code for dtype, code in CODE.items()}


def code_of(dtype):
    """The code of a dtype (or what NumPy makes one of); None if bh lacks it, as it does those with metadata."""
    code = _CODE_OF.get(dtype) if type(dtype) is type else None
    if code is not None:
        return code
    named = np.dtype(dtype)
    return CODE.get(named) if named.metadata is None else None


def is_complex(code):
    """Is it a complex type?"""
    return code >= COMPLEX64


def is_real(code):
    """Is it a type of numbers, or of truth values, that are not complex?"""
    return code < COMPLEX64


def real_code(code):
    """The real type of the precision of this one."""
    return {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(code, code)


def complex_code(code):
    """The complex type of the precision of this one."""
    return {FLOAT32: COMPLEX64, FLOAT64: COMPLEX128}.get(code, code)


def is_inexact(code):
    """Is it a floating-point or complex type?"""
    return code >= FLOAT32


def is_integer(code):
    """Is it an integer type (bool excluded)?"""
    return BOOL < code < FLOAT32
