"""An American put by least-squares Monte Carlo: regressions on the paths that are in the money, backward in time.

Source: F. Longstaff, E. Schwartz, "Valuing American Options by Simulation" (2001).
"""

import numpy as np

sizes = {"small": {"paths": 1000, "steps": 10}, "large": {"paths": 50_000, "steps": 40}}


def main(paths, steps, s0=36.0, K=40.0, r=0.06, sigma=0.2, T=1.0):
    rng = np.random.default_rng(1)
    dt = T / steps
    z = rng.standard_normal((steps, paths // 2))
    z = np.concatenate((z, -z), axis=1)
    S = np.empty((steps + 1, paths))
    S[0] = s0
    for t in range(1, steps + 1):
        S[t] = S[t - 1] * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z[t - 1])
    df = np.exp(-r * dt)
    cash = np.maximum(K - S[-1], 0)
    exercised = np.full(paths, steps)
    for t in range(steps - 1, 0, -1):
        cash *= df
        itm = S[t] < K
        x = S[t][itm] / K
        A = np.column_stack([np.ones_like(x), x, x**2, x**3])
        coefficients, *_ = np.linalg.lstsq(A, cash[itm], rcond=None)
        now = K - S[t][itm]
        better = now > A @ coefficients
        chosen = np.flatnonzero(itm)[better]
        cash[chosen] = now[better]
        exercised[chosen] = t
    price = df * cash.mean()
    return price, df * cash.std() / np.sqrt(paths), np.bincount(exercised, minlength=steps + 1)


tolerance = 1e-6
