"""The wave equation on a square with reflecting walls, its neighbours taken from a padded copy.

Source: H. P. Langtangen, S. Linge, "Finite Difference Computing with PDEs", chapter 2 (2D wave equation, vectorised).
"""

import numpy as np

sizes = {"small": {"n": 60, "steps": 40}, "large": {"n": 600, "steps": 40}}


def main(n, steps, c=1.0):
    x = np.linspace(0, 1, n)
    X, Y = np.meshgrid(x, x, indexing="ij")
    dx = x[1] - x[0]
    dt = 0.5 * dx / c
    u = np.exp(-100 * ((X - 0.3) ** 2 + (Y - 0.4) ** 2))
    before = u.copy()
    energy = []
    for _ in range(steps):
        p = np.pad(u, 1, mode="edge")
        lap = (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u) / dx**2
        u, before = 2 * u - before + (c * dt) ** 2 * lap, u
        energy.append(np.sum(((u - before) / dt) ** 2) * dx**2)
    return u, np.array(energy)
