"""Periods of a star from unevenly spaced observations, and its folded light curve.

Source: J. VanderPlas, "Understanding the Lomb-Scargle Periodogram" (2018).
"""

import numpy as np

sizes = {"small": {"n": 60, "frequencies": 200}, "large": {"n": 400, "frequencies": 8000}}


def main(n, frequencies):
    rng = np.random.default_rng(28)
    t = np.sort(rng.uniform(0, 100, n))
    y = 10 + np.sin(2 * np.pi * t / 3.7) + 0.4 * np.cos(4 * np.pi * t / 3.7) + rng.normal(0, 0.3, n)
    dy = rng.uniform(0.2, 0.4, n)
    f = np.linspace(0.01, 2, frequencies)
    w = dy**-2 / np.sum(dy**-2)
    yc = y - w @ y
    omega = 2 * np.pi * f[:, None]
    tau = np.arctan2((w * np.sin(2 * omega * t)).sum(axis=1), (w * np.cos(2 * omega * t)).sum(axis=1))[:, None] / (2 * omega)
    c, s = np.cos(omega * (t - tau)), np.sin(omega * (t - tau))
    power = ((w * yc * c).sum(axis=1) ** 2 / (w * c**2).sum(axis=1) + (w * yc * s).sum(axis=1) ** 2 / (w * s**2).sum(axis=1)) / (w * yc**2).sum()
    best = f[np.argmax(power)]
    phase = (t * best) % 1
    order = np.argsort(phase)
    bins = np.linspace(0, 1, 11)
    where = np.digitize(phase, bins) - 1
    curve = np.array([np.average(y[where == b], weights=dy[where == b] ** -2) if (where == b).any() else np.nan for b in range(10)])
    return power, best, phase[order][:10], curve
