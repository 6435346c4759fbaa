"""Gibbs sampling of a hierarchical model of schools, many chains at once, with the split R-hat.

Source: A. Gelman et al., "Bayesian Data Analysis", sections 5.5 and 11.4.
"""

import numpy as np

sizes = {"small": {"chains": 8, "steps": 100}, "large": {"chains": 500, "steps": 800}}


def main(chains, steps):
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    J = len(y)
    rng = np.random.default_rng(8)
    mu = rng.normal(0, 5, chains)
    tau2 = rng.uniform(1, 100, chains)
    kept = np.zeros((steps, chains, 2))
    sums = np.zeros((chains, J))
    for s in range(steps):
        precision = 1 / sigma**2 + 1 / tau2[:, None]
        mean = (y / sigma**2 + (mu / tau2)[:, None]) / precision
        theta = mean + rng.standard_normal((chains, J)) / np.sqrt(precision)
        mu = theta.mean(axis=1) + rng.standard_normal(chains) * np.sqrt(tau2 / J)
        tau2 = ((theta - mu[:, None]) ** 2).sum(axis=1) / rng.chisquare(J - 1, chains)
        kept[s, :, 0] = mu
        kept[s, :, 1] = np.log(tau2)
        sums += theta
    half = kept[steps // 2 :]
    n = half.shape[0]
    between = n * half.mean(axis=0).var(axis=0, ddof=1)
    within = half.var(axis=0, ddof=1).mean(axis=0)
    rhat = np.sqrt(((n - 1) / n * within + between / n) / within)
    return sums / steps, rhat, np.percentile(half.reshape(-1, 2), [5, 50, 95], axis=0)
