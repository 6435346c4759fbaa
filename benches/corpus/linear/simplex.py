"""Linear programs by the simplex method on a tableau, row operations in place.

Source: V. Chvátal, "Linear Programming", chapter 2; course codes of operations research.
"""

import numpy as np

sizes = {"small": {"m": 12, "n": 10}, "large": {"m": 150, "n": 120}}


def main(m, n):
    rng = np.random.default_rng(19)
    A = rng.uniform(0, 1, (m, n))
    b = rng.uniform(5, 10, m)
    c = rng.uniform(1, 2, n)
    T = np.zeros((m + 1, n + m + 1))
    T[:m, :n] = A
    T[:m, n : n + m] = np.eye(m)
    T[:m, -1] = b
    T[-1, :n] = -c
    basis = np.arange(n, n + m)
    pivots = 0
    while np.any(T[-1, :-1] < -1e-9) and pivots < 500:
        column = np.argmin(T[-1, :-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(T[:-1, column] > 1e-9, T[:-1, -1] / T[:-1, column], np.inf)
        row = np.argmin(ratios)
        T[row] /= T[row, column]
        others = np.arange(m + 1) != row
        T[others] -= np.outer(T[others, column], T[row])
        basis[row] = column
        pivots += 1
    x = np.zeros(n + m)
    x[basis] = T[:-1, -1]
    duals = T[-1, n:-1]
    return x[:n], T[-1, -1], duals, pivots, np.isclose(duals @ b, c @ x[:n])


tolerance = 1e-7
