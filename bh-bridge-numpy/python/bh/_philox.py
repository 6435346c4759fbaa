"""NumPy's Philox generator on the stack: the same words as `numpy.random.Philox`, made where they are needed.

Each block of four 64-bit words is a function of a counter and a key (Salmon et al., SC 2011), written here in operations
on whole arrays. The state of NumPy's generator is read before and set after, so both may be used in turns.
"""

import numpy as np

from . import _native
from ._types import FLOAT64, UINT64
from ._ufunc import UFUNCS

_u = UFUNCS

# Below so many words NumPy has them sooner.
_FEW = 1 << 12

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
    words = _native.empty((count, 4), UINT64)
    for place, word in enumerate((c0, c1, c2, c3)):
        words[:, place] = word
    return _native.reshape(words, (-1,))


def words(source, count):
    """The next `count` 64-bit words of NumPy's generator as an array; None where NumPy itself is to make them."""
    if count < _FEW:
        return None
    state = source.state
    counter, key = (list(map(int, state["state"][name])) for name in ("counter", "key"))
    position = int(state["buffer_pos"])
    left = [int(word) for word in state["buffer"][position:]]
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
    result = _native.empty((count,), UINT64)
    for place, word in enumerate(left):
        result[place] = word
    result[len(left) :] = made[:rest]
    return result


def _halves(source, count):
    """The next `count` 32-bit numbers, in elements of 64 bits: lower halves of words before upper ones."""
    state = source.state
    stored = [int(state["uinteger"])] if state["has_uint32"] else []
    needed = count - len(stored)
    made = words(source, -(-needed // 2))
    if made is None:
        return None
    result = _native.empty((count,), UINT64)
    if stored:
        result[0] = stored[0]
    rest = result[len(stored) :]
    upper = made >> 32
    rest[::2] = made & _MASK
    rest[1::2] = upper[: needed // 2]
    state = source.state
    state["has_uint32"] = needed % 2
    state["uinteger"] = _native.item_of(upper[-1:])
    source.state = state
    return result


def uniforms(source, shape, dtype):
    """Numbers in [0, 1) as `Generator.random` makes them; None where NumPy is to."""
    count = int(np.prod(shape, dtype=np.int64))
    if np.dtype(dtype) == np.float32:
        made = _halves(source, count)
        return None if made is None else _native.reshape((made >> 8).astype(np.float32) * 2.0**-24, shape)
    made = words(source, count)
    return None if made is None else _native.reshape(_native.cast(made >> 11, FLOAT64) * 2.0**-53, shape)


def integers(source, low, bits, shape, dtype):
    """Whole numbers from `low` on, below `low` + 2**bits, as `Generator.integers` makes those; None where NumPy is to."""
    count = int(np.prod(shape, dtype=np.int64))
    if bits <= 32:
        made = _halves(source, count)
        made = made if made is None or bits == 32 else made >> (32 - bits)
    else:
        made = words(source, count)
        made = made if made is None or bits == 64 else made >> (64 - bits)
    if made is None:
        return None
    return _native.reshape(made.astype(dtype) + low, shape)
