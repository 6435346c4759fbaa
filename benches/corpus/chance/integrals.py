"""Integrals in several dimensions by plain sampling, stratified sampling, importance sampling and Halton's points.

Source: W. Press et al., "Numerical Recipes", sections 7.7 to 7.9.
"""

import numpy as np

sizes = {"small": {"n": 2000}, "large": {"n": 400_000}}


def halton(n, base):
    out = np.zeros(n)
    index = np.arange(1, n + 1)
    f = 1.0
    while (index > 0).any():
        f /= base
        out += f * (index % base)
        index //= base
    return out


def f(x):
    return np.prod(1 + 0.5 * np.sin(np.pi * x), axis=-1) * np.exp(-np.sum(x**2, axis=-1))


def main(n):
    rng = np.random.default_rng(2)
    plain = f(rng.random((n, 3)))
    side = int(round(n ** (1 / 3)))
    i, j, k = np.mgrid[0:side, 0:side, 0:side]
    cells = np.stack([i, j, k], axis=-1).reshape(-1, 3)
    stratified = f((cells + rng.random(cells.shape)) / side)
    u = rng.random((n, 3))
    x = -np.log(1 - u * (1 - np.exp(-1)))
    weights = np.exp(-x.sum(axis=1)) / (1 - np.exp(-1)) ** 3
    importance = f(x) / weights
    quasi = f(np.stack([halton(n, b) for b in (2, 3, 5)], axis=1))
    inside = np.count_nonzero(np.linalg.norm(rng.uniform(-1, 1, (n, 4)), axis=1) <= 1)
    return [(v.mean(), v.std() / np.sqrt(v.size)) for v in (plain, stratified, importance, quasi)], 16 * inside / n
