"""The words of NumPy's PCG64 generator on the stack.

The generator's state is a linear recurrence modulo 2**128 (O'Neill 2014), so the state after j steps is a product and a sum
with numbers that depend on j alone. A row of words is made from one state and the numbers of its columns, in operations on
whole arrays of 64-bit words.
"""

import functools

import numpy as np

from .. import _native
from .._array.conversion import native
from .._array.element_types import UINT64
from .._ufunc.ufunc import UFUNCS

_LOW, _WORD = 2**32 - 1, 2**64 - 1
_ALL = 2**128 - 1
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645

# Words in a row.
_COLUMNS = 1 << 12


def _halves(numbers):
    """Upper and lower words of 128-bit numbers, as arrays of NumPy."""
    upper = np.array([number >> 64 for number in numbers], np.uint64)
    return upper, np.array([number & _WORD for number in numbers], np.uint64)


@functools.lru_cache(4)
def _jumps(increment, columns):
    """Factors and summands of 1 to `columns` steps, as pairs of arrays of words, and those of the last step."""
    factor, summand = 1, 0
    factors, summands = [], []
    for _ in range(columns):
        factor, summand = factor * _FACTOR & _ALL, (summand * _FACTOR + increment) & _ALL
        factors.append(factor)
        summands.append(summand)
    return _halves(factors), _halves(summands), factor, summand


def _output(factors, summands, upper, lower):
    """Words from states that a factor and a summand lead to: the state is permuted by its own upper bits (XSL-RR)."""
    less = UFUNCS["less"]
    (a_upper, a_lower), (c_upper, c_lower) = factors, summands
    a0, a1, s0, s1 = a_lower & _LOW, a_lower >> 32, lower & _LOW, lower >> 32
    cross, other = a0 * s1, a1 * s0
    middle = ((a0 * s0) >> 32) + (cross & _LOW) + (other & _LOW)
    low = a_lower * lower + c_lower
    high = a1 * s1 + (cross >> 32) + (other >> 32) + (middle >> 32) + a_upper * lower + a_lower * upper + c_upper
    high = high + _native.cast(less(low, c_lower), UINT64)
    mixed, distance = high ^ low, high >> 58
    return (mixed >> distance) | (mixed << ((64 - distance) & 63))


def words(source, count, code, finish):
    """The next `count` 64-bit words of the generator, each as `finish` makes it, in an array of the type with this code."""
    state = source.state
    now, increment = state["state"]["state"], state["state"]["inc"]
    rows, rest = divmod(count, _COLUMNS)
    factors, summands, factor, summand = _jumps(increment, _COLUMNS)
    begins = []
    for _ in range(rows + 1):
        begins.append(now)
        now = (now * factor + summand) & _ALL
    # All rows but the last are whole; the generator goes on where that one ends.
    upper, lower = _halves(begins)
    result = _native.empty((count,), code)
    on_stack = lambda pair, size: tuple(native(half[:size]) for half in pair)
    if rows:
        whole = _native.reshape(result[: rows * _COLUMNS], (rows, _COLUMNS))
        columns = (on_stack(pair, _COLUMNS) for pair in (factors, summands))
        whole[...] = finish(_output(*columns, native(upper[:rows, None]), native(lower[:rows, None])))
    now = begins[rows]
    if rest:
        columns = (on_stack(pair, rest) for pair in (factors, summands))
        result[rows * _COLUMNS :] = finish(_output(*columns, native(upper[rows:]), native(lower[rows:])))
        last = [(int(pair[0][rest - 1]) << 64) + int(pair[1][rest - 1]) for pair in (factors, summands)]
        now = (now * last[0] + last[1]) & _ALL
    state["state"]["state"] = now
    source.state = state
    return result
