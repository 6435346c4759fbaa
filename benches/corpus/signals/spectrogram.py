"""A short-time Fourier transform by strided frames, mel bands, cepstra, and the signal made again by overlap and add.

Source: H. Fayek, "Speech Processing for Machine Learning: Filter banks, MFCCs" (2016); librosa's documentation.
"""

import numpy as np

sizes = {"small": {"seconds": 0.5}, "large": {"seconds": 20}}


def main(seconds, rate=8000, size=256, hop=80, bands=26):
    t = np.arange(int(seconds * rate)) / rate
    rng = np.random.default_rng(1)
    signal = np.sin(2 * np.pi * (300 * t + 200 * np.sin(2 * np.pi * 1.5 * t))) + 0.1 * rng.standard_normal(t.size)
    emphasized = np.append(signal[0], signal[1:] - 0.97 * signal[:-1])
    frames = np.lib.stride_tricks.sliding_window_view(emphasized, size)[::hop]
    window = np.hamming(size)
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = np.abs(spectrum) ** 2 / size
    mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    bins = np.floor((size + 1) * 700 * (10 ** (mel / 2595) - 1) / rate).astype(int)
    bank = np.zeros((bands, size // 2 + 1))
    for m in range(1, bands + 1):
        left, middle, right = bins[m - 1], bins[m], bins[m + 1]
        for k in range(left, middle):
            bank[m - 1, k] = (k - left) / (middle - left)
        for k in range(middle, right):
            bank[m - 1, k] = (right - k) / (right - middle)
    features = power @ bank.T
    features = np.where(features == 0, np.finfo(float).eps, features)
    decibel = 20 * np.log10(features)
    n = np.arange(bands)
    dct = np.cos(np.pi * (n[:, None] + 0.5) * np.arange(13)[None, :] / bands) * np.sqrt(2 / bands)
    mfcc = decibel @ dct
    mfcc -= mfcc.mean(axis=0)
    back = np.fft.irfft(spectrum, axis=1)
    out, weight = np.zeros(emphasized.size), np.zeros(emphasized.size)
    for i, frame in enumerate(back):
        out[i * hop : i * hop + size] += frame * window
        weight[i * hop : i * hop + size] += window**2
    restored = np.where(weight > 1e-8, out / np.maximum(weight, 1e-8), 0)
    return decibel, mfcc, restored, power.argmax(axis=1)
