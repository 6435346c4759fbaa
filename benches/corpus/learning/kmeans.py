"""Lloyd's algorithm with k-means++ starts, until no centre moves.

Source: C. Bishop, "Pattern Recognition and Machine Learning", section 9.1; D. Arthur, S. Vassilvitskii (2007).
"""

import numpy as np

sizes = {"small": {"n": 500, "k": 4}, "large": {"n": 30_000, "k": 8}}


def inputs(n, k):
    rng = np.random.default_rng(10)
    middles = rng.uniform(-10, 10, (k, 2))
    return {"X": middles[rng.integers(k, size=n)] + rng.normal(0, 1, (n, 2)), "k": k}


def main(X, k, tol=1e-6, limit=40):
    rng = np.random.default_rng(4)
    centers = X[rng.integers(len(X))][None]
    for _ in range(k - 1):
        d2 = ((X[:, None] - centers[None]) ** 2).sum(-1).min(axis=1)
        centers = np.vstack([centers, X[np.searchsorted(np.cumsum(d2), rng.random() * d2.sum())]])
    shift, turns = np.inf, 0
    while shift > tol and turns < limit:
        labels = ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        new = np.array([X[labels == j].mean(axis=0) for j in range(k)])
        shift = np.linalg.norm(new - centers)
        centers = new
        turns += 1
    inertia = np.sum((X - centers[labels]) ** 2)
    return centers, labels, np.bincount(labels, minlength=k), inertia, turns
