"""The loops of nbody_leapfrog by Numba."""

import numpy as np
from numba import njit


@njit
def accelerations(pos, mass, G, softening):
    n = pos.shape[0]
    acc = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
            f = G * mass[j, 0] * (dx * dx + dy * dy + dz * dz + softening * softening) ** -1.5
            acc[i, 0] += f * dx
            acc[i, 1] += f * dy
            acc[i, 2] += f * dz
    return acc


@njit
def energy(pos, vel, mass, G):
    n = pos.shape[0]
    ke, pe = 0.0, 0.0
    for i in range(n):
        for c in range(3):
            ke += 0.5 * mass[i, 0] * vel[i, c] ** 2
        for j in range(i + 1, n):
            d = np.sqrt((pos[j, 0] - pos[i, 0]) ** 2 + (pos[j, 1] - pos[i, 1]) ** 2 + (pos[j, 2] - pos[i, 2]) ** 2)
            pe -= G * mass[i, 0] * mass[j, 0] / d
    return ke, pe


def main(N, steps, dt=0.01, softening=0.1, G=1.0):
    rng = np.random.default_rng(17)
    mass = 20.0 * np.ones((N, 1)) / N
    pos = rng.standard_normal((N, 3))
    vel = rng.standard_normal((N, 3))
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = accelerations(pos, mass, G, softening)
    KE, PE = np.ndarray(steps + 1), np.ndarray(steps + 1)
    KE[0], PE[0] = energy(pos, vel, mass, G)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = accelerations(pos, mass, G, softening)
        vel += acc * dt / 2.0
        KE[i + 1], PE[i + 1] = energy(pos, vel, mass, G)
    return pos, vel, KE, PE
