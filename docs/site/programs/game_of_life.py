"""
Game of life
============

Eight shifted views are added; comparisons and masks decide who lives.
"""

import bh as np
import matplotlib.pyplot as plt


def life(size=1000, steps=40):
    # A mixture of bits without a pattern.
    place = np.arange(size * size) * 2654435761 % 4294967296
    place = (place ^ (place >> 15)) * 2246822519 % 4294967296
    cells = ((place >> 9) % 4 == 0).reshape(size, size).astype(np.int8)
    for _ in range(steps):
        near = cells[:-2, :-2] + cells[:-2, 1:-1] + cells[:-2, 2:] + cells[1:-1, :-2]
        near = near + cells[1:-1, 2:] + cells[2:, :-2] + cells[2:, 1:-1] + cells[2:, 2:]
        cells[1:-1, 1:-1] = (near == 3) | ((near == 2) & (cells[1:-1, 1:-1] == 1))
    return cells


# %%
plt.imshow(life()[:200, :200], cmap="binary")
plt.xlabel("column")
plt.ylabel("row")
plt.title("Cells that live, of a corner")
