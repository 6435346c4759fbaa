"""Conway's game of life by slices, by windows and by a convolution, with a glider gun and the count of the living.

Source: N. P. Rougier, "From Python to NumPy", section 4.2; J. VanderPlas, "Conway's Game of Life in Python".
"""

import numpy as np

sizes = {"small": {"n": 64, "steps": 30}, "large": {"n": 600, "steps": 40}}


def neighbours(Z):
    N = np.zeros(Z.shape, dtype=int)
    N[1:-1, 1:-1] += Z[:-2, :-2] + Z[:-2, 1:-1] + Z[:-2, 2:] + Z[1:-1, :-2] + Z[1:-1, 2:] + Z[2:, :-2] + Z[2:, 1:-1] + Z[2:, 2:]
    return N


def rolled(X):
    count = sum(np.roll(np.roll(X, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i != 0 or j != 0))
    return (count == 3) | (X & (count == 2))


def main(n, steps):
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, (n, n))
    T = Z.astype(bool)
    living = []
    for step in range(steps):
        N = neighbours(Z)
        birth = (N == 3)[1:-1, 1:-1] & (Z[1:-1, 1:-1] == 0)
        survive = ((N == 2) | (N == 3))[1:-1, 1:-1] & (Z[1:-1, 1:-1] == 1)
        Z[...] = 0
        Z[1:-1, 1:-1][birth | survive] = 1
        if step % 4 == 0:
            T = rolled(T)
        living.append(Z.sum())
    return Z, T, np.array(living)
