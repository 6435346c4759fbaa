"""A toy star by smoothed-particle hydrodynamics.

Source: P. Mocz, "Create Your Own Smoothed-Particle-Hydrodynamics Simulation (With Python)" (2020).
"""

import math

import numpy as np

sizes = {"small": {"N": 60, "steps": 10}, "large": {"N": 400, "steps": 15}}


def W(x, y, z, h):
    r = np.sqrt(x**2 + y**2 + z**2)
    return (1.0 / (h * np.sqrt(np.pi))) ** 3 * np.exp(-(r**2) / h**2)


def grad_W(x, y, z, h):
    r = np.sqrt(x**2 + y**2 + z**2)
    n = -2 * np.exp(-(r**2) / h**2) / h**5 / (np.pi) ** (3 / 2)
    return n * x, n * y, n * z


def separations(ri, rj):
    M, N = ri.shape[0], rj.shape[0]
    return tuple(ri[:, c].reshape((M, 1)) - rj[:, c].reshape((N, 1)).T for c in range(3))


def density(r, pos, m, h):
    return np.sum(m * W(*separations(r, pos), h), 1).reshape((r.shape[0], 1))


def acceleration(pos, vel, m, h, k, n, lmbda, nu):
    N = pos.shape[0]
    rho = density(pos, pos, m, h)
    P = k * rho ** (1 + 1 / n)
    factor = P / rho**2 + P.T / rho.T**2
    a = [-np.sum(m * factor * d, 1).reshape((N, 1)) for d in grad_W(*separations(pos, pos), h)]
    acc = np.hstack(a)
    acc -= lmbda * pos
    acc -= nu * vel
    return acc


def main(N, steps, dt=0.04, h=0.1, k=0.1, n=1, nu=1.0, M=2.0, R=0.75):
    lmbda = 2 * k * (1 + n) * np.pi ** (-3 / (2 * n)) * (M * math.gamma(5 / 2 + n) / R**3 / math.gamma(1 + n)) ** (1 / n) / R**2
    m = M / N
    rng = np.random.default_rng(42)
    pos = rng.standard_normal((N, 3))
    vel = np.zeros(pos.shape)
    acc = acceleration(pos, vel, m, h, k, n, lmbda, nu)
    for _ in range(steps):
        vel += acc * dt / 2
        pos += vel * dt
        acc = acceleration(pos, vel, m, h, k, n, lmbda, nu)
        vel += acc * dt / 2
        rho = density(pos, pos, m, h)
    line = np.zeros((100, 3))
    line[:, 0] = np.linspace(0, 1, 100)
    return pos, rho, density(line, pos, m, h)
