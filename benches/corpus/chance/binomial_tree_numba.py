"""The loops of binomial_tree by Numba."""

import numpy as np
from numba import njit


@njit
def price(S, K, T, r, sigma, n):
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    q = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    s = np.empty(n + 1)
    v = np.empty(n + 1)
    for j in range(n + 1):
        s[j] = S * d ** (n - j) * u**j
        v[j] = max(0.0, K - s[j])
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            s[j] = s[j + 1] * d
            v[j] = max(disc * (q * v[j + 1] + (1 - q) * v[j]), K - s[j])
    return v[0]


def main(n):
    base = price(100.0, 105.0, 1.0, 0.03, 0.25, n)
    delta = (price(101.0, 105.0, 1.0, 0.03, 0.25, n) - price(99.0, 105.0, 1.0, 0.03, 0.25, n)) / 2
    return base, delta, (price(100.0, 105.0, 1.0, 0.03, 0.26, n) - base) / 0.01
