"""The operations of programs: the types in which they work, and how they are written on arrays."""

from dataclasses import dataclass
from typing import Callable

import numpy as np

from .ir import Const, Mistyped, Unsupported
from .kinds import BOOL, concrete, is_weak, join, letter, numbers, resolve


@dataclass(slots=True)
class Operation:
    """`rule` gives from the types of operands, the operands and what else is known the types in which the operation works and its
    result's; `text` is the operation on arrays. `scalar`: the same on Python's numbers, where these cannot fail."""

    rule: Callable
    text: Callable
    scalar: str | None = None


def _numbers(name, kinds, args, extra):
    """A function of numbers: truth values are whole ones."""
    return resolve(getattr(np, name), numbers(kinds))


def _bits(name, kinds, args, extra):
    return resolve(getattr(np, name), kinds)


def _comparison(name, kinds, args, extra):
    if name not in ("equal", "not_equal") and "c" in map(letter, kinds):
        raise Mistyped("complex numbers have no order")
    common = concrete(join(*kinds))
    if common.kind in "iu" and not all(_fits(arg, common) for arg in args):
        common = np.dtype(np.int64)
        if np.uint64 in kinds or not all(_fits(arg, common) for arg in args):
            raise Unsupported("comparisons of whole numbers beyond 64 bits")
    return (common, common), bool if all(map(is_weak, kinds)) else BOOL


def _fits(arg, dtype):
    """May an operand be an element of this type of whole numbers, unless it is no constant?"""
    return type(arg) is not Const or np.iinfo(dtype).min <= arg.value <= np.iinfo(dtype).max


def _division(name, kinds, args, extra):
    if "c" in map(letter, kinds):
        raise Mistyped("complex numbers have no whole quotients")
    return _numbers(name, kinds, args, extra)


def _power(name, kinds, args, extra):
    kinds = numbers(kinds)
    if all(letter(kind) in "iu" for kind in kinds) and letter(kinds[1]) == "i":
        exponent = args[1]
        if type(exponent) is not Const:
            raise Unsupported("whole numbers to powers that may be negative: make one of them a float")
        if exponent.value < 0:
            kinds = [float, float]
    return resolve(np.power, kinds)


def _joined(name, kinds, args, extra):
    """A choice of values: their common type."""
    common = kinds[-1]
    for kind in kinds[-2::-1] if name != "select" else kinds[1:]:
        common = join(common, kind)
    dtype = concrete(common)
    return (dtype,) * len(kinds) if name != "select" else (BOOL, dtype, dtype), common


def _order(name, kinds, args, extra):
    if "c" in map(letter, kinds):
        raise Mistyped("complex numbers have no order")
    return _joined(name, kinds, args, extra)


def _function(name, kinds, args, extra):
    """A universal function; those that give floats of whole numbers give double precision."""
    ufunc, kinds = getattr(np, extra), numbers(kinds)
    if all(letter(kind) in "iu" for kind in kinds):
        try:
            floats = ufunc.resolve_dtypes((*kinds, None))[-1].kind == "f"
        except TypeError:
            floats = False
        kinds = [float] * len(kinds) if floats else kinds
    return resolve(ufunc, kinds)


def _complex_function(name, kinds, args, extra):
    kinds = [kind if letter(kind) == "c" else complex if is_weak(kind) or letter(kind) != "f" else np.result_type(kind, 1j) for kind in kinds]
    return resolve(getattr(np, extra), kinds)


def _part(name, kinds, args, extra):
    (kind,) = numbers(kinds)
    if letter(kind) != "c":
        return (concrete(kind),), kind
    return (concrete(kind),), float if is_weak(kind) else np.empty(0, kind).real.dtype


def _made_complex(name, kinds, args, extra):
    if "c" in map(letter, kinds):
        raise Unsupported("'complex' of complex parts")
    return (np.dtype(float),) * 2, complex


def _to(kind, refuses=""):
    def rule(name, kinds, args, extra):
        if letter(kinds[0]) in refuses:
            raise Mistyped(f"'{name}' of complex numbers")
        return (concrete(kinds[0]),), extra or kind

    return rule


