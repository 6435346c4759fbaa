"""The Ising model one spin after the other, with a table of Boltzmann factors.

Source: M. Newman, G. Barkema, "Monte Carlo Methods in Statistical Physics", chapter 3.
"""

import numpy as np

sizes = {"small": {"n": 16, "flips": 4000}, "large": {"n": 64, "flips": 150_000}}


def main(n, flips, T=2.3):
    rng = np.random.RandomState(1)
    s = 2 * rng.randint(2, size=(n, n)) - 1
    factor = {de: np.exp(-de / T) for de in (-8, -4, 0, 4, 8)}
    places = rng.randint(0, n, size=(flips, 2)).tolist()
    chances = rng.rand(flips)
    M = s.sum()
    total = 0
    for (i, j), chance in zip(places, chances):
        neighbours = s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % n] + s[i, j - 1]
        dE = 2 * s[i, j] * neighbours
        if dE <= 0 or chance < factor[int(dE)]:
            s[i, j] = -s[i, j]
            M += 2 * s[i, j]
        total += abs(M)
    return s, total / flips / n**2
