"""Periodogram and smoothing of a noisy series by transforms: autocorrelation, windows, a filter in frequency space.

Source: A. V. Oppenheim, R. W. Schafer, "Discrete-Time Signal Processing", chapter 10; course exercises on sunspots.
"""

import numpy as np

sizes = {"small": {"n": 2**12}, "large": {"n": 2**20}}


def main(n):
    rng = np.random.default_rng(0)
    t = np.arange(n)
    signal = np.sin(2 * np.pi * t / 11.0) + 0.5 * np.sin(2 * np.pi * t / 80.0) + rng.normal(0, 1, n)
    signal -= signal.mean()
    window = np.hanning(n)
    power = np.abs(np.fft.rfft(signal * window)) ** 2 / np.sum(window**2)
    freq = np.fft.rfftfreq(n)
    peaks = freq[np.argsort(power)[::-1][:4]]
    spectrum = np.fft.rfft(signal, 2 * n)
    auto = np.fft.irfft(spectrum * np.conj(spectrum))[:n] / np.arange(n, 0, -1)
    auto /= auto[0]
    keep = np.abs(np.fft.rfft(signal))
    threshold = np.percentile(keep, 99)
    cleaned = np.fft.irfft(np.where(keep > threshold, np.fft.rfft(signal), 0), n)
    bands = np.add.reduceat(power, np.arange(0, power.size - 1, 64))
    return np.sort(peaks), auto[:200], cleaned, bands, np.std(signal - cleaned)
