"""
Black–Scholes, with error bars
==============================

The price of a call option by the formula, and by a simulation whose error bars come from its own variance.
"""

import bh as np
import matplotlib.pyplot as plt


def calls(paths=1_000_000, strike=100.0, rate=0.02, volatility=0.3):
    spot = np.linspace(70, 130, 7)
    u = (np.arange(paths) * 0.6180339887498949 + 0.5) % 1
    v = (np.arange(paths) * 0.7548776662466927 + 0.5) % 1
    normal = np.sqrt(-2 * np.log(u + 1e-12)) * np.cos(2 * np.pi * v)
    growth = np.exp(rate - volatility**2 / 2 + volatility * normal)
    gain = np.maximum(spot[:, None] * growth[None, :] - strike, 0) * np.exp(-rate)
    return np.stack([spot, gain.mean(axis=1), gain.std(axis=1) / paths**0.5])


# %%
spot, price, error = calls()
plt.errorbar(spot, price, 3 * error, capsize=4)
plt.xlabel("price of the share today")
plt.ylabel("price of the option, with three standard errors")
