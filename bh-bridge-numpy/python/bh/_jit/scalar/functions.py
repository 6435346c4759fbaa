"""The meaning of functions of Python, `math`, `cmath` and NumPy in programs."""

import builtins
import cmath
import math

import numpy as np

from ..._array import subclassing
from ..._array.element_types import CODE
from ..._ufunc.ufunc import UFUNCS
from .ir import Const, Unsupported

# Functions of `math` that are a universal function of real numbers.
_MATH = {name: name for name in "sin cos tan sinh cosh tanh exp exp2 expm1 log2 log10 log1p sqrt cbrt fabs hypot copysign fmod".split()}
_MATH |= {name: name for name in "isnan isinf isfinite degrees radians gcd lcm".split()}
_MATH |= {f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()} | {"atan2": "arctan2", "nextafter": "nextafter"}
_CMATH = {name: name for name in "sin cos tan sinh cosh tanh exp log10 sqrt isnan isinf isfinite".split()}
_CMATH |= {f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()}
_TYPES = {int: "int", float: "float", bool: "truth"}


def of(value):
    """The writer of a call of a function of the program's: it gets the reader, operands and the line. None for others."""
    try:
        value = subclassing.originals.get(value, value)
        return _KNOWN.get(value) or _type(value) or _universal(value)
    except TypeError:
        return None


def _op(name, extra=None, count=1, fold=None):
    def call(reader, args, line):
        if len(args) != count:
            raise Unsupported(f"'{extra or name}' with {len(args)} arguments", line)
        return reader.operation(name, args, line, extra, fold)

    return call


def _type(value):
    if value in _TYPES:
        return _op(_TYPES[value], fold=value)
    if isinstance(value, type) and issubclass(value, np.generic) and np.dtype(value) in CODE:
        dtype = np.dtype(value)
        return _op("truth" if dtype == bool else "cast", dtype, fold=value)
    return None


def _universal(value):
    """A universal function of NumPy, or bh's of the same name."""
    name = getattr(value, "__name__", None)
    ufunc = vars(np).get(name)
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.signature or ufunc.__name__ not in UFUNCS or UFUNCS[ufunc.__name__] != value:
        return None
    return _op("function", ufunc.__name__, ufunc.nin, ufunc)


def _in_turn(name):
    """A function of any number of operands, as one of two at a time."""

    def call(reader, args, line):
        if len(args) == 1 and type(args[0]) is tuple:
            args = args[0]
        if len(args) < 2:
            raise Unsupported(f"'{name}' with {len(args)} arguments", line)
        result = args[0]
        for arg in args[1:]:
            result = reader.operation(name, (result, arg), line, None, getattr(builtins, name))
        return result

    return call


def _sum(reader, args, line):
    if not args or type(args[0]) is not tuple:
        raise Unsupported("'sum' of what is no tuple", line)
    result = args[1] if len(args) > 1 else Const(0)
    for arg in args[0]:
        result = reader.operation("add", (result, arg), line)
    return result


def _of_math(name, function):
    """A function of `math`: of floats, unless it is one of whole numbers."""
    ufunc = getattr(np, name)

    def call(reader, args, line):
        if name in ("gcd", "lcm"):
            return _op("int")(reader, (_op("function", name, 2, function)(reader, args, line),), line)
        args = tuple(reader.operation("float", (arg,), line, None, float) for arg in args)
        result = _op("function", name, ufunc.nin, function)(reader, args, line)
        return reader.operation("truth", (result,), line, None, bool) if name.startswith("is") else result

    return call


def _length(reader, args, line):
    if len(args) == 1 and type(args[0]) is tuple:
        return Const(len(args[0]))
    extent = getattr(getattr(args[0], "value", None), "shape", ()) if args else ()
    if not extent:
        raise Unsupported("'len' of a number", line)
    return Const(extent[0])


def _round(reader, args, line):
    if len(args) != 1:
        raise Unsupported("'round' to a number of digits", line)
    return reader.operation("rint", args, line, None, round)


def _complex(reader, args, line):
    if len(args) == 1:
        return reader.operation("to_complex", args, line, None, complex)
    return _op("complex", count=2, fold=complex)(reader, args, line)


def _divmod(reader, args, line):
    return _op("floor_divide", count=2)(reader, args, line), _op("remainder", count=2)(reader, args, line)


def _power(reader, args, line):
    """`math.pow`: of floats always."""
    base, exponent = (reader.operation("float", (arg,), line, None, float) for arg in args)
    return reader.operation("power", (base, exponent), line, None, math.pow)


def _log(reader, args, line):
    args = [reader.operation("float", (arg,), line, None, float) for arg in args]
    logarithms = [reader.operation("function", (arg,), line, "log", math.log) for arg in args]
    if not 1 <= len(args) <= 2:
        raise Unsupported(f"'log' with {len(args)} arguments", line)
    return logarithms[0] if len(args) == 1 else reader.operation("divide", logarithms, line)


def _complex_log(reader, args, line):
    logarithms = [reader.operation("complex_function", (arg,), line, "log", cmath.log) for arg in args]
    return logarithms[0] if len(args) == 1 else reader.operation("divide", logarithms, line)


def _phase(reader, args, line):
    return reader.operation("function", [reader.operation(part, args, line) for part in ("imag", "real")], line, "arctan2")


def _polar(reader, args, line):
    return reader.operation("absolute", args, line), _phase(reader, args, line)


def _rect(reader, args, line):
    parts = [reader.operation("multiply", (args[0], reader.operation("function", args[1:], line, name)), line) for name in ("cos", "sin")]
    return reader.operation("complex", parts, line)


def _where(reader, args, line):
    if len(args) != 3:
        raise Unsupported("'where' with a condition alone", line)
    return reader.choose(reader.truth(args[0], line), args[1], args[2], line)


def _clip(reader, args, line):
    if len(args) != 3:
        raise Unsupported(f"'clip' with {len(args)} arguments", line)
    large = reader.operation("function", args[:2], line, "maximum")
    return reader.operation("function", (large, args[2]), line, "minimum")


def _known():
    known = {abs: _op("absolute", fold=abs), min: _in_turn("min"), max: _in_turn("max"), sum: _sum, len: _length, round: _round}
    known |= {complex: _complex, divmod: _divmod, pow: _op("power", count=2, fold=pow), math.pow: _power, math.log: _log}
    for name, mine in _MATH.items():
        if (function := getattr(math, name, None)) is not None:
            known[function] = _of_math(mine, function)
    for name in "floor ceil trunc".split():
        known[getattr(math, name)] = _op(name, fold=getattr(math, name))
    for name, mine in _CMATH.items():
        known[getattr(cmath, name)] = _op("complex_function", mine, 1, getattr(cmath, name))
    known |= {cmath.log: _complex_log, cmath.phase: _phase, cmath.polar: _polar, cmath.rect: _rect}
    known |= {np.where: _where, np.clip: _clip, np.real: _op("real"), np.imag: _op("imag")}
    return known


_KNOWN = _known()
