"""Kaplan's and Meier's curves of two groups, the log-rank test, and Cox's regression by Newton's method.

Source: D. Kleinbaum, M. Klein, "Survival Analysis"; lifelines' documentation.
"""

import numpy as np

sizes = {"small": {"n": 120}, "large": {"n": 20_000}}


def kaplan_meier(time, event):
    times, inverse = np.unique(time, return_inverse=True)
    deaths = np.bincount(inverse, weights=event)
    leaving = np.bincount(inverse)
    at_risk = len(time) - np.concatenate(([0], np.cumsum(leaving)[:-1]))
    curve = np.cumprod(1 - deaths / at_risk)
    variance = curve**2 * np.cumsum(deaths / np.maximum(at_risk * (at_risk - deaths), 1))
    return times, curve, variance


def main(n):
    rng = np.random.default_rng(30)
    group = rng.integers(0, 2, n)
    age = rng.normal(60, 8, n)
    X = np.column_stack([group, (age - 60) / 8])
    time = np.ceil(rng.exponential(40 * np.exp(-X @ np.array([0.5, 0.3]))))
    censor = rng.uniform(5, 80, n).round()
    event = (time <= censor).astype(float)
    time = np.minimum(time, censor)
    curves = [kaplan_meier(time[group == g], event[group == g]) for g in (0, 1)]
    observed = expected = variance = 0.0
    for t in np.unique(time[event == 1]):
        risk = time >= t
        dead = (time == t) & (event == 1)
        n1, total = risk[group == 1].sum(), risk.sum()
        d = dead.sum()
        observed += dead[group == 1].sum()
        expected += d * n1 / total
        if total > 1:
            variance += d * (n1 / total) * (1 - n1 / total) * (total - d) / (total - 1)
    chi2 = (observed - expected) ** 2 / variance
    order = np.argsort(-time, kind="stable")
    Xs, es = X[order], event[order]
    beta = np.zeros(2)
    for _ in range(6):
        w = np.exp(Xs @ beta)
        s0 = np.cumsum(w)
        s1 = np.cumsum(w[:, None] * Xs, axis=0)
        s2 = np.cumsum(w[:, None, None] * Xs[:, :, None] * Xs[:, None, :], axis=0)
        mean = s1 / s0[:, None]
        gradient = (es[:, None] * (Xs - mean)).sum(axis=0)
        hessian = (es[:, None, None] * (s2 / s0[:, None, None] - mean[:, :, None] * mean[:, None, :])).sum(axis=0)
        beta = beta + np.linalg.solve(hessian, gradient)
    return curves, chi2, beta, np.sqrt(np.diag(np.linalg.inv(hessian)))


tolerance = 1e-7
