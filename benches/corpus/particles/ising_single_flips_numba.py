"""The loop of ising_single_flips by Numba."""

import numpy as np
from numba import njit


@njit
def run(s, places, chances, factor):
    n = s.shape[0]
    M = s.sum()
    total = 0
    for k in range(chances.shape[0]):
        i, j = places[k, 0], places[k, 1]
        dE = 2 * s[i, j] * (s[(i + 1) % n, j] + s[(i - 1) % n, j] + s[i, (j + 1) % n] + s[i, (j - 1) % n])
        if dE <= 0 or chances[k] < factor[(dE + 8) // 4]:
            s[i, j] = -s[i, j]
            M += 2 * s[i, j]
        total += abs(M)
    return total


def main(n, flips, T=2.3):
    rng = np.random.RandomState(1)
    s = 2 * rng.randint(2, size=(n, n)) - 1
    factor = np.array([np.exp(-de / T) for de in (-8, -4, 0, 4, 8)])
    places = rng.randint(0, n, size=(flips, 2))
    total = run(s, places, rng.rand(flips), factor)
    return s, np.float64(total / flips / n**2)
