"""Two moons told apart by eigenvectors of a graph's Laplacian.

Source: U. von Luxburg, "A Tutorial on Spectral Clustering" (2007).
"""

import numpy as np

sizes = {"small": {"n": 60}, "large": {"n": 500}}


def main(n, neighbours=8):
    rng = np.random.default_rng(3)
    t = np.linspace(0, np.pi, n // 2)
    X = np.vstack([np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), 0.4 - np.sin(t)]]) + rng.normal(0, 0.05, (2 * (n // 2), 2))
    d2 = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    order = np.argsort(d2, axis=1)[:, 1 : neighbours + 1]
    W = np.zeros_like(d2)
    rows = np.repeat(np.arange(len(X)), neighbours)
    W[rows, order.ravel()] = np.exp(-d2[rows, order.ravel()] / 0.1)
    W = np.maximum(W, W.T) + 1e-4 * np.exp(-d2)
    degree = W.sum(axis=1)
    L = np.eye(len(X)) - W / np.sqrt(np.outer(degree, degree))
    values, vectors = np.linalg.eigh(L)
    fiedler = vectors[:, 1] / np.sqrt(degree)
    label = fiedler > np.median(fiedler)
    if label[0]:
        label = ~label
    cut = W[np.ix_(label, ~label)].sum()
    return values[:10], label.sum(), np.abs(fiedler), cut


tolerance = 1e-6
