"""
An ocean channel
================

A barotropic jet on a turning Earth: a current along a channel with friction, wind and a Coriolis force that grows to the
north. The channel is a ring, so arrays are rolled along it.
"""

import bh as np
import matplotlib.pyplot as plt


def channel(rows=200, columns=400, steps=150, step=0.02):
    y, x = np.linspace(-1, 1, rows)[:, None], np.linspace(0, 4 * np.pi, columns)[None, :]
    turning = 1 + 0.4 * y
    wind = 0.05 * np.cos(np.pi * y / 2)
    u = np.exp(-8 * y**2) * (1 + 0.05 * np.sin(x))
    v = 0.05 * np.cos(x) * np.cos(np.pi * y / 2)
    level = 0.1 * np.sin(x) * np.cos(np.pi * y / 2)
    east = lambda a: (np.roll(a, -1, axis=1) - np.roll(a, 1, axis=1)) * 4
    north = lambda a: (np.roll(a, -1, axis=0) - np.roll(a, 1, axis=0)) * 4
    walls = 1.0 * (abs(y) < 0.98)
    for _ in range(steps):
        u = u + step * (turning * v - 0.1 * east(level) + wind - 0.02 * u)
        v = (v - step * (turning * u + 0.1 * north(level) + 0.02 * v)) * walls
        level = level - 0.1 * step * (east(u) + north(v))
    return level


# %%
plt.imshow(channel(), cmap="coolwarm", origin="lower")
plt.xlabel("along the channel")
plt.ylabel("across")
plt.colorbar(label="level of the sea", orientation="horizontal")
