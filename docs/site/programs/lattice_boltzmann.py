"""
Lattice Boltzmann flow
======================

Flow past a cylinder: nine directions that particles move in, collisions that pull towards equilibrium.
"""

import bh as np
import matplotlib.pyplot as plt

ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
weights = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]


def equilibrium(density, u, v):
    square = 1.5 * (u * u + v * v)
    along = [3 * (x * u + y * v) for x, y in ways]
    return [w * density * (1 + c + 0.5 * c * c - square) for w, c in zip(weights, along)]


def flow(rows=160, columns=400, steps=400):
    y, x = np.arange(rows)[:, None], np.arange(columns)[None, :]
    solid = (y - rows / 2) ** 2 + (x - columns / 5) ** 2 < (rows / 9) ** 2
    one = np.ones((rows, columns))
    parts = equilibrium(one, 0.1 * one, 0.001 * one)
    for _ in range(steps):
        parts = [np.roll(p, (wy, wx), axis=(0, 1)) for p, (wx, wy) in zip(parts, ways)]
        density = sum(parts)
        u = sum(wx * p for p, (wx, _) in zip(parts, ways)) / density
        v = sum(wy * p for p, (_, wy) in zip(parts, ways)) / density
        rest = equilibrium(density, u, v)
        parts = [np.where(solid, parts[o], p + 1.6 * (r - p)) for p, r, o in zip(parts, rest, opposite)]
    return np.where(solid, 0, np.sqrt(u * u + v * v))


# %%
plt.imshow(flow(), cmap="turbo")
plt.xlabel("along the channel")
plt.ylabel("across")
plt.colorbar(label="speed", orientation="horizontal")
