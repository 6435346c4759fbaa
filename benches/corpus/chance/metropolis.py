"""Metropolis's algorithm for the parameters of a line with outliers, one proposal after the other.

Source: A. Gelman et al., "Bayesian Data Analysis", chapter 11; D. Foreman-Mackey's tutorials.
"""

import numpy as np

sizes = {"small": {"n": 50, "samples": 300}, "large": {"n": 200, "samples": 8000}}


def main(n, samples):
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, n))
    y = 1.5 * x + 0.7 + rng.normal(0, 0.5, n)
    y[rng.choice(n, n // 10, replace=False)] += rng.normal(0, 10, n // 10)

    def log_posterior(theta):
        m, b, log_s = theta
        if abs(m) > 10 or abs(b) > 20 or abs(log_s) > 5:
            return -np.inf
        r = (y - m * x - b) / np.exp(log_s)
        return -2.0 * np.sum(np.log1p(r**2 / 3)) - n * log_s

    theta = np.array([1.0, 0.0, 0.0])
    current = log_posterior(theta)
    chain = np.zeros((samples, 3))
    accepted = 0
    for i in range(samples):
        proposal = theta + rng.normal(0, [0.03, 0.15, 0.1])
        new = log_posterior(proposal)
        if np.log(rng.random()) < new - current:
            theta, current = proposal, new
            accepted += 1
        chain[i] = theta
    kept = chain[samples // 4 :]
    return kept.mean(axis=0), kept.std(axis=0), np.corrcoef(kept.T), accepted / samples, np.quantile(kept, [0.025, 0.975], axis=0)
