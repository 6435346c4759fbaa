"""Confidence intervals by the bootstrap, and a test by permutations.

Source: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", chapters 13 to 15.
"""

import numpy as np

sizes = {"small": {"n": 80, "B": 200}, "large": {"n": 500, "B": 8000}}


def main(n, B):
    rng = np.random.default_rng(50)
    a = rng.lognormal(0, 0.6, n)
    b = rng.lognormal(0.1, 0.7, n)
    idx = rng.integers(0, n, (B, n))
    sample = a[idx]
    means = sample.mean(axis=1)
    medians = np.median(sample, axis=1)
    interval = np.percentile(means, [2.5, 97.5])
    jack = (a.sum() - a) / (n - 1)
    d = jack.mean() - jack
    acceleration = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    observed = a.mean() - b.mean()
    pooled = np.concatenate([a, b])
    difference = np.empty(B)
    for i in range(B):
        p = rng.permutation(pooled)
        difference[i] = p[:n].mean() - p[n:].mean()
    p_value = np.mean(np.abs(difference) >= abs(observed))
    return interval, medians.std(), acceleration, p_value, np.sort(difference)[::50]
