"""Sod's shock tube with the HLL flux: states of three variables in one array, a time step that depends on the fastest wave.

Source: E. F. Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics", chapter 10.
"""

import numpy as np

sizes = {"small": {"n": 200, "end": 0.1}, "large": {"n": 4000, "end": 0.02}}

GAMMA = 1.4


def primitives(U):
    rho, m, E = U
    u = m / rho
    p = (GAMMA - 1) * (E - 0.5 * rho * u * u)
    return rho, u, p


def flux(U):
    rho, u, p = primitives(U)
    return np.array([rho * u, rho * u * u + p, u * (U[2] + p)])


def hll(UL, UR):
    rl, ul, pl = primitives(UL)
    rr, ur, pr = primitives(UR)
    al, ar = np.sqrt(GAMMA * pl / rl), np.sqrt(GAMMA * pr / rr)
    sl = np.minimum(ul - al, ur - ar)
    sr = np.maximum(ul + al, ur + ar)
    FL, FR = flux(UL), flux(UR)
    middle = (sr * FL - sl * FR + sl * sr * (UR - UL)) / (sr - sl)
    return np.where(sl >= 0, FL, np.where(sr <= 0, FR, middle))


def main(n, end):
    x = (np.arange(n) + 0.5) / n
    rho = np.where(x < 0.5, 1.0, 0.125)
    p = np.where(x < 0.5, 1.0, 0.1)
    U = np.array([rho, np.zeros(n), p / (GAMMA - 1)])
    t, steps = 0.0, 0
    while t < end:
        rho, u, p = primitives(U)
        dt = min(0.9 / n / np.max(np.abs(u) + np.sqrt(GAMMA * p / rho)), end - t)
        G = np.hstack([U[:, :1], U, U[:, -1:]])
        F = hll(G[:, :-1], G[:, 1:])
        U -= dt * n * (F[:, 1:] - F[:, :-1])
        t += dt
        steps += 1
    return U, steps
