"""A double pendulum: four numbers in a little array, step after step.

Source: M. Newman, "Computational Physics", exercise 8.15; many course notebooks.
"""

import numpy as np

sizes = {"small": {"steps": 300}, "large": {"steps": 12_000}}


def derivative(r, g=9.81, length=0.4):
    t1, t2, w1, w2 = r
    d = 3 - np.cos(2 * t1 - 2 * t2)
    f1 = -(w1**2 * np.sin(2 * t1 - 2 * t2) + 2 * w2**2 * np.sin(t1 - t2) + g / length * (np.sin(t1 - 2 * t2) + 3 * np.sin(t1))) / d
    f2 = (4 * w1**2 * np.sin(t1 - t2) + w2**2 * np.sin(2 * t1 - 2 * t2) + 2 * g / length * (np.sin(2 * t1 - t2) - np.sin(t2))) / d
    return np.array([w1, w2, f1, f2], float)


def main(steps, h=1e-3):
    r = np.array([np.pi / 2, np.pi / 2, 0, 0], float)
    path = np.empty((steps, 4))
    for i in range(steps):
        path[i] = r
        k1 = h * derivative(r)
        k2 = h * derivative(r + 0.5 * k1)
        k3 = h * derivative(r + 0.5 * k2)
        k4 = h * derivative(r + k3)
        r += (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return path


tolerance = 1e-5
