"""Molecular dynamics of a Lennard-Jones fluid in a periodic box: minimum images, a cut-off, velocity Verlet.

Source: D. Frenkel, B. Smit, "Understanding Molecular Simulation", chapter 4.
"""

import numpy as np

sizes = {"small": {"side": 4, "steps": 20}, "large": {"side": 8, "steps": 20}}


def forces(r, box, cut):
    d = r[:, None, :] - r[None, :, :]
    d -= box * np.round(d / box)
    r2 = np.einsum("ijk,ijk->ij", d, d)
    np.fill_diagonal(r2, np.inf)
    near = r2 < cut**2
    inv6 = np.zeros_like(r2)
    inv6[near] = 1.0 / r2[near] ** 3
    magnitude = np.where(near, 48 * (inv6**2 - 0.5 * inv6) / r2, 0.0)
    potential = 0.5 * np.sum(4 * (inv6**2 - inv6))
    virial = 0.5 * np.sum(magnitude * np.where(near, r2, 0))
    return (magnitude[:, :, None] * d).sum(axis=1), potential, virial


def main(side, steps, density=0.8, dt=0.002, temperature=1.0):
    n = side**3
    box = (n / density) ** (1 / 3)
    grid = (np.arange(side) + 0.5) * box / side
    r = np.array(np.meshgrid(grid, grid, grid)).reshape(3, -1).T.copy()
    rng = np.random.default_rng(5)
    v = rng.normal(0, np.sqrt(temperature), (n, 3))
    v -= v.mean(axis=0)
    f, _, _ = forces(r, box, 2.5)
    log = []
    for _ in range(steps):
        v += 0.5 * dt * f
        r = (r + dt * v) % box
        f, potential, virial = forces(r, box, 2.5)
        v += 0.5 * dt * f
        kinetic = 0.5 * np.sum(v**2)
        log.append([potential, kinetic, (2 * kinetic + virial) / (3 * box**3)])
    return r, v, np.array(log)


tolerance = 1e-7
