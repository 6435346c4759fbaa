"""Distances between samples by their empirical distributions, ranks with ties, and tests by permutations.

Source: SciPy's documentation of ks_2samp and mannwhitneyu; W. Conover, "Practical Nonparametric Statistics".
"""

import numpy as np

sizes = {"small": {"n": 100, "B": 30}, "large": {"n": 5000, "B": 200}}


def ks(a, b):
    a, b = np.sort(a), np.sort(b)
    every = np.concatenate([a, b])
    return np.max(np.abs(np.searchsorted(a, every, side="right") / len(a) - np.searchsorted(b, every, side="right") / len(b)))


def rankdata(x):
    sorter = np.argsort(x, kind="mergesort")
    inverse = np.empty(sorter.size, dtype=np.intp)
    inverse[sorter] = np.arange(sorter.size)
    s = x[sorter]
    obs = np.r_[True, s[1:] != s[:-1]]
    dense = obs.cumsum()[inverse]
    count = np.r_[np.nonzero(obs)[0], len(obs)]
    return 0.5 * (count[dense] + count[dense - 1] + 1)


def main(n, B):
    rng = np.random.default_rng(17)
    a = rng.normal(0, 1, n).round(2)
    b = rng.normal(0.1, 1.1, n).round(2)
    statistic = ks(a, b)
    pooled = np.concatenate([a, b])
    null = np.zeros(B)
    for i in range(B):
        shuffled = rng.permutation(pooled)
        null[i] = ks(shuffled[:n], shuffled[n:])
    ranks = rankdata(pooled)
    u = ranks[:n].sum() - n * (n + 1) / 2
    _, ties = np.unique(pooled, return_counts=True)
    sigma = np.sqrt(n * n / 12 * (2 * n + 1 - (ties**3 - ties).sum() / (2 * n * (2 * n - 1))))
    bins = np.digitize(a, np.quantile(pooled, np.linspace(0.1, 0.9, 9)))
    observed = np.bincount(bins, minlength=10)
    chi2 = ((observed - n / 10) ** 2 / (n / 10)).sum()
    return statistic, np.mean(null >= statistic), (u - n * n / 2) / sigma, chi2, ranks
