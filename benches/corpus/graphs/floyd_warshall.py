"""Shortest paths between all pairs, with the next node of each path.

Source: NPBench (ETH Zürich), kernel floyd_warshall, of PolyBench; T. Cormen et al., "Introduction to Algorithms", chapter 25.
"""

import numpy as np

sizes = {"small": {"n": 40}, "large": {"n": 250}}


def main(n):
    rng = np.random.default_rng(1)
    D = rng.integers(1, 100, (n, n)).astype(float)
    D[rng.random((n, n)) < 0.8] = np.inf
    np.fill_diagonal(D, 0)
    following = np.where(np.isfinite(D), np.arange(n)[None, :], -1)
    for k in range(n):
        through = D[:, k][:, np.newaxis] + D[k, :]
        better = through < D
        following = np.where(better, following[:, k][:, None], following)
        D = np.minimum(D, through)
    finite = np.isfinite(D)
    return D, following, D[finite].mean(), np.where(finite, D, -1).max(axis=1)
