"""Local binary patterns: which of eight neighbours are as bright as a pixel, as a number of eight bits, and histograms of cells.

Source: T. Ojala, M. Pietikäinen, T. Mäenpää (2002); exercises on textures and faces.
"""

import numpy as np

sizes = {"small": {"n": 50}, "large": {"n": 1002}}
neighbours = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]


def inputs(n):
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:n, 0:n]
    return {"image": (120 + 60 * np.sin(x / 7) * np.cos(y / 5) + rng.integers(-30, 30, (n, n))).astype(np.uint8)}


def main(image, cell=8):
    n, m = image.shape[0] - 2, image.shape[1] - 2
    centre = image[1:-1, 1:-1]
    code = np.zeros_like(centre)
    for bit, (i, j) in enumerate(neighbours):
        code |= (image[i : i + n, j : j + m] >= centre).astype(np.uint8) << bit
    changes = np.unpackbits((code ^ ((code >> 1) | (code << 7)))[..., None], axis=-1).sum(axis=-1)
    uniform = np.where(changes <= 2, np.unpackbits(code[..., None], axis=-1).sum(axis=-1), 9)
    rows, columns = n // cell, m // cell
    cells = uniform[: rows * cell, : columns * cell].reshape(rows, cell, columns, cell).swapaxes(1, 2).reshape(rows * columns, -1)
    histogram = (cells[:, :, None] == np.arange(10)).sum(axis=1)
    return np.bincount(code.ravel(), minlength=256), histogram, histogram.argmax(axis=1)
