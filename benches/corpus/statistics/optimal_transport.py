"""Optimal transport between two weighted clouds of points with an entropy term, by Sinkhorn's scaling of rows and columns.

Source: M. Cuturi, "Sinkhorn Distances" (2013); G. Peyré, M. Cuturi, "Computational Optimal Transport", section 4.2.
"""

import numpy as np

sizes = {"small": {"n": 40}, "large": {"n": 700}}


def inputs(n):
    rng = np.random.default_rng(4)
    a, b = rng.random((2, n))
    return {"x": rng.random((n, 2)), "y": rng.random((n, 2)) + 0.2, "a": a / a.sum(), "b": b / b.sum()}


def main(x, y, a, b, blur=0.05):
    cost = ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)
    kernel = np.exp(-cost / blur)
    u = np.ones_like(a)
    for turn in range(100):
        v = b / (kernel.T @ u)
        u = a / (kernel @ v)
        if turn % 10 == 9 and np.linalg.norm(v * (kernel.T @ u) - b) < 1e-12:
            break
    plan = u[:, None] * kernel * v[None, :]
    return plan.sum(axis=0), (plan * cost).sum(), plan @ y / a[:, None]
