"""Locally weighted regression with robust weights, point by point.

Source: W. Cleveland (1979); A. Gramfort's NumPy version of lowess.
"""

import numpy as np

sizes = {"small": {"n": 60}, "large": {"n": 1200}}


def main(n, f=0.3, turns=2):
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 10, n))
    y = np.sin(x) + 0.2 * rng.standard_normal(n)
    y[:: n // 20] += 2
    r = int(np.ceil(f * n))
    h = np.array([np.sort(np.abs(x - x[i]))[r] for i in range(n)])
    w = np.clip(np.abs((x[:, None] - x[None, :]) / h), 0.0, 1.0)
    w = (1 - w**3) ** 3
    estimate = np.zeros(n)
    delta = np.ones(n)
    for _ in range(turns):
        for i in range(n):
            weights = delta * w[:, i]
            b = np.array([np.sum(weights * y), np.sum(weights * y * x)])
            A = np.array([[np.sum(weights), np.sum(weights * x)], [np.sum(weights * x), np.sum(weights * x * x)]])
            beta = np.linalg.solve(A, b)
            estimate[i] = beta[0] + beta[1] * x[i]
        residuals = y - estimate
        s = np.median(np.abs(residuals))
        delta = np.clip(residuals / (6.0 * s), -1, 1)
        delta = (1 - delta**2) ** 2
    return estimate, delta


tolerance = 1e-7
