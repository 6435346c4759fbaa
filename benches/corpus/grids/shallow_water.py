"""Waves in a square basin by the Lax-Wendroff scheme, with drops that fall in and reflecting walls.

Source: C. Moler, "Experiments with MATLAB", chapter 18 (shallow water equations), as its Python translations have it.
"""

import numpy as np

sizes = {"small": {"n": 64, "steps": 30}, "large": {"n": 400, "steps": 60}}


def droplet(height, width):
    x, y = np.ogrid[-1 : 1 : width * 1j, -1 : 1 : width * 1j]
    return height * np.exp(-5 * (x**2 + y**2))


def main(n, steps, g=9.8, dt=0.01, dx=1.0, dy=1.0):
    D = droplet(1.5, 21)
    w = D.shape[0]
    H = np.ones((n + 2, n + 2))
    U = np.zeros((n + 2, n + 2))
    V = np.zeros((n + 2, n + 2))
    for step in range(steps):
        if step % 20 == 0:
            i = 5 + (step * 7) % (n - w - 5)
            H[i : i + w, i : i + w] += 0.5 * D
        H[:, 0], U[:, 0], V[:, 0] = H[:, 1], U[:, 1], -V[:, 1]
        H[:, -1], U[:, -1], V[:, -1] = H[:, -2], U[:, -2], -V[:, -2]
        H[0, :], U[0, :], V[0, :] = H[1, :], -U[1, :], V[1, :]
        H[-1, :], U[-1, :], V[-1, :] = H[-2, :], -U[-2, :], V[-2, :]
        Hm, Hp, Um, Up, Vm, Vp = H[:-1, 1:-1], H[1:, 1:-1], U[:-1, 1:-1], U[1:, 1:-1], V[:-1, 1:-1], V[1:, 1:-1]
        Hx = (Hp + Hm) / 2 - dt / (2 * dx) * (Up - Um)
        Ux = (Up + Um) / 2 - dt / (2 * dx) * ((Up**2 / Hp + g / 2 * Hp**2) - (Um**2 / Hm + g / 2 * Hm**2))
        Vx = (Vp + Vm) / 2 - dt / (2 * dx) * (Up * Vp / Hp - Um * Vm / Hm)
        Hm, Hp, Um, Up, Vm, Vp = H[1:-1, :-1], H[1:-1, 1:], U[1:-1, :-1], U[1:-1, 1:], V[1:-1, :-1], V[1:-1, 1:]
        Hy = (Hp + Hm) / 2 - dt / (2 * dy) * (Vp - Vm)
        Uy = (Up + Um) / 2 - dt / (2 * dy) * (Vp * Up / Hp - Vm * Um / Hm)
        Vy = (Vp + Vm) / 2 - dt / (2 * dy) * ((Vp**2 / Hp + g / 2 * Hp**2) - (Vm**2 / Hm + g / 2 * Hm**2))
        H[1:-1, 1:-1] -= dt / dx * (Ux[1:, :] - Ux[:-1, :]) + dt / dy * (Vy[:, 1:] - Vy[:, :-1])
        U[1:-1, 1:-1] -= dt / dx * ((Ux[1:] ** 2 / Hx[1:] + g / 2 * Hx[1:] ** 2) - (Ux[:-1] ** 2 / Hx[:-1] + g / 2 * Hx[:-1] ** 2)) + dt / dy * (
            Vy[:, 1:] * Uy[:, 1:] / Hy[:, 1:] - Vy[:, :-1] * Uy[:, :-1] / Hy[:, :-1]
        )
        V[1:-1, 1:-1] -= dt / dx * (Ux[1:] * Vx[1:] / Hx[1:] - Ux[:-1] * Vx[:-1] / Hx[:-1]) + dt / dy * (
            (Vy[:, 1:] ** 2 / Hy[:, 1:] + g / 2 * Hy[:, 1:] ** 2) - (Vy[:, :-1] ** 2 / Hy[:, :-1] + g / 2 * Hy[:, :-1] ** 2)
        )
    return H[1:-1, 1:-1], U, V
