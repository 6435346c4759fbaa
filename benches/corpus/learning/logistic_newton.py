"""Logistic regression by iteratively reweighted least squares, until the coefficients settle.

Source: T. Hastie, R. Tibshirani, J. Friedman, "The Elements of Statistical Learning", section 4.4.1.
"""

import numpy as np

sizes = {"small": {"n": 500, "d": 8}, "large": {"n": 100_000, "d": 20}}


def inputs(n, d):
    rng = np.random.default_rng(12)
    X = np.c_[np.ones(n), rng.standard_normal((n, d))]
    w = rng.normal(0, 0.7, d + 1)
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ w))).astype(float)
    return {"X": X, "y": y}


def main(X, y):
    beta = np.zeros(X.shape[1])
    eps, delta, turns = 1e-8, 1.0, 0
    while delta > eps:
        p = 1 / (1 + np.exp(-X.dot(beta)))
        w = p * (1 - p)
        H = (X * w[:, None]).T.dot(X)
        step = np.linalg.solve(H, X.T.dot(y - p))
        beta = beta + step
        delta = np.max(np.abs(step))
        turns += 1
    se = np.sqrt(np.diag(np.linalg.inv(H)))
    z = beta / se
    loglik = np.sum(np.where(y == 1, np.log(p), np.log1p(-p)))
    order = np.argsort(-p, kind="stable")
    tpr = np.cumsum(y[order]) / y.sum()
    fpr = np.cumsum(1 - y[order]) / (1 - y).sum()
    auc = np.trapezoid(tpr, fpr)
    return beta, se, z, loglik, auc, turns
