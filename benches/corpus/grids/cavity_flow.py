"""Flow in a cavity with a moving lid: Navier-Stokes with a pressure that is iterated in each step.

Source: L. A. Barba, G. F. Forsyth, "CFD Python: 12 steps to Navier-Stokes", step 11.
"""

import numpy as np

sizes = {"small": {"n": 31, "nt": 10, "nit": 20}, "large": {"n": 101, "nt": 60, "nit": 50}}


def build_up_b(b, rho, dt, u, v, dx, dy):
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    b[1:-1, 1:-1] = rho * (1 / dt * (ux + vy) - ux**2 - 2 * (uy * vx) - vy**2)
    return b


def pressure_poisson(p, dx, dy, b, nit):
    pn = np.empty_like(p)
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (
            2 * (dx**2 + dy**2)
        ) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


def main(n, nt, nit, rho=1.0, nu=0.1, dt=1e-4):
    dx = dy = 2 / (n - 1)
    u, v, p, b = (np.zeros((n, n)) for _ in range(4))
    for _ in range(nt):
        un, vn = u.copy(), v.copy()
        b = build_up_b(b, rho, dt, u, v, dx, dy)
        p = pressure_poisson(p, dx, dy, b, nit)
        for a, an, axis, d in ((u, un, 1, dx), (v, vn, 0, dy)):
            c = an[1:-1, 1:-1]
            grad = p[1:-1, 2:] - p[1:-1, :-2] if axis == 1 else p[2:, 1:-1] - p[:-2, 1:-1]
            a[1:-1, 1:-1] = (
                c
                - un[1:-1, 1:-1] * dt / dx * (c - an[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dy * (c - an[:-2, 1:-1])
                - dt / (2 * rho * d) * grad
                + nu * (dt / dx**2 * (an[1:-1, 2:] - 2 * c + an[1:-1, :-2]) + dt / dy**2 * (an[2:, 1:-1] - 2 * c + an[:-2, 1:-1]))
            )
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p
