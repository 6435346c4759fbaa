"""Poisson's equation by multigrid V-cycles with red-black relaxation, until the residual is small.

Source: W. L. Briggs, V. E. Henson, S. F. McCormick, "A Multigrid Tutorial", chapters 3 and 4.
"""

import numpy as np

sizes = {"small": {"k": 5}, "large": {"k": 9}}


def relax(u, f, h, sweeps):
    for _ in range(sweeps):
        for colour in (0, 1):
            for start in (1, 2):
                other = 1 if (start + colour) % 2 else 2
                c = u[start:-1:2, other:-1:2]
                n = u[start - 1 : -2 : 2, other:-1:2][: c.shape[0]]
                s = u[start + 1 :: 2, other:-1:2][: c.shape[0]]
                w = u[start:-1:2, other - 1 : -2 : 2][:, : c.shape[1]]
                e = u[start:-1:2, other + 1 :: 2][:, : c.shape[1]]
                c[...] = 0.25 * (n + s + w + e + h * h * f[start:-1:2, other:-1:2])


def residual(u, f, h):
    r = np.zeros_like(u)
    r[1:-1, 1:-1] = f[1:-1, 1:-1] - (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]) / h**2
    return r


def restrict(r):
    c = np.zeros(((r.shape[0] + 1) // 2,) * 2)
    c[1:-1, 1:-1] = (
        4 * r[2:-2:2, 2:-2:2]
        + 2 * (r[1:-3:2, 2:-2:2] + r[3:-1:2, 2:-2:2] + r[2:-2:2, 1:-3:2] + r[2:-2:2, 3:-1:2])
        + r[1:-3:2, 1:-3:2]
        + r[1:-3:2, 3:-1:2]
        + r[3:-1:2, 1:-3:2]
        + r[3:-1:2, 3:-1:2]
    ) / 16
    return c


def prolong(c):
    n = 2 * c.shape[0] - 1
    f = np.zeros((n, n))
    f[::2, ::2] = c
    f[1::2, ::2] = (c[:-1] + c[1:]) / 2
    f[:, 1::2] = (f[:, :-2:2] + f[:, 2::2]) / 2
    return f


def v_cycle(u, f, h):
    if u.shape[0] <= 5:
        relax(u, f, h, 20)
        return
    relax(u, f, h, 2)
    coarse = restrict(residual(u, f, h))
    e = np.zeros_like(coarse)
    v_cycle(e, coarse, 2 * h)
    u += prolong(e)
    relax(u, f, h, 2)


def main(k):
    n = 2**k + 1
    h = 1 / (n - 1)
    x = np.linspace(0, 1, n)
    f = 2 * np.pi**2 * np.outer(np.sin(np.pi * x), np.sin(np.pi * x))
    u = np.zeros((n, n))
    cycles = 0
    while np.linalg.norm(residual(u, f, h)) * h > 1e-6:
        v_cycle(u, f, h)
        cycles += 1
    return u, cycles, np.abs(u - f / (2 * np.pi**2)).max() < 1e-3
