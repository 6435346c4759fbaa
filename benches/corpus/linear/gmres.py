"""GMRES with Givens's rotations and restarts for an advection-diffusion matrix.

Source: Y. Saad, "Iterative Methods for Sparse Linear Systems", algorithm 6.9.
"""

import numpy as np

sizes = {"small": {"n": 100, "m": 20}, "large": {"n": 4000, "m": 60}}


def multiply(v, wind):
    out = 2.5 * v
    out[1:] -= (1 + wind) * v[:-1]
    out[:-1] -= (1 - wind) * v[1:]
    return out


def cycle(b, x, m, wind, tol):
    r = b - multiply(x, wind)
    beta = np.linalg.norm(r)
    Q = np.zeros((m + 1, len(b)))
    H = np.zeros((m + 1, m))
    cs, sn, e = np.zeros(m), np.zeros(m), np.zeros(m + 1)
    e[0] = beta
    Q[0] = r / beta
    for k in range(m):
        w = multiply(Q[k], wind)
        H[: k + 1, k] = Q[: k + 1] @ w
        w -= H[: k + 1, k] @ Q[: k + 1]
        H[k + 1, k] = np.linalg.norm(w)
        Q[k + 1] = w / H[k + 1, k]
        for i in range(k):
            H[i, k], H[i + 1, k] = cs[i] * H[i, k] + sn[i] * H[i + 1, k], -sn[i] * H[i, k] + cs[i] * H[i + 1, k]
        t = np.hypot(H[k, k], H[k + 1, k])
        cs[k], sn[k] = H[k, k] / t, H[k + 1, k] / t
        H[k, k], H[k + 1, k] = t, 0.0
        e[k + 1] = -sn[k] * e[k]
        e[k] = cs[k] * e[k]
        if abs(e[k + 1]) < tol:
            break
    y = np.linalg.solve(H[: k + 1, : k + 1], e[: k + 1])
    return x + y @ Q[: k + 1], abs(e[k + 1])


def main(n, m, wind=0.2):
    b = np.random.default_rng(8).standard_normal(n)
    x = np.zeros(n)
    error, cycles = np.inf, 0
    while error > 1e-8 and cycles < 20:
        x, error = cycle(b, x, m, wind, 1e-8)
        cycles += 1
    return x, cycles, np.linalg.norm(b - multiply(x, wind)) < 1e-6


tolerance = 1e-6
