"""Gaussian-process regression, and the choice of a length scale by the marginal likelihood.

Source: C. Rasmussen, C. Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
"""

import numpy as np

sizes = {"small": {"n": 60, "m": 40}, "large": {"n": 500, "m": 400}}


def rbf(a, b, length, variance=1.0):
    d2 = np.sum(a**2, 1).reshape(-1, 1) + np.sum(b**2, 1) - 2 * np.dot(a, b.T)
    return variance * np.exp(-0.5 / length**2 * d2)


def main(n, m, noise=0.1):
    rng = np.random.default_rng(2)
    X = rng.uniform(-5, 5, (n, 1))
    y = np.sin(X[:, 0]) + noise * rng.standard_normal(n)
    Xs = np.linspace(-6, 6, m)[:, None]
    best = None
    likelihoods = []
    for length in np.geomspace(0.2, 4, 8):
        L = np.linalg.cholesky(rbf(X, X, length) + noise**2 * np.eye(n))
        alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
        ll = -0.5 * y @ alpha - np.log(np.diagonal(L)).sum() - n / 2 * np.log(2 * np.pi)
        likelihoods.append(ll)
        if best is None or ll > best[0]:
            best = (ll, length, L, alpha)
    _, length, L, alpha = best
    Ks = rbf(X, Xs, length)
    mu = Ks.T @ alpha
    v = np.linalg.solve(L, Ks)
    cov = rbf(Xs, Xs, length) - v.T @ v
    std = np.sqrt(np.clip(np.diag(cov), 0, None))
    return likelihoods, length, mu, std


tolerance = 1e-6
