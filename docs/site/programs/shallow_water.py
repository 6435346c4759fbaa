"""
Shallow water
=============

A drop falls into a basin: height and the two flows of the linear shallow-water equations, on staggered grids.
"""

import bh as np
import matplotlib.pyplot as plt


def water(size=700, steps=150, step=0.4):
    x = np.linspace(-1, 1, size)
    height = 1 + 0.5 * np.exp(-80 * (x[:, None] ** 2 + x[None, :] ** 2))
    down, right = np.zeros((size + 1, size)), np.zeros((size, size + 1))
    for _ in range(steps):
        down[1:-1] -= step * (height[1:] - height[:-1])
        right[:, 1:-1] -= step * (height[:, 1:] - height[:, :-1])
        height -= step * (down[1:] - down[:-1] + right[:, 1:] - right[:, :-1])
    return height


# %%
plt.imshow(water(), cmap="viridis")
plt.xlabel("column")
plt.ylabel("row")
plt.colorbar(label="height of the water")
