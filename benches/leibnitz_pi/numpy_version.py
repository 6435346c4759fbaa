"""Leibnitz' series for pi, n pairs of terms, summed anew in each iteration."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return n, dtype


def run(state, iters):
    n, dtype = state
    for _ in range(iters):
        k = 4 * np.arange(n, dtype=dtype)
        pi = 4 * np.sum(1 / (k + 1) - 1 / (k + 3))
    return lambda: [pi]


harness.main("leibnitz_pi", setup, run)
