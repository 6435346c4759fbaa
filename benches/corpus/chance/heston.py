"""Heston's model by full truncation of Euler's scheme, and a smile of prices over many strikes.

Source: L. Andersen, "Simple and efficient simulation of the Heston model" (2008).
"""

import numpy as np

sizes = {"small": {"paths": 2000, "steps": 20}, "large": {"paths": 40_000, "steps": 60}}


def main(paths, steps, s0=100.0, v0=0.04, kappa=1.5, theta=0.04, xi=0.3, rho=-0.7, r=0.02, T=1.0):
    rng = np.random.default_rng(6)
    dt = T / steps
    L = np.linalg.cholesky(np.array([[1.0, rho], [rho, 1.0]]))
    logS = np.full(paths, np.log(s0))
    v = np.full(paths, v0)
    for _ in range(steps):
        w = L @ rng.standard_normal((2, paths)) * np.sqrt(dt)
        positive = np.maximum(v, 0)
        logS += (r - 0.5 * positive) * dt + np.sqrt(positive) * w[0]
        v += kappa * (theta - positive) * dt + xi * np.sqrt(positive) * w[1]
    S = np.exp(logS)
    strikes = np.linspace(70, 130, 13)
    payoff = np.maximum(S[:, None] - strikes, 0)
    return np.exp(-r * T) * payoff.mean(axis=0), np.percentile(S, [1, 5, 50, 95, 99]), (v < 0).mean()
