"""Philox2x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011), over NumPy arrays."""

import numpy as np

_MULTIPLIER = np.uint64(0xD256D193)
_WEYL = 0x9E3779B9
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox2x32(counters, key):
    """The 64 random bits of each counter (u64) under a 32-bit key; the first output word is the low half."""
    left, right = counters & _LOW, counters >> _HALF
    for _ in range(10):
        product = _MULTIPLIER * left
        left = (product >> _HALF) ^ np.uint64(key) ^ right
        right = product & _LOW
        key = (key + _WEYL) & 0xFFFFFFFF
    return right << _HALF | left


def uniform(count, key, dtype):
    """`count` values in [0, 1) for the counters from 0."""
    bits = philox2x32(np.arange(count, dtype=np.uint64), key)
    if dtype == np.float64:
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return ((bits & _LOW) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
