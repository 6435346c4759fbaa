"""
What a rod is made of
=====================

The temperatures of a rod, measured after some time, tell how well each part of it conducts heat. ``np.value_and_grad`` differentiates the
simulation, a plain loop with in-place updates, and gradient descent finds the conductivity.
"""

import sys

import bh as np
import matplotlib.pyplot as plt

CELLS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
ROUNDS = 150


def simulated(conductivity, steps=60):
    """Temperatures after some time steps, for several rods that begin differently."""
    x = np.linspace(0, 1, CELLS)
    rods = np.stack([np.sin(k * np.pi * x) for k in (1, 2, 3, 5)])
    for _ in range(steps):
        flow = conductivity * (rods[:, 1:] - rods[:, :-1])
        rods[:, 1:-1] += flow[:, 1:] - flow[:, :-1]
    return rods


x = (np.arange(CELLS - 1) + 0.5) / (CELLS - 1)
wanted = 0.2 + 0.15 * (np.abs(x - 0.6) < 0.2)
measured = simulated(wanted)


def misfit(conductivity):
    return ((simulated(conductivity) - measured) ** 2).sum()


found = np.full(CELLS - 1, 0.25)
velocity = np.zeros(CELLS - 1)
misfit_and_slope = np.value_and_grad(misfit)
first, slope = misfit_and_slope(found)
rate = 0.02 / float(np.abs(slope).max())
for _ in range(ROUNDS):
    value, slope = misfit_and_slope(found)
    velocity = 0.9 * velocity - rate * slope
    found = np.clip(found + velocity, 0.05, 0.45)
last = misfit(found)
print(f"the misfit falls from {float(first):.3g} to {float(last):.3g}")
assert float(last) < 0.05 * float(first)

# %%
# The gradient agrees with differences along a direction:

assert np.check_grad(misfit, np.full(CELLS - 1, 0.25), rtol=1e-4) < 1e-4

figure, axes = plt.subplots()
axes.plot(x, wanted, label="the rod")
axes.plot(x, found, label="found")
axes.set(xlabel="place", ylabel="conductivity")
axes.legend()
