"""Coupled oscillators that fall into step, by Runge's and Kutta's method for several couplings.

Source: S. H. Strogatz, "From Kuramoto to Crawford" (2000); exercises on synchronisation.
"""

import numpy as np

sizes = {"small": {"n": 60, "steps": 20}, "large": {"n": 500, "steps": 15}}


def rhs(theta, omega, K):
    return omega + K / len(theta) * np.sin(theta[None, :] - theta[:, None]).sum(axis=1)


def main(n, steps, dt=0.05):
    rng = np.random.default_rng(99)
    omega = rng.standard_cauchy(n).clip(-3, 3)
    start = rng.uniform(0, 2 * np.pi, n)
    order = np.zeros((4, steps))
    for row, K in enumerate([0.5, 1.0, 2.0, 4.0]):
        theta = start.copy()
        for s in range(steps):
            k1 = rhs(theta, omega, K)
            k2 = rhs(theta + dt / 2 * k1, omega, K)
            k3 = rhs(theta + dt / 2 * k2, omega, K)
            k4 = rhs(theta + dt * k3, omega, K)
            theta = np.mod(theta + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 2 * np.pi)
            order[row, s] = np.abs(np.exp(1j * theta).mean())
    return theta, order
