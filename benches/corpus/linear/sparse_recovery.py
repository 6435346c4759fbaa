"""A sparse vector from few measurements by iterated shrinkage, plain and accelerated, while it still moves.

Source: A. Beck, M. Teboulle, "A Fast Iterative Shrinkage-Thresholding Algorithm" (2009).
"""

import numpy as np

sizes = {"small": {"m": 40, "n": 100}, "large": {"m": 300, "n": 1000}}


def soft(x, t):
    return np.sign(x) * np.maximum(np.abs(x) - t, 0)


def main(m, n, lam=0.02, tol=1e-5):
    rng = np.random.default_rng(16)
    A = rng.standard_normal((m, n)) / np.sqrt(m)
    truth = np.zeros(n)
    truth[rng.choice(n, m // 10, replace=False)] = rng.standard_normal(m // 10) + 1
    b = A @ truth + 0.005 * rng.standard_normal(m)
    L = np.linalg.norm(A, 2) ** 2
    results = []
    for fast in (False, True):
        x = np.zeros(n)
        y, t, change, it = x, 1.0, np.inf, 0
        while change > tol and it < 400:
            new = soft(y - A.T @ (A @ y - b) / L, lam / L)
            tn = (1 + np.sqrt(1 + 4 * t * t)) / 2
            y = new + (t - 1) / tn * (new - x) if fast else new
            change = np.linalg.norm(new - x) / max(np.linalg.norm(x), 1e-12)
            x, t = new, tn
            it += 1
        results.append((x, it, 0.5 * np.sum((A @ x - b) ** 2) + lam * np.abs(x).sum()))
    return results, np.linalg.norm(results[1][0] - truth) / np.linalg.norm(truth)


tolerance = 1e-7
