"""Implicit diffusion in every column of an atmosphere: Thomas's algorithm over the levels, all columns at once.

Source: NPBench (ETH Zürich), kernel vadv in spirit; W. H. Press et al., "Numerical Recipes", section 2.4.
"""

import numpy as np

sizes = {"small": {"ni": 32, "nj": 32, "nk": 20}, "large": {"ni": 160, "nj": 160, "nk": 60}}


def inputs(ni, nj, nk):
    rng = np.random.default_rng(3)
    return {"t": 280 + 10 * rng.random((ni, nj, nk)), "kz": 0.1 + rng.random((ni, nj, nk + 1))}


def main(t, kz, dt=0.5):
    nk = t.shape[2]
    lower = -dt * kz[:, :, :-1]
    upper = -dt * kz[:, :, 1:]
    lower[:, :, 0] = 0
    upper[:, :, -1] = 0
    diagonal = 1 - lower - upper
    cp = np.zeros_like(t)
    dp = np.zeros_like(t)
    cp[:, :, 0] = upper[:, :, 0] / diagonal[:, :, 0]
    dp[:, :, 0] = t[:, :, 0] / diagonal[:, :, 0]
    for k in range(1, nk):
        m = diagonal[:, :, k] - lower[:, :, k] * cp[:, :, k - 1]
        cp[:, :, k] = upper[:, :, k] / m
        dp[:, :, k] = (t[:, :, k] - lower[:, :, k] * dp[:, :, k - 1]) / m
    out = np.empty_like(t)
    out[:, :, -1] = dp[:, :, -1]
    for k in range(nk - 2, -1, -1):
        out[:, :, k] = dp[:, :, k] - cp[:, :, k] * out[:, :, k + 1]
    return out, out.mean(axis=(0, 1))
