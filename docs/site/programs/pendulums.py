"""
Many pendulums
==============

A driven pendulum for each pair of starting angle and speed, all at once. The colour is the angle after some periods of the drive.
"""

import bh as np
import matplotlib.pyplot as plt


def pendulums(side=300, steps=300, step=0.02):
    angle = np.linspace(-3, 3, side)[None, :] + np.zeros((side, 1))
    speed = np.linspace(-2, 2, side)[:, None] + np.zeros((1, side))
    for number in range(steps):
        speed = speed + step * (0.5 * np.cos(0.7 * step * number) - 0.2 * speed - np.sin(angle))
        angle = angle + step * speed
    return (angle + np.pi) % (2 * np.pi) - np.pi


# %%
plt.imshow(pendulums(), origin="lower", extent=(-3, 3, -2, 2), aspect="auto", cmap="twilight")
plt.xlabel("angle at the start")
plt.ylabel("speed at the start")
plt.colorbar(label="angle at the end")
