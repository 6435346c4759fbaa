"""
Heat in a plate
===============

Every point becomes the mean of its four neighbours, again and again.
"""

import matplotlib.pyplot as plt
from beside import compare


def heat(np, size=1200, steps=100):
    grid = np.zeros((size, size))
    grid[0], grid[-1] = 40.0, -273.15
    for _ in range(steps):
        grid[1:-1, 1:-1] = 0.25 * (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:])
    return grid


field = compare(heat)
plt.imshow(field[:40], cmap="inferno", aspect="auto")
plt.colorbar(label="temperature")
