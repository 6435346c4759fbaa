"""Pi from the share of n random points that fall into the quarter circle; each iteration draws new points.

The coordinates of iteration t are the Philox streams with keys 2t and 2t + 1, so that every stack counts the same points.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness
import philox


def setup(n, dtype):
    return n, dtype


def run(state, iters):
    n, dtype = state
    total = 0.0
    for step in range(iters):
        x = philox.uniform(n, 2 * step, dtype)
        y = philox.uniform(n, 2 * step + 1, dtype)
        total += 4.0 * float(np.sum(x * x + y * y <= 1)) / n
    return lambda: [total]


harness.main("montecarlo_pi", setup, run)
