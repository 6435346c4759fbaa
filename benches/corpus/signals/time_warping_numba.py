"""The table of time_warping by Numba."""

import numpy as np
from numba import njit


@njit
def table(a, b, window):
    n = a.shape[0]
    D = np.full((n + 1, n + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(max(1, i - window), min(n, i + window) + 1):
            D[i, j] = abs(a[i - 1] - b[j - 1]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D


def main(n, series, window=10):
    rng = np.random.default_rng(41)
    a = np.cumsum(rng.standard_normal(n))
    b = a[np.minimum((np.arange(n) ** 1.03).astype(int), n - 1)] + 0.1 * rng.standard_normal(n)
    D = table(a, b, window)
    i, j, path = n, n, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        step = int(np.argmin([D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]]))
        i, j = (i - 1, j - 1) if step == 0 else (i - 1, j) if step == 1 else (i, j - 1)
    many = np.cumsum(rng.standard_normal((series, n)), axis=1)
    padded = np.pad(a, window, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, 2 * window + 1)
    upper, lower = views.max(axis=1), views.min(axis=1)
    bound = np.where(many > upper, (many - upper) ** 2, np.where(many < lower, (many - lower) ** 2, 0)).sum(axis=1)
    return D[n, n], np.array(path), bound, np.argsort(bound)[:5]
