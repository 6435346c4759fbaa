"""Black-Scholes price of n European call options with the polynomial form of the normal distribution, summed once per
iteration while the time to maturity shrinks."""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness


def setup(n, dtype):
    return 58 + 4 * harness.pseudo(n, 9, dtype)


def normal(x):
    """Cumulative normal distribution (Abramowitz and Stegun 26.2.17)."""
    size = np.abs(x)
    k = 1 / (1 + 0.2316419 * size)
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * size * size) * series
    return np.where(x < 0, tail, 1 - tail)


def price(spot, strike, years, rate, volatility):
    """Price of a call option."""
    spread = volatility * math.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    d2 = d1 - spread
    return spot * normal(d1) - strike * math.exp(-rate * years) * normal(d2)


def run(spot, iters):
    total = 0.0
    for step in range(iters):
        total += float(np.sum(price(spot, 65.0, 0.25 - step * (0.25 / 365), 0.08, 0.3))) / spot.size
    return lambda: [total]


harness.main("black_scholes", setup, run)
