"""Floyd's and Steinberg's dithering, pixel by pixel, beside ordered dithering with Bayer's matrix.

Source: R. Floyd, L. Steinberg (1976); many exercises ("image dithering in NumPy").
"""

import numpy as np

sizes = {"small": {"h": 16, "w": 20}, "large": {"h": 80, "w": 120}}


def main(h, w):
    y, x = np.mgrid[0:h, 0:w]
    image = (np.sin(x / 5) * np.cos(y / 4) + 1) * 127.5
    a = np.pad(image, ((0, 1), (1, 1)))
    for i in range(h):
        for j in range(1, w + 1):
            old = a[i, j]
            new = 255.0 if old > 127 else 0.0
            a[i, j] = new
            error = old - new
            a[i, j + 1] += error * 7 / 16
            a[i + 1, j - 1] += error * 3 / 16
            a[i + 1, j] += error * 5 / 16
            a[i + 1, j + 1] += error / 16
    bayer = np.array([[0, 2], [3, 1]])
    for _ in range(2):
        bayer = np.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
    tiled = np.tile(bayer, (h // 8 + 1, w // 8 + 1))[:h, :w]
    return a[:h, 1 : w + 1], image > (tiled + 0.5) * 255 / 64
