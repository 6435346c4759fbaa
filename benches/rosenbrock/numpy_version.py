"""Rosenbrock's function of n variables, evaluated anew in each iteration."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return harness.pseudo(n, 10, dtype)


def run(x, iters):
    for _ in range(iters):
        value = np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    return lambda: [value]


harness.main("rosenbrock", setup, run)
