"""Filters with feedback, sample by sample, for a few channels, and their frequency responses.

Source: R. Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter coefficients".
"""

import numpy as np

sizes = {"small": {"n": 400, "channels": 2}, "large": {"n": 12_000, "channels": 8}}


def peaking(f0, gain, q, rate):
    a = 10 ** (gain / 40)
    w = 2 * np.pi * f0 / rate
    alpha = np.sin(w) / (2 * q)
    b = np.array([1 + alpha * a, -2 * np.cos(w), 1 - alpha * a])
    c = np.array([1 + alpha / a, -2 * np.cos(w), 1 - alpha / a])
    return b / c[0], c / c[0]


def run(b, a, x):
    y = np.zeros_like(x)
    z1 = np.zeros(x.shape[1])
    z2 = np.zeros(x.shape[1])
    for n in range(x.shape[0]):
        y[n] = b[0] * x[n] + z1
        z1 = b[1] * x[n] - a[1] * y[n] + z2
        z2 = b[2] * x[n] - a[2] * y[n]
    return y


def main(n, channels, rate=44100.0):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((n, channels))
    w = np.exp(-1j * 2 * np.pi * np.linspace(0, 0.5, 256))
    responses = []
    for f0, gain, q in ((100, 6, 0.7), (1000, -4, 1.0), (8000, 3, 2.0)):
        b, a = peaking(f0, gain, q, rate)
        x = run(b, a, x)
        responses.append(20 * np.log10(np.abs(np.polyval(b[::-1], w) / np.polyval(a[::-1], w))))
    return x, np.array(responses), np.sqrt((x**2).mean(axis=0))
