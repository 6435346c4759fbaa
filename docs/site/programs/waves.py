"""
Waves on a membrane
===================

The wave equation with a leapfrog scheme: two grids, and the Laplacian of one of them.
"""

import bh as np
import matplotlib.pyplot as plt


def waves(size=900, steps=120):
    x = np.linspace(-1, 1, size)
    before = np.exp(-200 * ((x[:, None] - 0.3) ** 2 + x[None, :] ** 2))
    now = before.copy()
    for _ in range(steps):
        after = 2 * now - before
        after[1:-1, 1:-1] += 0.4 * (
            now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4 * now[1:-1, 1:-1]
        )
        before, now = now, after
    return now


# %%
plt.imshow(waves(), cmap="RdBu")
plt.xlabel("column")
plt.ylabel("row")
plt.colorbar(label="displacement")
