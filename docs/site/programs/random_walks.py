"""
Random walks
============

How far two hundred thousand walks get from their start. The random numbers are NumPy's, for the same seed.
"""

import bh as np
import matplotlib.pyplot as plt


def walks(count=200_000, steps=60):
    random = np.random.default_rng(7)
    x, y, spread = np.zeros(count), np.zeros(count), []
    for _ in range(steps):
        turn = 2 * np.pi * random.random(count)
        x, y = x + np.cos(turn), y + np.sin(turn)
        spread.append(np.sqrt((x * x + y * y).mean()))
    return np.stack(spread)


# %%
spread = walks()
plt.plot(range(1, len(spread) + 1), spread, label="walks")
plt.plot(range(1, len(spread) + 1), np.sqrt(np.arange(1, len(spread) + 1)), "--", label="square root of the steps")
plt.xlabel("steps")
plt.ylabel("distance")
plt.legend()
