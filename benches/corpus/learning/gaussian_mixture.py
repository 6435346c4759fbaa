"""A mixture of Gaussians by expectation maximisation, full covariances, until the likelihood settles.

Source: C. Bishop, "Pattern Recognition and Machine Learning", section 9.2.2.
"""

import numpy as np

sizes = {"small": {"n": 300, "k": 3, "d": 2}, "large": {"n": 20_000, "k": 5, "d": 4}}


def inputs(n, k, d):
    rng = np.random.default_rng(21)
    means = rng.uniform(-6, 6, (k, d))
    return {"X": np.concatenate([rng.normal(m, rng.uniform(0.5, 1.5, d), (n // k, d)) for m in means]), "k": k}


def log_gaussian(X, mu, sigma):
    d = X.shape[1]
    sign, logdet = np.linalg.slogdet(sigma)
    diff = X - mu
    return -0.5 * (d * np.log(2 * np.pi) + logdet + np.einsum("ni,ij,nj->n", diff, np.linalg.inv(sigma), diff))


def main(X, k, limit=25):
    n, d = X.shape
    mu = X[:: n // k][:k].copy()
    sigma = np.array([np.cov(X.T)] * k)
    pi = np.full(k, 1 / k)
    last, delta, turns = -np.inf, np.inf, 0
    while delta > 1e-6 and turns < limit:
        logp = np.stack([np.log(pi[j]) + log_gaussian(X, mu[j], sigma[j]) for j in range(k)], axis=1)
        top = logp.max(axis=1, keepdims=True)
        lse = top[:, 0] + np.log(np.exp(logp - top).sum(axis=1))
        gamma = np.exp(logp - lse[:, None])
        nk = gamma.sum(axis=0)
        mu = gamma.T @ X / nk[:, None]
        for j in range(k):
            diff = X - mu[j]
            sigma[j] = (gamma[:, j][:, None] * diff).T @ diff / nk[j] + 1e-6 * np.eye(d)
        pi = nk / n
        total = lse.mean()
        delta, last = abs(total - last), total
        turns += 1
    return mu, sigma, pi, last, turns


tolerance = 1e-6
