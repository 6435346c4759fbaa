"""Two-electron repulsion integrals between n pairs of contracted s shells, nine primitive pairs each, by Rys quadrature.

An integral of s functions needs one root of Rys' polynomial: the sum over 81 quartets of a factor times Boys' function F0, which
has a branch for small arguments and one for large ones. NumPy has no error function, so Python's is called for each element.
"""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

PRIMITIVES = 9
SMALL, LARGE = 1e-3, 30.0
erf = np.vectorize(math.erf, otypes=[float])


def setup(n, dtype):
    """Exponents, factors and the coordinates of the centres of pairs of primitives, for both sides of the integrals."""
    values = [harness.pseudo(PRIMITIVES * n, 70 + part, dtype).reshape(n, PRIMITIVES) for part in range(5)]
    return [0.5 + 2 * values[0], values[1] / PRIMITIVES, *(4 * value for value in values[2:])]


def boys(t):
    """The integral of exp(-t x²) from 0 to 1."""
    safe = np.maximum(t, SMALL)
    tail = 0.5 * np.sqrt(math.pi / safe)
    middle = np.where(t > LARGE, tail, tail * erf(np.sqrt(safe)).astype(t.dtype))
    return np.where(t < SMALL, 1 - t * (1 / 3 - t * (1 / 10 - t / 42)), middle)


def run(state, iters):
    bra = [part[:, :, None, None] for part in state]
    ket = [part[None, None, :, :] for part in state]
    for _ in range(iters):
        p, q = bra[0], ket[0]
        apart = sum((a - b) ** 2 for a, b in zip(bra[2:], ket[2:]))
        factor = 2 * math.pi**2.5 * bra[1] * ket[1] / (p * q * np.sqrt(p + q))
        integrals = np.sum(factor * boys(p * q / (p + q) * apart), axis=(1, 3))
    return lambda: [harness.checksum(integrals)]


harness.main("rpes", setup, run)
