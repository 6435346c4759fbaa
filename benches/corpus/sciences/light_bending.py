"""Rays of light near a black hole: a bundle with different distances of aim, by the fourth-order method of Runge and Kutta.

Source: J. B. Hartle, "Gravity", section 9.4; programs that draw black holes.
"""

import numpy as np

sizes = {"small": {"rays": 40, "steps": 100}, "large": {"rays": 20000, "steps": 400}}


def main(rays, steps, h=0.1):
    aim = np.linspace(3, 12, rays)
    y = np.stack([np.full(rays, 40.0), np.zeros(rays), -np.ones(rays)])

    def slopes(s):
        r, _, speed = s
        return np.stack([speed, aim / r**2, aim**2 / r**3 - 3 * aim**2 / r**4])

    moving = np.ones(rays, dtype=bool)
    for _ in range(steps):
        k1 = slopes(y)
        k2 = slopes(y + h / 2 * k1)
        k3 = slopes(y + h / 2 * k2)
        k4 = slopes(y + h * k3)
        y = np.where(moving, y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y)
        moving &= (y[0] > 2) & (y[0] < 60)
    caught = y[0] <= 2
    return np.where(caught, 0, y[1]), caught.sum(), aim[~caught].min()
