"""Projections of a phantom by rotated sampling, and filtered back projection.

Source: A. Kak, M. Slaney, "Principles of Computerized Tomographic Imaging", chapter 3.
"""

import numpy as np

sizes = {"small": {"n": 48, "angles": 20}, "large": {"n": 200, "angles": 60}}


def bilinear(image, x, y):
    n, m = image.shape
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = x - x0, y - y0
    inside = (x0 >= 0) & (x0 < m - 1) & (y0 >= 0) & (y0 < n - 1)
    x0, y0 = np.clip(x0, 0, m - 2), np.clip(y0, 0, n - 2)
    value = (1 - fy) * ((1 - fx) * image[y0, x0] + fx * image[y0, x0 + 1]) + fy * ((1 - fx) * image[y0 + 1, x0] + fx * image[y0 + 1, x0 + 1])
    return np.where(inside, value, 0.0)


def main(n, angles):
    c = (n - 1) / 2
    y, x = np.mgrid[0:n, 0:n] - c
    phantom = (
        1.0 * (x**2 / 0.69 + y**2 / 0.92 < (0.45 * n) ** 2) - 0.5 * ((x - n / 10) ** 2 + y**2 < (n / 8) ** 2) + 0.3 * (np.hypot(x + n / 8, y - n / 8) < n / 16)
    )
    theta = np.linspace(0, np.pi, angles, endpoint=False)
    sinogram = np.empty((angles, n))
    for a, t in enumerate(theta):
        rotated = bilinear(phantom, np.cos(t) * x - np.sin(t) * y + c, np.sin(t) * x + np.cos(t) * y + c)
        sinogram[a] = rotated.sum(axis=0)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    ramp = 2 * np.abs(np.fft.fftfreq(size))
    filtered = np.fft.ifft(np.fft.fft(sinogram, size, axis=1) * ramp, axis=1).real[:, :n]
    image = np.zeros((n, n))
    positions = np.arange(n) - c
    for row, t in zip(filtered, theta):
        image += np.interp(x * np.cos(t) + y * np.sin(t), positions, row, left=0, right=0)
    image *= np.pi / (2 * angles)
    return sinogram, image, np.corrcoef(image.ravel(), phantom.ravel())[0, 1]
