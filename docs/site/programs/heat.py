"""
Heat in a plate
===============

Every point becomes the mean of its four neighbours, again and again.
"""

import bh as np
import matplotlib.pyplot as plt


def heat(size=800, steps=400):
    grid = np.zeros((size, size))
    grid[100:300, 150:350] = grid[450:700, 450:500] = grid[500:550, 200:650] = 100.0
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
    return grid


# %%
plt.imshow(heat(), cmap="inferno")
plt.xlabel("column")
plt.ylabel("row")
plt.colorbar(label="temperature")
