"""The loops of floyd_warshall by Numba."""

import numpy as np
from numba import njit


@njit
def run(D, following):
    n = D.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = D[i, k] + D[k, j]
                if through < D[i, j]:
                    D[i, j] = through
                    following[i, j] = following[i, k]


def main(n):
    rng = np.random.default_rng(1)
    D = rng.integers(1, 100, (n, n)).astype(float)
    D[rng.random((n, n)) < 0.8] = np.inf
    np.fill_diagonal(D, 0)
    following = np.where(np.isfinite(D), np.arange(n)[None, :], -1)
    run(D, following)
    finite = np.isfinite(D)
    return D, following, D[finite].mean(), np.where(finite, D, -1).max(axis=1)
