"""Birds that fly as their neighbours do, in a periodic square.

Source: P. Mocz, "Create Your Own Active Matter Simulation (With Python)" (2021); T. Vicsek et al. (1995).
"""

import numpy as np

sizes = {"small": {"N": 100, "steps": 10}, "large": {"N": 500, "steps": 20}}


def main(N, steps, v0=1.0, eta=0.5, L=10.0, R=1.0, dt=0.2):
    rng = np.random.default_rng(17)
    x = rng.random((N, 1)) * L
    y = rng.random((N, 1)) * L
    theta = 2 * np.pi * rng.random((N, 1))
    vx = v0 * np.cos(theta)
    vy = v0 * np.sin(theta)
    order = []
    for _ in range(steps):
        x += vx * dt
        y += vy * dt
        x = x % L
        y = y % L
        mean_theta = theta.copy()
        for b in range(N):
            neighbors = (x - x[b]) ** 2 + (y - y[b]) ** 2 < R**2
            sx = np.sum(np.cos(theta[neighbors]))
            sy = np.sum(np.sin(theta[neighbors]))
            mean_theta[b] = np.arctan2(sy, sx)
        theta = mean_theta + eta * (rng.random((N, 1)) - 0.5)
        vx = v0 * np.cos(theta)
        vy = v0 * np.sin(theta)
        order.append(np.hypot(vx.mean(), vy.mean()) / v0)
    return x, y, theta, order
