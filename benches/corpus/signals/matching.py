"""A pulse found in noise: correlation by transforms, normalised, with peaks and their parabolic refinement.

Source: S. Kay, "Fundamentals of Statistical Signal Processing", volume II; radar course exercises.
"""

import numpy as np

sizes = {"small": {"n": 4096, "pulses": 4}, "large": {"n": 500_000, "pulses": 40}}


def main(n, pulses, length=256):
    rng = np.random.default_rng(23)
    t = np.arange(length)
    chirp = np.sin(2 * np.pi * (0.02 * t + 0.0004 * t**2)) * np.hanning(length)
    x = 0.4 * rng.standard_normal(n)
    places = np.sort(rng.choice(n // length - 1, pulses, replace=False)) * length + rng.integers(0, length // 2, pulses)
    for p in places.tolist():
        x[p : p + length] += chirp
    size = 1 << (n + length - 1).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(x, size) * np.conj(np.fft.rfft(chirp, size)), size)[: n - length + 1]
    c = np.concatenate(([0.0], np.cumsum(x**2)))
    energy = c[length:] - c[:-length]
    score = correlation / np.sqrt(np.maximum(energy, 1e-12) * np.sum(chirp**2))
    peak = (score[1:-1] > score[:-2]) & (score[1:-1] >= score[2:]) & (score[1:-1] > 0.5)
    where = np.flatnonzero(peak) + 1
    a, b, d = score[where - 1], score[where], score[where + 1]
    refined = where + 0.5 * (a - d) / (a - 2 * b + d)
    order = np.argsort(-b)[:pulses]
    found = np.sort(where[order])
    return score, refined[order], np.abs(found[:, None] - places[None, :]).min(axis=0).max() < 3


tolerance = 1e-7
