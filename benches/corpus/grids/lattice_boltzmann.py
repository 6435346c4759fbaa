"""Flow past a cylinder by the lattice Boltzmann method with nine velocities.

Source: P. Mocz, "Create Your Own Lattice Boltzmann Simulation (With Python)" (2020).
"""

import numpy as np

sizes = {"small": {"nx": 80, "ny": 40, "steps": 10}, "large": {"nx": 400, "ny": 100, "steps": 40}}


def main(nx, ny, steps, rho0=100.0, tau=0.6):
    idxs = np.arange(9)
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    rng = np.random.default_rng(42)
    F = np.ones((ny, nx, 9)) + 0.01 * rng.standard_normal((ny, nx, 9))
    X, Y = np.meshgrid(range(nx), range(ny))
    F[:, :, 3] += 2 * (1 + 0.2 * np.cos(2 * np.pi * X / nx * 4))
    rho = np.sum(F, 2)
    for i in idxs:
        F[:, :, i] *= rho0 / rho
    cylinder = (X - nx / 4) ** 2 + (Y - ny / 2) ** 2 < (ny / 4) ** 2
    for _ in range(steps):
        for i, cx, cy in zip(idxs, cxs, cys):
            F[:, :, i] = np.roll(F[:, :, i], cx, axis=1)
            F[:, :, i] = np.roll(F[:, :, i], cy, axis=0)
        boundary = F[cylinder, :]
        boundary = boundary[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]
        rho = np.sum(F, 2)
        ux = np.sum(F * cxs, 2) / rho
        uy = np.sum(F * cys, 2) / rho
        Feq = np.zeros(F.shape)
        for i, cx, cy, w in zip(idxs, cxs, cys, weights):
            Feq[:, :, i] = rho * w * (1 + 3 * (cx * ux + cy * uy) + 9 * (cx * ux + cy * uy) ** 2 / 2 - 3 * (ux**2 + uy**2) / 2)
        F += -(1.0 / tau) * (F - Feq)
        F[cylinder, :] = boundary
    ux[cylinder] = 0
    uy[cylinder] = 0
    vorticity = (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)) - (np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1))
    vorticity[cylinder] = np.nan
    return F, vorticity
