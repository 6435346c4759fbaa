"""Symbols that replace numbers while a function is traced by `bh.jit`, and the operations that are refused meanwhile."""

import operator
import threading

import numpy as np

from .. import _native
from .._array.element_types import code_of


class _Here(threading.local):
    """Does this thread trace a function, and whose numbers are those of the trace? The stretches that it tapes and the functions that it runs for many
    members, the innermost last, and functions with derivatives of their own that it calls there."""

    tracing = False
    rest = None
    # Ends the trace, so that the rest of the function runs as usual; None if there is no trace, or if it has traced numbers.
    give_up = None
    tapings = ()
    customs = ()

    @property
    def records(self):
        """Is everything recorded, so that no values are looked at?"""
        return self.tracing or bool(self.tapings)

    @property
    def members(self):
        """The innermost `vmap` that runs here; None if there is none."""
        return next((taped for taped in reversed(self.tapings) if not taped.differentiates), None)


here = _Here()


def refuse_in_trace(what):
    """Fails where later calls of a traced function would not do the same."""
    if here.tracing:
        raise _native.Error(f"a traced function {what}, which its later calls would not do")


def check_number(name, value):
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"the traced argument {name} has to be a real number, not {value!r}")
    if isinstance(value, (int, np.integer)) and int(float(value)) != value:
        raise OverflowError(f"the traced argument {name} is a whole number beyond 2**53")


class Symbol:
    """Stands for a number while a function is traced."""

    __slots__ = ("number", "mark", "rest")
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, number, rest, text):
        check_number("or a number made of one", number)
        self.number, self.rest = number, rest
        self.mark = rest.add(text)

    def check(self, rest=None):
        """Fails where it belongs to another trace than this one, or than the one that runs here."""
        if self.rest is not (rest or here.rest):
            raise TypeError("a traced number is used outside of the call that it belongs to: each call has its own")

    @property
    def value(self):
        self.check()
        return float(self.number)

    @property
    def is_whole(self):
        return isinstance(self.number, (int, np.integer))

    @property
    def code(self):
        """The code of its type beside arrays: that of Python's numbers gives way."""
        if isinstance(self.number, np.generic):
            return code_of(self.number.dtype)
        return 13 if type(self.number) is int else 14

    def _refuse(self, *_, **__):
        self.check()
        raise TypeError("the value of a traced number is not known while the function is traced: use it in arithmetic only")

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __iter__ = __format__ = __str__ = __array__ = _refuse


def _arithmetic(sign, function):
    text = f"{{0}} {sign} {{1}}"

    def of(left, right):
        rest = left.rest if type(left) is Symbol else right.rest
        for other in (left, right):
            if type(other) is not Symbol and not isinstance(other, (int, float, complex, np.generic)):
                return NotImplemented
        number = function(*(side.number if type(side) is Symbol else side for side in (left, right)))
        return Symbol(number, rest, text.format(rest.name(left), rest.name(right)))

    return of, lambda right, left: of(left, right)


for _name, _sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}.items():
    _of, _reflected = _arithmetic(_sign, getattr(operator, _name))
    setattr(Symbol, f"__{_name}__", _of)
    setattr(Symbol, f"__r{_name}__", _reflected)
for _name, _text in {"neg": "-{0}", "pos": "+{0}", "abs": "abs({0})"}.items():
    setattr(
        Symbol,
        f"__{_name}__",
        lambda self, of=getattr(operator, _name), text=_text: Symbol(of(self.number), self.rest, text.format(self.rest.name(self))),
    )

_native.set_symbol(Symbol)


def refuse(function, args):
    """Says that a universal function does not take the numbers of traced functions that a call has."""
    for value in args:
        if type(value) is Symbol:
            value.check()
    raise TypeError(f"{function.__name__} does not take a traced number here: use it in arithmetic only")
