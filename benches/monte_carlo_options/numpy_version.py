"""Price of a European call option by the mean pay-off of n random paths; each iteration draws new ones.

The normal numbers of iteration t are made of the Philox streams with keys 2t and 2t + 1, so that every stack has the same paths.
"""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness
import philox

SPOT, STRIKE, RATE, VOLATILITY, YEARS = 60.0, 65.0, 0.08, 0.3, 0.25


def setup(n, dtype):
    return n, dtype


def run(state, iters):
    n, dtype = state
    total = 0.0
    for step in range(iters):
        u = philox.uniform(n, 2 * step, dtype)
        v = philox.uniform(n, 2 * step + 1, dtype)
        normal = np.sqrt(-2 * np.log(1 - u)) * np.cos(2 * math.pi * v)
        end = SPOT * np.exp((RATE - VOLATILITY**2 / 2) * YEARS + VOLATILITY * math.sqrt(YEARS) * normal)
        total += math.exp(-RATE * YEARS) * float(np.sum(np.maximum(end - STRIKE, 0))) / n
    return lambda: [total]


harness.main("monte_carlo_options", setup, run)
