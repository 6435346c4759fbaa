"""Haar's wavelets: a signal taken apart level by level, small coefficients shrunk, and put together again.

Source: D. Donoho, I. Johnstone (1994); S. Mallat, "A Wavelet Tour of Signal Processing", chapter 11.
"""

import numpy as np

sizes = {"small": {"n": 1024}, "large": {"n": 2**20}}


def forward(x):
    details = []
    while len(x) > 1:
        even, odd = x[0::2], x[1::2]
        details.append((even - odd) / np.sqrt(2))
        x = (even + odd) / np.sqrt(2)
    return x, details


def backward(x, details):
    for d in reversed(details):
        out = np.empty(2 * len(d))
        out[0::2] = (x + d) / np.sqrt(2)
        out[1::2] = (x - d) / np.sqrt(2)
        x = out
    return x


def main(n):
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, n)
    blocks = sum(h * (1 + np.sign(t - p)) / 2 for p, h in zip([0.1, 0.23, 0.4, 0.65, 0.78], [4, -4, 3, -5, 2.1]))
    noisy = blocks + 0.3 * rng.standard_normal(n)
    mean, details = forward(noisy)
    sigma = np.median(np.abs(details[0])) / 0.6745
    limit = sigma * np.sqrt(2 * np.log(n))
    kept = [np.sign(d) * np.maximum(np.abs(d) - limit, 0) for d in details]
    clean = backward(mean, kept)
    energy = [np.sum(d**2) for d in details]
    return clean, sigma, energy, np.mean((clean - blocks) ** 2), sum(np.count_nonzero(d) for d in kept)
