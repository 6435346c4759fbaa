"""
N-body
======

All pairs of bodies attract each other. Of the arrays over all pairs only the vectors from body to body and a power of their lengths
get memory. The others live within kernels.
"""

import bh as np
import matplotlib.pyplot as plt


def nbody(bodies=900, steps=8, step=1e-3):
    t = np.linspace(0, 40, bodies)
    place = np.stack([t * np.cos(t), t * np.sin(t), 0.1 * t]) / 40
    speed = np.stack([-np.sin(t), np.cos(t), 0 * t])
    for _ in range(steps):
        apart = place[:, None, :] - place[:, :, None]
        pull = apart / ((apart**2).sum(axis=0) + 1e-2) ** 1.5
        speed = speed + step * pull.sum(axis=2)
        place = place + step * speed
    return place


# %%
x, y, height = nbody()
plt.scatter(x, y, c=height, s=4)
plt.xlabel("x")
plt.ylabel("y")
plt.colorbar(label="z")
plt.axis("equal")
