"""Conjugate gradients with a Jacobi preconditioner on a matrix-free Laplacian, until the residual is small.

Source: J. Shewchuk, "An Introduction to the Conjugate Gradient Method Without the Agonizing Pain" (1994).
"""

import numpy as np

sizes = {"small": {"n": 24}, "large": {"n": 250}}


def apply(u, k):
    out = 4 * u + k * u
    out[1:, :] -= u[:-1, :]
    out[:-1, :] -= u[1:, :]
    out[:, 1:] -= u[:, :-1]
    out[:, :-1] -= u[:, 1:]
    return out


def main(n, tol=1e-8):
    rng = np.random.default_rng(1)
    k = 0.02 * rng.random((n, n))
    b = rng.standard_normal((n, n))
    x = np.zeros_like(b)
    r = b - apply(x, k)
    diagonal = 4 + k
    z = r / diagonal
    p = z.copy()
    rz = np.vdot(r, z)
    history = []
    while np.linalg.norm(r) > tol * np.linalg.norm(b):
        Ap = apply(p, k)
        alpha = rz / np.vdot(p, Ap)
        x += alpha * p
        r -= alpha * Ap
        z = r / diagonal
        new = np.vdot(r, z)
        p = z + (new / rz) * p
        rz = new
        history.append(float(rz))
    return x, len(history), history[0]


tolerance = 1e-7
