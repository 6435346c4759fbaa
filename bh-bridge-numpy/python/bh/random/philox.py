"""The words of NumPy's Philox generator on the stack.

Each block of four 64-bit words is a function of a counter and a key (Salmon et al., SC 2011), written here in operations
on whole arrays. The state of NumPy's generator is read before and set after, so both may be used in turns.
"""

import numpy as np

from .. import _native
from .._array.conversion import native
from .._array.element_types import UINT64

_MASK = 2**32 - 1
_FACTORS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_KEY_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_ROUNDS = 10


def _product(factor, x):
    """The upper and the lower half of the 128 bits of a product."""
    if type(x) is int:
        whole = factor * x
        return whole >> 64, whole & (2**64 - 1)
    low_factor, high_factor = factor & _MASK, factor >> 32
    low, high = x & _MASK, x >> 32
    cross = low * high_factor
    middle = ((low * low_factor) >> 32) + (cross & _MASK) + high * low_factor
    return high * high_factor + (cross >> 32) + (middle >> 32), x * factor


def _blocks(counter, key, count):
    """`count` blocks of four words that follow a counter, whose first word does not overflow."""
    c0 = _native.arange((count,), UINT64, 0, 1) + (counter[0] + 1)
    c1, c2, c3 = counter[1:]
    k0, k1 = key
    for _ in range(_ROUNDS):
        high0, low0 = _product(_FACTORS[0], c0)
        high1, low1 = _product(_FACTORS[1], c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _KEY_STEPS[0]) % 2**64, (k1 + _KEY_STEPS[1]) % 2**64
    return c0, c1, c2, c3


def words(source, count, code, finish):
    """The next `count` 64-bit words of the generator, each as `finish` makes it, in an array of the type with this code;
    None where NumPy itself is to make them."""
    state = source.state
    counter, key = (list(map(int, state["state"][name])) for name in ("counter", "key"))
    position = int(state["buffer_pos"])
    left = np.asarray(state["buffer"][position:])
    rest = count - len(left)
    blocks = -(-rest // 4)
    if counter[0] + blocks >= 2**64:
        return None
    made = _blocks(counter, key, blocks)
    # NumPy makes the last block again, and with it the state after it.
    last = type(source)(0)
    state["buffer_pos"] = 4
    state["state"]["counter"] = np.array([counter[0] + blocks - 1, *counter[1:]], np.uint64)
    last.state = state
    last.random_raw(rest - 4 * (blocks - 1), output=False)
    source.state = last.state
    result = _native.empty((count,), code)
    if len(left):
        result[: len(left)] = finish(native(left.astype(np.uint64)))
    for place, word in enumerate(made):
        part = result[len(left) + place :: 4]
        part[...] = finish(word[: part.shape[0]])
    return result
