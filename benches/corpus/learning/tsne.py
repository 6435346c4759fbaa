"""t-SNE: affinities by a search for each point's bandwidth, then gradients with momentum and gains.

Source: L. van der Maaten, tsne.py (2008), the author's NumPy version.
"""

import numpy as np

sizes = {"small": {"n": 40, "steps": 15}, "large": {"n": 250, "steps": 50}}


def h_beta(D, beta=1.0):
    P = np.exp(-D * beta)
    total = np.sum(P)
    return np.log(total) + beta * np.sum(D * P) / total, P / total


def affinities(X, perplexity, tol=1e-5):
    n = X.shape[0]
    sum_X = np.sum(np.square(X), 1)
    D = np.add(np.add(-2 * np.dot(X, X.T), sum_X).T, sum_X)
    P = np.zeros((n, n))
    for i in range(n):
        beta, low, high = 1.0, -np.inf, np.inf
        others = np.concatenate((np.r_[0:i], np.r_[i + 1 : n]))
        Di = D[i, others]
        H, thisP = h_beta(Di, beta)
        tries = 0
        while np.abs(H - np.log(perplexity)) > tol and tries < 50:
            if H > np.log(perplexity):
                low = beta
                beta = beta * 2 if np.isinf(high) else (beta + high) / 2
            else:
                high = beta
                beta = beta / 2 if np.isinf(low) else (beta + low) / 2
            H, thisP = h_beta(Di, beta)
            tries += 1
        P[i, others] = thisP
    return P


def main(n, steps, perplexity=10.0):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(m, 0.5, (n // 2, 10)) for m in (0, 2)])
    P = affinities(X, perplexity)
    P = P + P.T
    P = np.maximum(4 * P / np.sum(P), 1e-12)
    Y = 1e-2 * rng.standard_normal((n, 2))
    dY, iY, gains = np.zeros((n, 2)), np.zeros((n, 2)), np.ones((n, 2))
    for it in range(steps):
        sum_Y = np.sum(np.square(Y), 1)
        num = 1.0 / (1.0 + np.add(np.add(-2.0 * np.dot(Y, Y.T), sum_Y).T, sum_Y))
        num[range(n), range(n)] = 0.0
        Q = np.maximum(num / np.sum(num), 1e-12)
        PQ = P - Q
        for i in range(n):
            dY[i, :] = np.sum(np.tile(PQ[:, i] * num[:, i], (2, 1)).T * (Y[i, :] - Y), 0)
        gains = (gains + 0.2) * ((dY > 0.0) != (iY > 0.0)) + (gains * 0.8) * ((dY > 0.0) == (iY > 0.0))
        gains[gains < 0.01] = 0.01
        iY = (0.5 if it < 20 else 0.8) * iY - 20.0 * (gains * dY)
        Y = Y + iY
        Y = Y - np.tile(np.mean(Y, 0), (n, 1))
    return P, np.sum(P * np.log(P / Q))


tolerance = 1e-5
