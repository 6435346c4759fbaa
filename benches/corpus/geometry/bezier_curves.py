"""Bézier curves by de Casteljau's steps and by Bernstein's polynomials, B-splines, lengths and curvatures.

Source: G. Farin, "Curves and Surfaces for CAGD", chapters 4 to 8.
"""

import math

import numpy as np

sizes = {"small": {"m": 200, "curves": 10}, "large": {"m": 2000, "curves": 150}}


def casteljau(P, t):
    points = np.repeat(P[None], len(t), axis=0)
    while points.shape[1] > 1:
        points = (1 - t)[:, None, None] * points[:, :-1] + t[:, None, None] * points[:, 1:]
    return points[:, 0]


def bspline(knots, degree, t):
    N = ((knots[:-1, None] <= t) & (t < knots[1:, None])).astype(float)
    for k in range(1, degree + 1):
        left = knots[k:-1] - knots[: -k - 1]
        right = knots[k + 1 :] - knots[1:-k]
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(left[:, None] > 0, (t - knots[: -k - 1, None]) / left[:, None], 0)
            b = np.where(right[:, None] > 0, (knots[k + 1 :, None] - t) / right[:, None], 0)
        N = a * N[:-1] + b * N[1:]
    return N


def main(m, curves, degree=5):
    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, m, endpoint=False)
    basis = np.array([math.comb(degree, i) * t**i * (1 - t) ** (degree - i) for i in range(degree + 1)])
    lengths, bends, apart = [], [], []
    for _ in range(curves):
        P = rng.uniform(0, 10, (degree + 1, 2))
        c = casteljau(P, t)
        apart.append(np.abs(basis.T @ P - c).max() < 1e-9)
        d1 = np.gradient(c, t, axis=0)
        d2 = np.gradient(d1, t, axis=0)
        speed = np.hypot(d1[:, 0], d1[:, 1])
        curvature = np.abs(d1[:, 0] * d2[:, 1] - d1[:, 1] * d2[:, 0]) / np.maximum(speed, 1e-9) ** 3
        lengths.append(np.sqrt((np.diff(c, axis=0) ** 2).sum(axis=1)).sum())
        bends.append(np.median(curvature))
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, 12), np.ones(3)])
    N = bspline(knots, 3, t)
    spline = N.T @ rng.uniform(0, 1, (N.shape[0], 3))
    return np.array(lengths), np.array(bends), all(apart), spline, N.sum(axis=0)
