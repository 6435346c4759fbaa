"""A thousand spiking neurons, excitatory and inhibitory, for a second.

Source: E. Izhikevich, "Simple Model of Spiking Neurons" (2003), the program at its end.
"""

import numpy as np

sizes = {"small": {"ne": 80, "ni": 20, "ms": 50}, "large": {"ne": 800, "ni": 200, "ms": 300}}


def main(ne, ni, ms):
    rng = np.random.default_rng(0)
    re, ri = rng.random(ne), rng.random(ni)
    a = np.concatenate([0.02 * np.ones(ne), 0.02 + 0.08 * ri])
    b = np.concatenate([0.2 * np.ones(ne), 0.25 - 0.05 * ri])
    c = np.concatenate([-65 + 15 * re**2, -65 * np.ones(ni)])
    d = np.concatenate([8 - 6 * re**2, 2 * np.ones(ni)])
    S = np.hstack([0.5 * rng.random((ne + ni, ne)), -rng.random((ne + ni, ni))])
    v = -65 * np.ones(ne + ni)
    u = b * v
    times, who = [], []
    for t in range(ms):
        I = np.concatenate([5 * rng.standard_normal(ne), 2 * rng.standard_normal(ni)])
        fired = np.where(v >= 30)[0]
        times.append(np.full(fired.size, t))
        who.append(fired)
        v[fired] = c[fired]
        u[fired] += d[fired]
        I += S[:, fired].sum(axis=1)
        v += 0.5 * (0.04 * v**2 + 5 * v + 140 - u + I)
        v += 0.5 * (0.04 * v**2 + 5 * v + 140 - u + I)
        u += a * (b * v - u)
    who = np.concatenate(who)
    return np.bincount(who, minlength=ne + ni), np.concatenate(times).size


tolerance = 1e-6
