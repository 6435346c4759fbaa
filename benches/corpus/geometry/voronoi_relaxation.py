"""Evenly spread points by Lloyd's relaxation on a grid of pixels, and distances by jump flooding.

Source: A. Secord, "Weighted Voronoi Stippling" (2002); G. Rong, T. Tan, "Jump Flooding" (2006).
"""

import numpy as np

sizes = {"small": {"n": 32, "points": 10, "turns": 3}, "large": {"n": 160, "points": 100, "turns": 5}}


def flood(n, seeds):
    owner = np.full((n, n), -1)
    owner[seeds[:, 0], seeds[:, 1]] = np.arange(len(seeds))
    y, x = np.indices((n, n))
    best = np.where(owner >= 0, 0, 10**9)
    step = n // 2
    while step >= 1:
        for dy in (-step, 0, step):
            for dx in (-step, 0, step):
                candidate = np.full_like(owner, -1)
                ys, yd = slice(max(dy, 0), n + min(dy, 0)), slice(max(-dy, 0), n + min(-dy, 0))
                xs, xd = slice(max(dx, 0), n + min(dx, 0)), slice(max(-dx, 0), n + min(-dx, 0))
                candidate[yd, xd] = owner[ys, xs]
                d = np.where(candidate >= 0, (y - seeds[candidate, 0]) ** 2 + (x - seeds[candidate, 1]) ** 2, 10**9)
                closer = d < best
                best[closer] = d[closer]
                owner[closer] = candidate[closer]
        step //= 2
    return owner, best


def main(n, points, turns):
    rng = np.random.default_rng(31)
    y, x = np.mgrid[0:n, 0:n] + 0.5
    density = np.exp(-((x - n / 2) ** 2 + (y - n / 2) ** 2) / (n / 2) ** 2)
    p = rng.uniform(0, n, (points, 2))
    pixels = np.stack([y, x], axis=-1).reshape(-1, 2)
    weights = density.ravel()
    for _ in range(turns):
        d2 = ((pixels[:, None, :] - p[None, :, :]) ** 2).sum(-1)
        near = d2.argmin(axis=1)
        mass = np.bincount(near, weights=weights, minlength=points)
        for axis in (0, 1):
            p[:, axis] = np.bincount(near, weights=weights * pixels[:, axis], minlength=points) / np.maximum(mass, 1e-12)
    seeds = np.clip(p.astype(int), 0, n - 1)
    owner, best = flood(n, seeds)
    return p, mass, best, np.sqrt(best).max()


tolerance = 1e-7
