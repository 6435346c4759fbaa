"""Gravity among bodies by differences of all pairs, leapfrog, and energies.

Source: P. Mocz, "Create Your Own N-body Simulation (With Python)" (2020); also NPBench's kernel nbody.
"""

import numpy as np

sizes = {"small": {"N": 40, "steps": 20}, "large": {"N": 400, "steps": 20}}


def acceleration(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def energy(pos, vel, mass, G):
    ke = 0.5 * np.sum(np.sum(mass * vel**2))
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r = np.sqrt(dx**2 + dy**2 + dz**2)
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    pe = G * np.sum(np.sum(np.triu(-(mass * mass.T) * inv_r, 1)))
    return ke, pe


def main(N, steps, dt=0.01, softening=0.1, G=1.0):
    rng = np.random.default_rng(17)
    mass = 20.0 * np.ones((N, 1)) / N
    pos = rng.standard_normal((N, 3))
    vel = rng.standard_normal((N, 3))
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = acceleration(pos, mass, G, softening)
    KE, PE = np.ndarray(steps + 1), np.ndarray(steps + 1)
    KE[0], PE[0] = energy(pos, vel, mass, G)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, G, softening)
        vel += acc * dt / 2.0
        KE[i + 1], PE[i + 1] = energy(pos, vel, mass, G)
    return pos, vel, KE, PE
