"""Densities by kernels in one and two dimensions, by all differences and by bins and a transform.

Source: B. Silverman, "Density Estimation for Statistics and Data Analysis"; J. VanderPlas, "In Depth: KDE".
"""

import numpy as np

sizes = {"small": {"n": 200, "m": 60}, "large": {"n": 4000, "m": 500}}


def main(n, m):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(-2, 0.7, n // 2), rng.normal(1, 1.2, n - n // 2)])
    h = 0.9 * min(x.std(), np.subtract(*np.percentile(x, [75, 25])) / 1.34) * n ** (-0.2)
    grid = np.linspace(x.min() - 3 * h, x.max() + 3 * h, m)
    u = (grid[:, None] - x[None, :]) / h
    gaussian = np.exp(-0.5 * u**2).sum(axis=1) / (n * h * np.sqrt(2 * np.pi))
    epanechnikov = np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0).sum(axis=1) / (n * h)
    counts, edges = np.histogram(x, bins=1024, range=(grid[0], grid[-1]))
    middle = (edges[1:] + edges[:-1]) / 2
    kernel = np.exp(-0.5 * ((middle - middle[512]) / h) ** 2)
    fast = np.fft.irfft(np.fft.rfft(counts, 2048) * np.fft.rfft(np.roll(np.pad(kernel, (0, 1024)), -512)), 2048)[:1024] / (n * h * np.sqrt(2 * np.pi))
    y = 0.5 * x + rng.normal(0, 1, n)
    H, xe, ye = np.histogram2d(x, y, bins=24)
    loo = []
    for factor in (0.5, 1.0, 2.0):
        s = x[:500]
        K = np.exp(-0.5 * ((s[:, None] - s[None]) / (factor * h)) ** 2)
        np.fill_diagonal(K, 0)
        loo.append(np.log(K.sum(axis=1) / (factor * h * (len(s) - 1)) + 1e-300).mean())
    return gaussian, epanechnikov, fast, H, loo, np.trapezoid(gaussian, grid)
