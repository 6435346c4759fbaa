"""Two clouds of points laid on each other by iterated closest points and the singular value decomposition.

Source: P. Besl, N. McKay (1992); K. Arun et al. (1987); robotics course codes.
"""

import numpy as np

sizes = {"small": {"n": 80}, "large": {"n": 900}}


def main(n, tol=1e-7, limit=30):
    rng = np.random.default_rng(4)
    B = rng.uniform(-1, 1, (n, 3)) * [3, 2, 1]
    angle = 0.15
    R = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    A = (B - [0.05, -0.08, 0.03]) @ R.T
    A += rng.normal(0, 0.002, A.shape)
    src = A.copy()
    error, delta, turns = np.inf, np.inf, 0
    while delta > tol and turns < limit:
        d2 = (src**2).sum(1)[:, None] + (B**2).sum(1)[None, :] - 2 * src @ B.T
        nearest = d2.argmin(axis=1)
        distance = np.sqrt(np.maximum(d2[np.arange(n), nearest], 0))
        keep = distance <= np.quantile(distance, 0.9)
        P, Q = src[keep], B[nearest[keep]]
        U, _, Vt = np.linalg.svd((P - P.mean(0)).T @ (Q - Q.mean(0)))
        S = np.diag([1, 1, np.sign(np.linalg.det(Vt.T @ U.T))])
        rotation = Vt.T @ S @ U.T
        src = src @ rotation.T + (Q.mean(0) - rotation @ P.mean(0))
        new = distance.mean()
        delta = abs(error - new)
        error = new
        turns += 1
    return src, error, turns, np.abs(src - B).max() < 0.2


tolerance = 1e-5
