"""An Asian option with control variate: paths of geometric Brownian motion all at once.

Source: P. Glasserman, "Monte Carlo Methods in Financial Engineering", sections 1.1 and 4.1.
"""

import numpy as np

sizes = {"small": {"paths": 1000, "steps": 20}, "large": {"paths": 60_000, "steps": 50}}


def main(paths, steps, s0=100.0, strike=100.0, r=0.05, sigma=0.2, T=1.0):
    rng = np.random.default_rng(123)
    dt = T / steps
    Z = rng.standard_normal((paths, steps))
    S = s0 * np.exp(np.cumsum((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * Z, axis=1))
    arithmetic = np.maximum(S.mean(axis=1) - strike, 0) * np.exp(-r * T)
    geometric = np.maximum(np.exp(np.log(S).mean(axis=1)) - strike, 0) * np.exp(-r * T)
    cov = np.cov(arithmetic, geometric)
    b = cov[0, 1] / cov[1, 1]
    controlled = arithmetic - b * (geometric - geometric.mean())
    half = 1.96 * controlled.std(ddof=1) / np.sqrt(paths)
    knocked = (S.min(axis=1) < 0.9 * s0).mean()
    return arithmetic.mean(), controlled.mean(), half, b, knocked
