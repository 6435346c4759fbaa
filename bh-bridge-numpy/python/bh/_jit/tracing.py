"""Traced functions: scalar functions of Python that become array operations as they run."""

import math
import types

import numpy as np

from .._functions.search import where
from .._ufunc.ufunc import UFUNCS

# Functions of `math` with the universal functions that do the same.
_MATH = {
    name: UFUNCS[mine]
    for name, mine in {
        **{n: n for n in "sin cos tan sinh cosh tanh exp exp2 expm1 log2 log10 log1p sqrt cbrt floor ceil trunc fabs hypot".split()},
        **{n: n for n in "copysign isnan isinf isfinite degrees radians fmod pow".split() if n in UFUNCS},
        **{f"a{n}": f"arc{n}" for n in "sin cos tan sinh cosh tanh tan2".split()},
        "pow": "power",
    }.items()
}


def _log(x, base=None):
    result = UFUNCS["log"](x)
    return result if base is None else result / math.log(base)


_MATH["log"] = _log


class Scalar:
    """Stands for one element while a function is traced: arithmetic, comparisons and mathematics are recorded, all else,
    such as a branch on it, ends the trace."""

    __slots__ = ("array",)
    __hash__ = None

    def __init__(self, array):
        self.array = array

    def __bool__(self):
        raise Untraceable("a branch on an element")

    def __format__(self, form):
        raise Untraceable("an element as text")

    def __repr__(self):
        raise Untraceable("an element as text")

    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        mine = UFUNCS.get(function.__name__)
        if method != "__call__" or kwargs or mine is None:
            raise Untraceable(function.__name__)
        return _recorded(mine)(*inputs)


class Untraceable(Exception):
    """Raised where a function does what cannot be traced."""


def plain(value):
    """The function's argument for an element's symbol."""
    return value.array if type(value) is Scalar else value


def _recorded(function):
    """The function on what stands for elements."""
    return lambda *args: Scalar(function(*map(plain, args)))


def _operators():
    names = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"}
    names |= {"mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
    names |= {"lshift": "left_shift", "rshift": "right_shift"}
    for operator, name in names.items():
        work = _recorded(UFUNCS[name])
        setattr(Scalar, f"__{operator}__", lambda self, other, work=work: work(self, other))
        setattr(Scalar, f"__r{operator}__", lambda self, other, work=work: work(other, self))
    comparisons = {"lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"}
    for operator, name in comparisons.items():
        work = _recorded(UFUNCS[name])
        setattr(Scalar, f"__{operator}__", lambda self, other, work=work: work(self, other))
    for operator, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(Scalar, f"__{operator}__", lambda self, work=_recorded(UFUNCS[name]): work(self))


_operators()


class _Namespace:
    """A module whose functions are recorded on what stands for elements."""

    def __init__(self, functions, original):
        self.__dict__.update(_functions=functions, _original=original)

    def __getattr__(self, name):
        found = self._functions(name)
        return getattr(self._original, name) if found is None else found


def _traced(value):
    """The value of a global of the traced function while it runs."""
    import bh

    if value is math:
        return _Namespace(lambda name: _recorded(_MATH[name]) if name in _MATH else None, math)
    if value is np or value is bh:
        special = {"where": _recorded(where)}
        return _Namespace(lambda name: special.get(name) or (_recorded(UFUNCS[name]) if name in UFUNCS else None), value)
    if isinstance(value, types.BuiltinFunctionType) and getattr(math, value.__name__, None) is value:
        return _recorded(_MATH[value.__name__]) if value.__name__ in _MATH else value
    if value is where or value is np.where:
        return _recorded(where)
    if isinstance(value, (np.ufunc, type(UFUNCS["add"]))) and value.__name__ in UFUNCS:
        return _recorded(UFUNCS[value.__name__])
    return value


def traced(function):
    """A function of Python that may be called with what stands for elements."""
    if not isinstance(function, types.FunctionType):
        raise Untraceable("no function written in Python")
    cells = None
    if function.__closure__:
        cells = tuple(types.CellType(_traced(cell.cell_contents)) for cell in function.__closure__)
    scope = {name: _traced(value) for name, value in function.__globals__.items()}
    scope["__builtins__"] = function.__globals__.get("__builtins__", __builtins__)
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
