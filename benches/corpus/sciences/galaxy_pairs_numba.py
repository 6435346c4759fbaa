"""The counts of galaxy_pairs by Numba."""

import numpy as np
from numba import njit


@njit
def pairs(a, b, bins):
    counts = np.zeros(bins.size - 1, dtype=np.int64)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            d = np.sqrt((a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2 + (a[i, 2] - b[j, 2]) ** 2)
            if bins[0] <= d <= bins[-1]:
                k = min(np.searchsorted(bins, d, side="right") - 1, bins.size - 2)
                counts[k] += 1
    return counts


def main(n):
    rng = np.random.default_rng(13)
    centers = rng.random((n // 15, 3))
    data = (centers[rng.integers(0, len(centers), n)] + rng.normal(0, 0.02, (n, 3))) % 1
    random = rng.random((n, 3))
    bins = np.geomspace(0.005, 0.5, 16)
    dd, dr, rr = pairs(data, data, bins), pairs(data, random, bins), pairs(random, random, bins)
    xi = (dd - 2 * dr + rr) / np.maximum(rr, 1)
    good = (xi > 0) & (rr > 20)
    r = np.sqrt(bins[1:] * bins[:-1])
    slope = np.polyfit(np.log(r[good]), np.log(xi[good]), 1) if good.sum() > 2 else np.zeros(2)
    cells = np.histogramdd(data, bins=(6, 6, 6), range=[(0, 1)] * 3)[0]
    return dd, dr, rr, xi, slope, cells.var() / cells.mean()
