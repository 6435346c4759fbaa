"""
Clusters by k-means
===================

Each point belongs to the nearest centre, and each centre moves to the mean of its points.
"""

import bh as np
import matplotlib.pyplot as plt


def clusters(points=100_000, count=6, steps=15):
    number = np.arange(points)
    turn, radius = 2.399963 * number, np.sqrt((number * 0.618033988) % 1)
    group = number % count
    place = np.stack([np.cos(group) * 3 + radius * np.cos(turn), np.sin(2 * group) * 3 + radius * np.sin(turn)])
    centres = place[:, :count] + 0.3
    for _ in range(steps):
        apart = ((place[:, :, None] - centres[:, None, :]) ** 2).sum(axis=0)
        own = (apart == apart.min(axis=1)[:, None]) * 1.0
        centres = (place[:, :, None] * own[None, :, :]).sum(axis=1) / np.maximum(own.sum(axis=0), 1)
    return centres


# %%
x, y = clusters()
plt.scatter(x, y, marker="x")
plt.xlabel("x")
plt.ylabel("y")
plt.title("Centres after fifteen steps")
