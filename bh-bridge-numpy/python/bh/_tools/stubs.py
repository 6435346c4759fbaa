"""The type stubs of the package, found by looking at it: `python -m bh._tools.stubs DIRECTORY` writes `__init__.pyi` and those beside it.

Arrays, their attributes and operators have types, and so have the results of functions that always give an array; what
functions take is not narrowed further than their names.
"""

import inspect
import keyword
import sys
import types
from pathlib import Path

import numpy

import bh

from .._numpy.registry import FFT, FUNCTIONS, LINALG, METHODS

_HEAD = '''"""Made by `python -m bh._tools.stubs`; a test compares."""

from collections.abc import Iterator
from typing import Any

import numpy

from . import fft as fft, linalg as linalg, random as random

__version__: str
__array_api_version__: str

'''

_ATTRIBUTES = {
    "shape": "tuple[int, ...]", "strides": "tuple[int, ...]", "ndim": "int", "size": "int", "itemsize": "int", "nbytes": "int",
    "dtype": "numpy.dtype[Any]", "T": "ndarray", "mT": "ndarray", "real": "ndarray", "imag": "ndarray", "base": "ndarray | None",
    "device": "str", "data": "memoryview", "flags": "Any", "flat": "Any",
}  # fmt: skip
_SPECIAL = {
    "__init__": "(self, shape: Any, dtype: Any = ..., buffer: Any = ..., offset: int = ..., strides: Any = ..., order: Any = ...) -> None",
    "__class_getitem__": "(cls, item: Any, /) -> Any",
    "__len__": "(self) -> int", "__bool__": "(self) -> bool", "__int__": "(self) -> int", "__float__": "(self) -> float",
    "__complex__": "(self) -> complex", "__index__": "(self) -> int", "__hash__": "(self) -> int",
    "__iter__": "(self) -> Iterator[ndarray]", "__contains__": "(self, value: Any, /) -> bool",
    "__getitem__": "(self, key: Any, /) -> ndarray", "__setitem__": "(self, key: Any, value: Any, /) -> None",
    "__buffer__": "(self, flags: int, /) -> memoryview",
    "__array__": "(self, dtype: Any = ..., copy: bool | None = ...) -> numpy.ndarray[Any, Any]",
    "__eq__": "(self, other: Any, /) -> ndarray:  # type: ignore[override]",
    "__ne__": "(self, other: Any, /) -> ndarray:  # type: ignore[override]",
}  # fmt: skip
_BINARY = "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul".split()
_UNARY = "neg pos abs invert".split()
_COMPARISONS = "lt le gt ge".split()


def _signature(function, skip=0):
    """The parameters of a function, without types; whatever Python says where it has none."""
    try:
        parameters = list(inspect.signature(getattr(function, "_own", function)).parameters.values())[skip:]
    except (ValueError, TypeError):
        return "*args: Any, **kwargs: Any"
    parts, star, positional = [], False, False
    for parameter in parameters:
        if positional and parameter.kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        positional = parameter.kind is parameter.POSITIONAL_ONLY
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = " = ..." if parameter.default is not parameter.empty else ""
        parts.append(f"{prefix}{parameter.name}: Any{default}")
    return ", ".join([*parts, *(["/"] if positional else [])])


def _result(row):
    """The type of a function's results."""
    return "ndarray" if row is not None and row.array else "Any"


def _class_of_arrays():
    lines = ["class ndarray:"]
    lines += [f"    {name}: {kind}" for name, kind in _ATTRIBUTES.items()]
    for name, text in _SPECIAL.items():
        head, colon, remark = text.partition(":  #")
        lines.append(f"    def {name}{head}: ...{'  #' + remark if colon else ''}")
    for operator in _BINARY:
        for form in ("", "r", "i"):
            lines.append(f"    def __{form}{operator}__(self, other: Any, /) -> ndarray: ...")
    lines += [f"    def __{operator}__(self) -> ndarray: ..." for operator in _UNARY]
    lines += [f"    def __{operator}__(self, other: Any, /) -> ndarray: ..." for operator in _COMPARISONS]
    for name in sorted(dir(bh.ndarray)):
        value = getattr(bh.ndarray, name)
        if not name.startswith("_") and name not in _ATTRIBUTES and callable(value):
            parameters = _signature(value, 1)
            result = _result(METHODS.get(name) or FUNCTIONS.get(name))
            lines.append(f"    def {name}(self{', ' if parameters else ''}{parameters}) -> {result}: ...")
    return lines


def stubs():
    """The text of the stubs."""
    lines = _class_of_arrays()
    lines += ["", "class ufunc:", "    nin: int", "    nout: int", "    def __call__(self, *args: Any, **kwargs: Any) -> Any: ..."]
    for name in "reduce accumulate reduceat outer at".split():
        lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
    lines.append("")
    for name in sorted(vars(bh)):
        value = getattr(bh, name)
        if name.startswith("_") or keyword.iskeyword(name) or name in ("ndarray", "ufunc", "fft", "linalg", "random"):
            continue
        if isinstance(value, bh.ufunc):
            lines.append(f"{name}: ufunc")
        elif isinstance(value, (types.FunctionType, bh._native.Function)):
            lines.append(f"def {name}({_signature(value)}) -> {_result(FUNCTIONS.get(name))}: ...")
        elif isinstance(value, type) and issubclass(value, BaseException):
            bases = ("Error" if base is bh.Error else base.__name__ for base in value.__bases__)
            lines.append(f"class {name}({', '.join(bases)}): ...")
        elif not isinstance(value, types.ModuleType):
            lines.append(f"{name}: Any")
    lines += ["def __getattr__(name: str) -> Any: ...", ""]
    return _HEAD + "\n".join(lines)


_PART = '"""Made by `python -m bh._tools.stubs`; a test compares."""\n\nfrom typing import Any\n\nfrom . import ndarray\n\n'


def _generator():
    """The class whose methods draw numbers: those of NumPy's."""
    lines = ["class Generator:", "    bit_generator: Any", "    def __init__(self, bit_generator: Any) -> None: ..."]
    for name in sorted(dir(numpy.random.Generator)):
        if not name.startswith("_") and name != "bit_generator":
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
    return lines


def part(name):
    """The text of the stubs of `fft`, `linalg` or `random`."""
    module, original, rows = getattr(bh, name), getattr(numpy, name), {"fft": FFT, "linalg": LINALG, "random": {}}[name]
    lines = _generator() if name == "random" else []
    for function in sorted(original.__all__):
        value = getattr(module, function, None)
        if function == "default_rng":
            lines.append("def default_rng(seed: Any = ...) -> Generator: ...")
        elif isinstance(value, (types.FunctionType, bh._native.Function)):
            lines.append(f"def {function}({_signature(value)}) -> {_result(rows.get(function))}: ...")
        elif isinstance(value, type) and issubclass(value, BaseException):
            lines.append(f"class {function}({value.__mro__[1].__name__}): ...")
        elif function != "Generator" and not isinstance(value, types.ModuleType):
            lines.append(f"{function}: Any")
    head = _PART if name == "fft" else _PART.replace("from . import", "from .. import")
    return head + "\n".join([*lines, "def __getattr__(name: str) -> Any: ...", ""])


def files():
    """The stubs of the package by the names of their files."""
    return {"__init__.pyi": stubs(), "fft.pyi": part("fft")} | {f"{name}/__init__.pyi": part(name) for name in ("linalg", "random")}


if __name__ == "__main__":
    for name, text in files().items():
        Path(sys.argv[1], name).write_text(text)
