"""First passages of random walks, a gambler's ruin, and distances in the plane.

Source: W. McKinney, "Python for Data Analysis", section 4.7 (random walks); W. Feller, volume I.
"""

import numpy as np

sizes = {"small": {"walks": 200, "steps": 200}, "large": {"walks": 5000, "steps": 1000}}


def main(walks, steps):
    rng = np.random.default_rng(12345)
    draws = rng.integers(0, 2, size=(walks, steps))
    path = np.where(draws > 0, 1, -1).cumsum(axis=1)
    hits = (np.abs(path) >= 15).any(axis=1)
    times = (np.abs(path[hits]) >= 15).argmax(axis=1)
    money = np.full(walks, 10)
    alive = np.ones(walks, dtype=bool)
    lifetime = np.zeros(walks, dtype=int)
    step = 0
    while alive.any() and step < steps:
        money[alive] += np.where(draws[alive, step] == 1, 1, -1)
        lifetime[alive] += 1
        alive &= money > 0
        step += 1
    angle = rng.uniform(0, 2 * np.pi, (walks, steps // 4))
    z = np.exp(1j * angle).cumsum(axis=1)
    msd = (np.abs(z) ** 2).mean(axis=0)
    crossings = (np.sign(path[:, 1:]) != np.sign(path[:, :-1])).sum(axis=1)
    return path.max(), hits.sum(), times.mean(), np.bincount(lifetime)[:50], msd, crossings.mean()
