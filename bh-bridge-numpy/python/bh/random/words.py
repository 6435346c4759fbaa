"""Uniform numbers and whole numbers from the words of generators whose words are made on the stack.

The numbers are NumPy's, and so is the generator's state after them: it is read before and set after, so that the stack and
NumPy may draw from one generator in turns.
"""

import importlib
import math

import numpy as np

from .. import _native
from .._array.element_types import CODE, FLOAT64, UINT64
from .._cluster.ranks import ranks
from .._jit.symbols import refuse_in_trace

# With fewer words than this NumPy is faster.
FEW = 1 << 16
# Rows of this many words: the notes for each row alone would take much time and memory.
_HUGE = 1 << 28

_LOW = 2**32 - 1


def _words_of(name):
    """The function `words` of a module, which is imported when it makes the first words."""
    return lambda *arguments: importlib.import_module(f"bh.random.{name}").words(*arguments)


# The functions that make the words of each kind of generator: `f(source, count, code, finish)`.
SOURCES = {np.random.Philox: _words_of("philox"), np.random.PCG64: _words_of("pcg")}


def _count(shape, dtype):
    """How many numbers a shape has. Fails as NumPy does if there is no memory for them."""
    count = math.prod(map(int, shape))
    if count >= _HUGE and ranks() == 1:
        np.empty(shape, dtype)
    return count


def _words(source, count, code=UINT64, finish=lambda word: word):
    """The next `count` words; None where NumPy itself is to make them."""
    return None if count < FEW else SOURCES[type(source)](source, count, code, finish)


def _split(source, count, code, finish):
    """The next `count` numbers of 32 bits, in elements of 64 for `finish`: lower halves of words before upper ones."""
    state = source.state
    stored = [int(state["uinteger"])] if state["has_uint32"] else []
    needed = count - len(stored)
    made = _words(source, -(-needed // 2))
    if made is None:
        return None
    result = _native.empty((count,), code)
    if stored:
        result[0] = finish(_native.full((1,), UINT64, stored[0]))[0]
    rest = result[len(stored) :]
    rest[::2] = finish(made & _LOW)
    rest[1::2] = finish(made[: needed // 2] >> 32)
    state = source.state
    state["has_uint32"] = needed % 2
    state["uinteger"] = _native.item_of(made[-1:] >> 32)
    source.state = state
    return result


def uniforms(source, shape, dtype):
    """Numbers in [0, 1) as `Generator.random` makes them; None where NumPy is to."""
    refuse_in_trace("draws random numbers")
    count = _count(shape, dtype)
    if np.dtype(dtype) == np.float32:
        code = CODE[np.dtype(np.float32)]
        made = _split(source, count, code, lambda half: _native.cast(half >> 8, code) * 2.0**-24)
    else:
        made = _words(source, count, FLOAT64, lambda word: _native.cast(word >> 11, FLOAT64) * 2.0**-53)
    return None if made is None else _native.reshape(made, shape)


def integers(source, low, bits, shape, dtype):
    """Whole numbers from `low` on, below `low` + 2**bits, as `Generator.integers` makes those; None where NumPy is to."""
    refuse_in_trace("draws random numbers")
    count = _count(shape, dtype)
    code = CODE[np.dtype(dtype)]

    def finish(word):
        unused = (32 if bits <= 32 else 64) - bits
        return _native.cast(word >> unused if unused else word, code) + low

    make = _split if bits <= 32 else _words
    made = make(source, count, code, finish)
    return None if made is None else _native.reshape(made, shape)
