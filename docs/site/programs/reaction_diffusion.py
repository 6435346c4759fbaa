"""
Reaction and diffusion
======================

Two substances spread and react (the Gray-Scott model). Neighbours come by ``roll``.
"""

import bh as np
import matplotlib.pyplot as plt


def reaction(size=256, steps=400, feed=0.037, kill=0.06):
    u, v = np.ones((size, size)), np.zeros((size, size))
    middle = slice(size // 2 - 12, size // 2 + 12)
    u[middle, middle], v[middle, middle] = 0.5, 0.25

    def spread(field):
        around = np.roll(field, 1, 0) + np.roll(field, -1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 1)
        return around - 4 * field

    for _ in range(steps):
        rate = u * v * v
        u, v = u + 0.2 * spread(u) - rate + feed * (1 - u), v + 0.1 * spread(v) + rate - (feed + kill) * v
    return v


# %%
plt.imshow(reaction(), cmap="cividis")
plt.xlabel("column")
plt.ylabel("row")
plt.colorbar(label="second substance")
