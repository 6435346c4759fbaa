"""Schelling's model: who has too few neighbours of his kind moves to a free place.

Source: T. Schelling (1971); QuantEcon lectures; A. Downey, "Think Complexity", chapter 9.
"""

import numpy as np

sizes = {"small": {"n": 30, "limit": 15}, "large": {"n": 250, "limit": 20}}


def shares(grid):
    same = np.zeros(grid.shape)
    others = np.zeros(grid.shape)
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if di or dj:
                shifted = np.roll(grid, (di, dj), axis=(0, 1))
                same += (shifted == grid) & (grid > 0)
                others += shifted > 0
    return np.divide(same, others, out=np.zeros_like(same), where=others > 0)


def main(n, limit, want=0.45):
    rng = np.random.default_rng(71)
    grid = rng.choice([0, 1, 2], size=(n, n), p=[0.1, 0.45, 0.45])
    unhappy = (shares(grid) < want) & (grid > 0)
    record = [unhappy.sum()]
    turns = 0
    while unhappy.any() and turns < limit:
        movers = np.argwhere(unhappy)
        free = np.argwhere(grid == 0)
        rng.shuffle(movers)
        rng.shuffle(free)
        count = min(len(movers), len(free))
        movers, free = movers[:count], free[:count]
        grid[free[:, 0], free[:, 1]] = grid[movers[:, 0], movers[:, 1]]
        grid[movers[:, 0], movers[:, 1]] = 0
        unhappy = (shares(grid) < want) & (grid > 0)
        record.append(unhappy.sum())
        turns += 1
    return grid, np.array(record), shares(grid)[grid > 0].mean()
