"""
Mandelbrot
==========

Real and imaginary parts in arrays of their own, and masks that say which points still move.
"""

import bh as np
import matplotlib.pyplot as plt


def mandelbrot(size=500, steps=40):
    real, imaginary = np.linspace(-2.1, 0.7, size), np.linspace(-1.2, 1.2, size)
    x0, y0 = real[None, :] + 0 * imaginary[:, None], imaginary[:, None] + 0 * real[None, :]
    x, y, count = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    for _ in range(steps):
        inside = x * x + y * y < 4
        x, y = np.where(inside, x * x - y * y + x0, x), np.where(inside, 2 * x * y + y0, y)
        count += inside
    return count


# %%
plt.imshow(mandelbrot(), cmap="magma", extent=(-2.1, 0.7, -1.2, 1.2))
plt.xlabel("real part")
plt.ylabel("imaginary part")
plt.colorbar(label="steps")
