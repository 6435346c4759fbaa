"""The loops of laplace_until by Numba."""

import numpy as np
from numba import njit


@njit(cache=False)
def solve(p, y, dx, dy, target):
    ny, nx = p.shape
    steps = 0
    change = 1.0
    pn = p.copy()
    while change > target:
        pn[:] = p
        for i in range(1, ny - 1):
            for j in range(1, nx - 1):
                p[i, j] = (dy**2 * (pn[i, j + 1] + pn[i, j - 1]) + dx**2 * (pn[i + 1, j] + pn[i - 1, j])) / (2 * (dx**2 + dy**2))
        p[:, 0] = 0
        p[:, -1] = y
        p[0, :] = p[1, :]
        p[-1, :] = p[-2, :]
        up = 0.0
        down = 0.0
        for i in range(ny):
            for j in range(nx):
                up += abs(p[i, j]) - abs(pn[i, j])
                down += abs(pn[i, j])
        change = up / down
        steps += 1
    return steps


def main(nx, ny, target):
    p = np.zeros((ny, nx))
    y = np.linspace(0, 1, ny)
    p[:, -1] = y
    p[0, :] = p[1, :]
    p[-1, :] = p[-2, :]
    steps = solve(p, y, 2 / (nx - 1), 1 / (ny - 1), target)
    return p, steps
