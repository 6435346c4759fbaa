"""
A thousand forecasts at once
============================

The equations of Lorenz for one state, written as for one. ``np.vmap`` runs them for all members of an ensemble at once, and shows how long a forecast
holds.
"""

import sys

import bh as np
import matplotlib.pyplot as plt

MEMBERS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def change(state):
    x, y, z = state[0], state[1], state[2]
    return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def forecast(state, steps=10, time_step=0.01):
    """The state some steps later, by the method of Runge and Kutta."""
    for _ in range(steps):
        one = change(state)
        two = change(state + time_step / 2 * one)
        three = change(state + time_step / 2 * two)
        four = change(state + time_step * three)
        state = state + time_step / 6 * (one + 2 * two + 2 * three + four)
    return state


rng = np.random.default_rng(1)
members = np.array([1.0, 1.0, 25.0]) + 1e-4 * rng.normal(size=(MEMBERS, 3))
alone = members[0].copy()
every = np.vmap(forecast)
spread = []
for _ in range(150):
    members, alone = every(members), forecast(alone)
    spread.append(members.std(axis=0).max())
spread = np.array([float(value) for value in spread])
# Members are what they are alone, but for rounding that chaos has not yet enlarged.
assert np.allclose(np.vmap(forecast)(members)[:3], np.stack([forecast(member) for member in members[:3]]), rtol=1e-9)
assert spread[0] < 1e-3 and spread[-1] > 1
print(f"{MEMBERS} members; their spread grows from {spread[0]:.1e} to {spread[-1]:.1f}")

figure, axes = plt.subplots()
axes.semilogy(np.arange(1, 151) * 0.1, spread)
axes.set(xlabel="time", ylabel="spread of the members", title="How long a forecast holds")