def _cast(name, kinds, args, extra):
    if letter(kinds[0]) == "c" and letter(extra) != "c":
        raise Unsupported(f"'{extra}' of complex numbers")
    return (concrete(kinds[0]),), extra


def _load(name, kinds, args, extra):
    if any(letter(kind) not in "iu" for kind in kinds):
        raise Unsupported("subscripts have to be whole numbers")
    return (np.dtype(np.int64),) * len(kinds), extra.dtype


def _call(name):
    return lambda operands, kinds, extra: f"{name}({', '.join(operands)})"


def _whole(name):
    return lambda operands, kinds, extra: f"rounded({name!r}, {operands[0]})"


def _table():
    table = {}
    for name in "add subtract multiply".split():
        table[name] = Operation(_numbers, _call(name), {"add": "+", "subtract": "-", "multiply": "*"}[name])
    for name in "absolute divide negative positive invert left_shift right_shift".split():
        table[name] = Operation(_numbers, _call(name), "-" if name == "negative" else None)
    for name in "floor_divide remainder".split():
        table[name] = Operation(_division, _call(name), {"floor_divide": "//", "remainder": "%"}[name])
    for name in "bitwise_and bitwise_or bitwise_xor".split():
        table[name] = Operation(_bits, _call(name))
    for name, sign in {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!=", "greater": ">", "greater_equal": ">="}.items():
        table[name] = Operation(_comparison, _call(name), sign)
    table["power"] = Operation(_power, _call("power"))
    table["copy"] = Operation(lambda name, kinds, args, extra: ((concrete(kinds[0]),), kinds[0]), lambda operands, kinds, extra: operands[0])
    table["truth"] = Operation(_to(bool), lambda operands, kinds, extra: operands[0] if kinds[0] == BOOL else f"not_equal({operands[0]}, 0)")
    table["not"] = Operation(_to(bool), lambda operands, kinds, extra: f"inverse({operands[0]})" if kinds[0] == BOOL else f"equal({operands[0]}, 0)")
    table["select"] = Operation(_joined, _call("where"))
    table["both"] = Operation(_joined, _call("both"))
    table["either"] = Operation(_joined, _call("either"))
    table["min"] = Operation(_order, lambda operands, kinds, extra: "where(less({1}, {0}), {1}, {0})".format(*operands))
    table["max"] = Operation(_order, lambda operands, kinds, extra: "where(greater({1}, {0}), {1}, {0})".format(*operands))
    table["int"] = Operation(_to(int, "c"), lambda operands, kinds, extra: f"cast({operands[0]}, int64)")
    table["float"] = Operation(_to(float, "c"), lambda operands, kinds, extra: f"cast({operands[0]}, float64)")
    table["to_complex"] = Operation(_to(complex), lambda operands, kinds, extra: f"cast({operands[0]}, complex128)")
    table["complex"] = Operation(_made_complex, _call("complex_of"))
    table["cast"] = Operation(_cast, lambda operands, kinds, extra: f"cast({operands[0]}, {extra.name})")
    for name in "floor ceil trunc rint".split():
        table[name] = Operation(_to(int, "c"), _whole(name))
    table["real"] = Operation(_part, lambda operands, kinds, extra: f"part({operands[0]}, 'real')" if kinds[0].kind == "c" else operands[0])
    table["imag"] = Operation(_part, lambda operands, kinds, extra: f"part({operands[0]}, 'imag')" if kinds[0].kind == "c" else f"cast(0, {kinds[0].name})")
    table["function"] = Operation(_function, lambda operands, kinds, extra: _call(extra)(operands, kinds, None))
    table["complex_function"] = Operation(_complex_function, table["function"].text)
    table["iteration"] = Operation(lambda name, kinds, args, extra: ((), int), lambda operands, kinds, extra: "iteration")
    table["load"] = Operation(_load, None)
    return table


OPERATIONS = _table()
