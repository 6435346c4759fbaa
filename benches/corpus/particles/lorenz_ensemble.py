"""Many nearby starts of Lorenz's equations, and how fast they part.

Source: E. N. Lorenz (1963); J. C. Sprott, "Chaos and Time-Series Analysis", chapter 5.
"""

import numpy as np

sizes = {"small": {"members": 200, "steps": 100}, "large": {"members": 20_000, "steps": 200}}


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state
    return np.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def main(members, steps, dt=0.01):
    rng = np.random.default_rng(8)
    state = np.array([[1.0], [1.0], [20.0]]) + 1e-3 * rng.standard_normal((3, members))
    spread = []
    for _ in range(steps):
        k1 = lorenz(state)
        k2 = lorenz(state + dt / 2 * k1)
        k3 = lorenz(state + dt / 2 * k2)
        k4 = lorenz(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        spread.append(np.log(state.std(axis=1)).mean())
    slope, offset = np.polyfit(dt * np.arange(steps), np.array(spread), 1)
    return state, slope, offset


tolerance = 1e-6
