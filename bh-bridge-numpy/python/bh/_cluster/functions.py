"""Functions on their way to other ranks: those of modules by name, those of the program as they are.

The other ranks have no program of their own, and no arrays of bh's: there, and equally on the first rank, the package is NumPy
with `rank` and `ranks`.
"""

import io
import marshal
import pickle
import sys
import types

import numpy as np

from .._numpy import hidden

_PACKAGE = __package__.partition(".")[0]


class Stand:
    """Stands for the package in functions that are carried."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks = lambda: rank, lambda: ranks

    def __getattr__(self, name):
        return getattr(np, name)


class _Packer(pickle.Pickler):
    def __init__(self, stream, carry_array):
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._carry_array = carry_array

    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return _module, (value.__name__,)
        if isinstance(value, types.FunctionType) and _is_of_program(value):
            parts = (marshal.dumps(value.__code__), value.__name__)
            state = (_globals_of(value), value.__defaults__, value.__kwdefaults__, _cells_of(value))
            return _empty, parts, state, None, None, _fill
        if type(value).__module__.partition(".")[0] == _PACKAGE and type(value).__name__ == "ndarray":
            return self._carry_array(value)
        return NotImplemented


def _refuse_array(array):
    raise TypeError("a function for blocks uses an array of bh's: pass it as an argument, or convert it to NumPy's")


def pack(function, carry_array=_refuse_array):
    """A function as bytes. `carry_array` says how an array of bh's is pickled."""
    stream = io.BytesIO()
    _Packer(stream, carry_array).dump(function)
    return stream.getvalue()


def unpack(data, stand):
    """The function of some bytes, in which `stand` is the package."""
    return _Unpacker(io.BytesIO(data), stand).load()


class _Unpacker(pickle.Unpickler):
    def __init__(self, stream, stand):
        super().__init__(stream)
        self._stand = stand

    def find_class(self, module, name):
        if (module, name) == (__name__, "_module"):
            return lambda other: self._stand if other == _PACKAGE else _module(other)
        if module.partition(".")[0] == _PACKAGE and module in sys.modules:
            # Not imported: on ranks that serve, which have all modules, another thread is still about to import the package.
            return getattr(sys.modules[module], name)
        return super().find_class(module, name)


def _is_of_program(function):
    """Is a function one that other ranks cannot import, or one that uses this package?"""
    module = sys.modules.get(function.__module__)
    found = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    uses = any(isinstance(value, types.ModuleType) and value.__name__ == _PACKAGE for value in _globals_of(function).values())
    return function.__module__ == "__main__" or found is not function or uses


def _names_of(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_of(constant)
    return names


def _globals_of(function):
    names = _names_of(function.__code__)
    return {name: value for name, value in function.__globals__.items() if name in names and not name.startswith(hidden.PREFIX)}


def _cells_of(function):
    return [cell.cell_contents for cell in function.__closure__ or ()]


def _module(name):
    import importlib

    return importlib.import_module(name)


def _empty(code, name):
    code = marshal.loads(code)
    cells = tuple(types.CellType() for _ in code.co_freevars)
    return types.FunctionType(code, {"__builtins__": __builtins__, "__name__": "__main__"}, name, None, cells)


def _fill(function, state):
    names, defaults, named, cells = state
    function.__globals__.update(names)
    function.__globals__.update(hidden.meaning_nothing(_names_of(function.__code__)))
    function.__defaults__, function.__kwdefaults__ = defaults, named
    for cell, value in zip(function.__closure__ or (), cells):
        cell.cell_contents = value
