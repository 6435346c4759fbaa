"""A phase vocoder that stretches a sound: spectra of frames, phases that go on, frames added into the result in place.

Source: J. Flanagan, R. Golden, "Phase vocoder", 1966; D. Ellis, "A phase vocoder in Matlab", Columbia University.
"""

import numpy as np

sizes = {"small": {"n": 6000}, "large": {"n": 300_000}}


def main(n):
    t = np.arange(n) / 8000.0
    x = np.sin(2 * np.pi * 440 * t) + 0.3 * np.sin(2 * np.pi * 660 * t + t)
    size, hop, out_hop = 512, 128, 160
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    frames = (n - size) // hop
    y = np.zeros(frames * out_hop + size)
    norm = np.zeros_like(y)
    expected = 2 * np.pi * np.arange(size // 2 + 1) * hop / size
    last = phase = None
    for frame in range(frames):
        spectrum = np.fft.rfft(window * x[frame * hop : frame * hop + size])
        angle = np.angle(spectrum)
        if last is None:
            phase = angle
        else:
            # Bins without sound have phases that rounding decides.
            step = np.where(np.abs(spectrum) > 1e-3, angle - last - expected, 0.0)
            step -= 2 * np.pi * np.round(step / (2 * np.pi))
            phase = phase + (expected + step) * out_hop / hop
        last = angle
        begin = frame * out_hop
        y[begin : begin + size] += window * np.fft.irfft(np.abs(spectrum) * np.exp(1j * phase))
        norm[begin : begin + size] += window**2
    covered = norm > 1e-3
    y[covered] /= norm[covered]
    spectrum = np.abs(np.fft.rfft(y[size : size + 4096]))
    return norm, int(spectrum.argmax()), np.sqrt(np.mean(y[size:-size] ** 2))
