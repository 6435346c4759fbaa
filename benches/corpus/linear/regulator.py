"""A linear-quadratic regulator: Riccati's equation by iteration, and the cost of a run with the feedback that it gives.

Source: D. P. Bertsekas, "Dynamic Programming and Optimal Control", section 3.1; courses on control and reinforcement learning.
"""

import numpy as np

sizes = {"small": {"n": 4}, "large": {"n": 80}}


def inputs(n):
    rng = np.random.default_rng(10)
    return {"a": np.eye(n) + 0.3 / n * rng.normal(size=(n, n)), "b": rng.normal(size=(n, 2))}


def main(a, b):
    n = len(a)
    q, r, p = np.eye(n), np.eye(2), np.eye(n)
    for _ in range(60):
        gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = q + a.T @ p @ (a - b @ gain)
    x, cost = np.ones(n), 0.0
    for _ in range(30):
        u = -gain @ x
        cost += x @ q @ x + u @ r @ u
        x = a @ x + b @ u
    return p.trace(), cost, np.linalg.norm(x)
