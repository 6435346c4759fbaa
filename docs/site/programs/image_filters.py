"""
Image filters
=============

A blur and the strength of edges, of a picture with noise. The blurred picture needs no memory of its own.
"""

import bh as np
import matplotlib.pyplot as plt


def edges(size=1500):
    x = np.linspace(-3, 3, size)
    picture = (np.sin(x[:, None] ** 2 + 2 * x[None, :] ** 2) > 0) * 1.0
    picture = picture + 0.3 * ((np.arange(size * size) * 0.618033988) % 1).reshape(size, size)
    rows = (picture[:-4] + 4 * picture[1:-3] + 6 * picture[2:-2] + 4 * picture[3:-1] + picture[4:]) / 16
    blur = (rows[:, :-4] + 4 * rows[:, 1:-3] + 6 * rows[:, 2:-2] + 4 * rows[:, 3:-1] + rows[:, 4:]) / 16
    across = blur[1:-1, 2:] - blur[1:-1, :-2]
    down = blur[2:, 1:-1] - blur[:-2, 1:-1]
    return np.sqrt(across**2 + down**2)


# %%
plt.imshow(edges(), cmap="gray")
plt.xlabel("column")
plt.ylabel("row")
plt.colorbar(label="strength of the edge")
