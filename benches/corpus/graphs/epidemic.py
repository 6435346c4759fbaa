"""An epidemic among people who walk about in cells: infection by who shares a cell, recovery, immunity.

Source: A. Downey, "Think Complexity", agent-based models; SIR models of course codes.
"""

import numpy as np

sizes = {"small": {"people": 500, "side": 20, "days": 25}, "large": {"people": 100_000, "side": 250, "days": 40}}

SUSCEPTIBLE, INFECTED, RECOVERED = 0, 1, 2


def main(people, side, days, beta=0.15, gamma=0.08):
    rng = np.random.default_rng(2020)
    x = rng.integers(0, side, people)
    y = rng.integers(0, side, people)
    state = np.zeros(people, dtype=np.int8)
    state[rng.choice(people, max(people // 100, 3), replace=False)] = INFECTED
    history = np.zeros((days, 3), dtype=int)
    for day in range(days):
        x = (x + rng.integers(-1, 2, people)) % side
        y = (y + rng.integers(-1, 2, people)) % side
        cell = x * side + y
        sick = state == INFECTED
        load = np.bincount(cell[sick], minlength=side * side)
        risk = 1 - (1 - beta) ** load[cell]
        caught = (state == SUSCEPTIBLE) & (rng.random(people) < risk)
        healed = sick & (rng.random(people) < gamma)
        state[caught] = INFECTED
        state[healed] = RECOVERED
        history[day] = np.bincount(state, minlength=3)
    heat = np.zeros((side, side), dtype=int)
    np.add.at(heat, (x, y), state == INFECTED)
    return history, heat, history[:, 1].argmax()
