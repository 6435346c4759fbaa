"""Peaks fitted to a spectrum by Levenberg's and Marquardt's method, derivatives by differences.

Source: K. Madsen, H. Nielsen, O. Tingleff, "Methods for Non-Linear Least Squares Problems" (2004).
"""

import numpy as np

sizes = {"small": {"n": 100, "peaks": 2}, "large": {"n": 4000, "peaks": 6}}


def model(p, x):
    out = p[0] + p[1] * x
    for a, c, w in p[2:].reshape(-1, 3):
        out = out + a * np.exp(-((x - c) ** 2) / (2 * w**2))
    return out


def jacobian(p, x, h=1e-6):
    base = model(p, x)
    J = np.empty((x.size, p.size))
    for i in range(p.size):
        q = p.copy()
        q[i] += h
        J[:, i] = (model(q, x) - base) / h
    return J


def main(n, peaks):
    rng = np.random.default_rng(7)
    x = np.linspace(0, 10, n)
    centers = np.linspace(1, 9, peaks)
    truth = np.concatenate([[0.5, 0.05], np.column_stack([rng.uniform(1, 3, peaks), centers, rng.uniform(0.3, 0.5, peaks)]).ravel()])
    y = model(truth, x) + 0.02 * rng.standard_normal(n)
    p = truth * (1 + 0.1 * rng.standard_normal(truth.size))
    mu, cost, it = 1e-2, np.sum((y - model(p, x)) ** 2), 0
    step = np.inf
    while step > 1e-6 and it < 50:
        J = jacobian(p, x)
        r = y - model(p, x)
        H = J.T @ J
        d = np.linalg.solve(H + mu * np.diag(np.diag(H)), J.T @ r)
        new = np.sum((y - model(p + d, x)) ** 2)
        if new < cost:
            p, cost, mu = p + d, new, mu / 3
            step = np.linalg.norm(d) / np.linalg.norm(p)
        else:
            mu *= 4
        it += 1
    errors = np.sqrt(np.diag(np.linalg.inv(H)) * cost / (n - p.size))
    return p, cost, errors


tolerance = 1e-5
