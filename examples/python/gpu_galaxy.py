"""
A galaxy on a GPU
=================

Stars attract each other. ``with np.using("gpu")`` puts new arrays on a GPU; without one, the cores compute them. The time of a step counts
because ``np.wait`` waits for its results.
"""

import sys
import time

import bh as np
import matplotlib.pyplot as plt

STARS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


def start(stars):
    """Positions and velocities of a disc that turns."""
    turn = np.arange(stars) * 2.399963
    radius = np.sqrt((np.arange(stars) + 0.5) / stars)
    place = np.stack([radius * np.cos(turn), radius * np.sin(turn)])
    speed = np.stack([-np.sin(turn), np.cos(turn)]) * np.sqrt(radius) * 0.9
    return place, speed


def step(place, speed, time_step=0.005, softening=1e-3):
    """Positions and velocities after a time step. The arrays over all pairs of stars live within kernels."""
    apart = place[:, None, :] - place[:, :, None]
    pull = apart / ((apart**2).sum(axis=0) + softening) ** 1.5
    speed = speed + time_step * pull.mean(axis=2)
    return place + time_step * speed, speed


with np.using("gpu"):
    place, speed = start(STARS)
    momentum = speed.sum(axis=1)
    for number in range(20):
        begin = time.perf_counter()
        place, speed = step(place, speed)
        np.wait(place, speed)
        if number in (0, 19):
            print(f"step {number + 1}: {1000 * (time.perf_counter() - begin):.1f} ms")
    # Forces between pairs cancel.
    assert np.allclose(speed.sum(axis=1), momentum, atol=1e-9 * STARS)
    print(f"{STARS} stars; the devices are {np.devices() or 'the cores'}")

# %%
# The disc after twenty steps, with colours by speed:

figure, axes = plt.subplots()
points = axes.scatter(*place, c=np.sqrt((speed**2).sum(axis=0)), s=3)
axes.set(xlabel="x", ylabel="y", aspect="equal", title="Positions")
figure.colorbar(points, label="speed")
