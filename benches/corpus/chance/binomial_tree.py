"""American options on a binomial tree, and the Greeks by differences.

Source: J. Hull, "Options, Futures, and Other Derivatives", chapter 13; Cox, Ross and Rubinstein (1979).
"""

import numpy as np

sizes = {"small": {"n": 80}, "large": {"n": 2500}}


def price(S, K, T, r, sigma, n):
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    q = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    s = S * d ** np.arange(n, -1, -1) * u ** np.arange(0, n + 1)
    v = np.maximum(0, K - s)
    for i in range(n - 1, -1, -1):
        s = s[1:] * d
        v = disc * (q * v[1 : i + 2] + (1 - q) * v[0 : i + 1])
        v = np.maximum(v, K - s)
    return v[0]


def main(n):
    base = price(100.0, 105.0, 1.0, 0.03, 0.25, n)
    delta = (price(101.0, 105.0, 1.0, 0.03, 0.25, n) - price(99.0, 105.0, 1.0, 0.03, 0.25, n)) / 2
    vega = (price(100.0, 105.0, 1.0, 0.03, 0.26, n) - base) / 0.01
    return base, delta, vega


tolerance = 1e-7
