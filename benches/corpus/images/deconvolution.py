"""A blurred image made sharp by Richardson's and Lucy's iteration, with convolutions by Fourier transforms.

Source: W. H. Richardson (1972), L. B. Lucy (1974); exercises on astronomical images and microscopy.
"""

import numpy as np

sizes = {"small": {"n": 32, "turns": 10}, "large": {"n": 320, "turns": 20}}


def inputs(n, turns):
    rng = np.random.default_rng(7)
    image = np.zeros((n, n))
    image[n // 4 : n // 2, n // 3 : n // 2] = 1
    image[rng.integers(0, n, 50), rng.integers(0, n, 50)] = 5
    return {"image": image, "turns": turns}


def main(image, turns):
    n = len(image)
    line = np.exp(-((np.arange(n) - n // 2) ** 2) / 8.0)
    spread = np.outer(line, line) / line.sum() ** 2
    transfer = np.fft.rfft2(np.fft.ifftshift(spread))

    def blurred(x, by):
        return np.fft.irfft2(np.fft.rfft2(x) * by, s=x.shape)

    data = np.maximum(blurred(image, transfer), 0) + 0.01
    estimate = np.full_like(data, data.mean())
    for _ in range(turns):
        estimate *= blurred(data / np.maximum(blurred(estimate, transfer), 1e-12), transfer.conj())
    return estimate, np.sqrt(((estimate - image) ** 2).mean())
