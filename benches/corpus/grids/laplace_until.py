"""Laplace's equation by Jacobi's iteration, until the relative change is small.

Source: L. A. Barba, G. F. Forsyth, "CFD Python: 12 steps to Navier-Stokes", step 9.
"""

import numpy as np

sizes = {"small": {"nx": 31, "ny": 31, "target": 1e-3}, "large": {"nx": 201, "ny": 201, "target": 1e-4}}


def laplace2d(p, y, dx, dy, l1norm_target):
    l1norm = 1
    steps = 0
    while l1norm > l1norm_target:
        pn = p.copy()
        p[1:-1, 1:-1] = (dy**2 * (pn[1:-1, 2:] + pn[1:-1, 0:-2]) + dx**2 * (pn[2:, 1:-1] + pn[0:-2, 1:-1])) / (2 * (dx**2 + dy**2))
        p[:, 0] = 0
        p[:, -1] = y
        p[0, :] = p[1, :]
        p[-1, :] = p[-2, :]
        l1norm = (np.sum(np.abs(p[:]) - np.abs(pn[:]))) / np.sum(np.abs(pn[:]))
        steps += 1
    return p, steps


def main(nx, ny, target):
    dx = 2 / (nx - 1)
    dy = 1 / (ny - 1)
    p = np.zeros((ny, nx))
    y = np.linspace(0, 1, ny)
    p[:, 0] = 0
    p[:, -1] = y
    p[0, :] = p[1, :]
    p[-1, :] = p[-2, :]
    return laplace2d(p, y, dx, dy, target)
