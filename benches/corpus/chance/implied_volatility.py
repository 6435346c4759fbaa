"""Implied volatilities of a whole book of options by Newton's method, only those that have not converged.

Source: E. Haug, "The Complete Guide to Option Pricing Formulas", chapter 12.
"""

import numpy as np

sizes = {"small": {"n": 1000}, "large": {"n": 300_000}}


def cdf(x):
    k = 1 / (1 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
    return np.where(x >= 0, 1 - tail, tail)


def black_scholes(S, K, T, r, sigma):
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    return S * cdf(d1) - K * np.exp(-r * T) * cdf(d2), S * np.sqrt(T) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)


def main(n, r=0.01):
    rng = np.random.default_rng(44)
    S = rng.uniform(80, 120, n)
    K = S * rng.uniform(0.85, 1.15, n)
    T = rng.uniform(0.2, 2, n)
    true = rng.uniform(0.1, 0.6, n)
    target, _ = black_scholes(S, K, T, r, true)
    sigma = np.full(n, 0.3)
    active = np.ones(n, dtype=bool)
    turns = 0
    while active.any() and turns < 20:
        value, vega = black_scholes(S[active], K[active], T[active], r, sigma[active])
        error = value - target[active]
        sigma[active] = np.clip(sigma[active] - error / np.maximum(vega, 1e-8), 0.01, 3)
        still = np.abs(error) > 1e-6
        active[active] = still
        turns += 1
    return np.abs(sigma - true).max() < 1e-2, sigma, turns


tolerance = 1e-6
