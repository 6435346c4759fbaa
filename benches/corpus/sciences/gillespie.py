"""Predators and prey as a random process: many runs of Gillespie's direct method side by side.

Source: D. T. Gillespie (1977), the Lotka reactions; courses on stochastic simulation in biology.
"""

import numpy as np

sizes = {"small": {"runs": 40, "events": 60}, "large": {"runs": 20000, "events": 100}}
change = np.array([[1, 0], [-1, 1], [0, -1]])


def main(runs, events):
    rng = np.random.default_rng(6)
    state = np.tile([100, 20], (runs, 1)).astype(float)
    time = np.zeros(runs)
    for _ in range(events):
        prey, predators = state[:, 0], state[:, 1]
        rates = np.stack([1.0 * prey, 0.005 * prey * predators, 0.6 * predators], axis=1)
        total = rates.sum(axis=1)
        alive = total > 0
        time[alive] += rng.exponential(size=alive.sum()) / total[alive]
        chosen = (np.cumsum(rates, axis=1) < (rng.random(runs) * total)[:, None]).sum(axis=1)
        state[alive] += change[np.minimum(chosen, 2)][alive]
    return state.mean(axis=0), state.std(axis=0), time.mean(), np.histogram(state[:, 0], bins=10, range=(0, 300))[0]
