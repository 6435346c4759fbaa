"""How galaxies cluster: counts of pairs by distance in the data and in random points.

Source: S. Landy, A. Szalay (1993); AstroML, "Two-point correlation functions".
"""

import numpy as np

sizes = {"small": {"n": 150}, "large": {"n": 1500}}


def pairs(a, b, bins):
    counts = np.zeros(len(bins) - 1, dtype=np.int64)
    for begin in range(0, len(a), 200):
        d = np.sqrt(((a[begin : begin + 200, None, :] - b[None, :, :]) ** 2).sum(axis=-1))
        counts += np.histogram(d, bins=bins)[0]
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
