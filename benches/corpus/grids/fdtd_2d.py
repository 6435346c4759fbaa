"""Maxwell's equations in two dimensions by Yee's scheme, with a source in one row.

Source: NPBench (ETH Zürich), kernel fdtd_2d, of PolyBench; A. Taflove, "Computational Electrodynamics".
"""

import numpy as np

sizes = {"small": {"nx": 100, "ny": 120, "tmax": 20}, "large": {"nx": 500, "ny": 600, "tmax": 60}}


def inputs(nx, ny, tmax):
    ex = np.fromfunction(lambda i, j: (i * (j + 1)) / nx, (nx, ny))
    ey = np.fromfunction(lambda i, j: (i * (j + 2)) / ny, (nx, ny))
    hz = np.fromfunction(lambda i, j: (i * (j + 3)) / nx, (nx, ny))
    fict = np.arange(float(tmax))
    return {"tmax": tmax, "ex": ex, "ey": ey, "hz": hz, "fict": fict}


def main(tmax, ex, ey, hz, fict):
    for t in range(tmax):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz
