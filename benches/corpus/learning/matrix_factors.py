"""Ratings of films by alternating least squares: a little system for every user and every film.

Source: Y. Koren, R. Bell, C. Volinsky, "Matrix Factorization Techniques for Recommender Systems" (2009).
"""

import numpy as np

sizes = {"small": {"users": 60, "items": 40, "rank": 5, "turns": 3}, "large": {"users": 800, "items": 500, "rank": 10, "turns": 5}}


def main(users, items, rank, turns, lam=0.1):
    rng = np.random.default_rng(13)
    R = rng.standard_normal((users, rank)) @ rng.standard_normal((rank, items))
    W = rng.random((users, items)) < 0.2
    R = np.where(W, R + 0.1 * rng.standard_normal(R.shape), 0.0)
    X = rng.standard_normal((users, rank))
    Y = rng.standard_normal((items, rank))
    errors = []
    for _ in range(turns):
        for u in range(users):
            seen = Y[W[u]]
            X[u] = np.linalg.solve(seen.T @ seen + lam * np.eye(rank), seen.T @ R[u, W[u]])
        for i in range(items):
            seen = X[W[:, i]]
            Y[i] = np.linalg.solve(seen.T @ seen + lam * np.eye(rank), seen.T @ R[W[:, i], i])
        errors.append(np.sqrt(np.sum((W * (R - X @ Y.T)) ** 2) / W.sum()))
    return X, Y, errors


tolerance = 1e-6
