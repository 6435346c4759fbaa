"""
K-nearest neighbours
====================

Which of three groups is each point of a plane nearest to? Distances to all known points, and the smallest of each row.
"""

import bh as np
import matplotlib.pyplot as plt


def nearest(known=240, side=140):
    t = np.arange(known)
    group = t % 3
    angle = group * 2.0 + 0.02 * t
    radius = 0.4 + 0.5 * ((t * 0.618033988) % 1)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    line = np.linspace(-1, 1, side)
    px = (line[None, :] + 0 * line[:, None]).reshape(-1, 1)
    py = (line[:, None] + 0 * line[None, :]).reshape(-1, 1)
    apart = (px - x[None, :]) ** 2 + (py - y[None, :]) ** 2
    return group[apart.argmin(axis=1)].reshape(side, side)


# %%
plt.imshow(nearest(), origin="lower", extent=(-1, 1, -1, 1), cmap="Set2")
plt.xlabel("x")
plt.ylabel("y")
plt.colorbar(label="class")
