"""Snakes and ladders on a board of n squares: successive powers of the transition matrix, P <- P T, with the chance of
having finished after each number of throws."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def landing(square, n):
    """Where a piece that lands on `square` ends up: every 7th square is a ladder, every 11th a snake."""
    if square >= n - 1:
        return n - 1
    if square % 7 == 3:
        return min(square + 9, n - 1)
    return square - 5 if square % 11 == 5 else square


def setup(n, dtype):
    transition = np.zeros((n, n), dtype)
    for start in range(n):
        for dice in range(1, 7):
            transition[start, landing(start + dice, n)] += dtype(1 / 6)
    return transition


def run(transition, iters):
    power = transition
    finished = 0.0
    for _ in range(iters):
        finished += float(power[0, -1])
        power = power @ transition
    return lambda: [harness.checksum(power), finished]


harness.main("snakes_and_ladders", setup, run)
