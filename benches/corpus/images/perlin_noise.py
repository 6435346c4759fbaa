"""Perlin's noise in five octaves: smoothed steps between gradients that a shuffled table gives to the points of a lattice.

Source: K. Perlin, "Improving Noise" (2002); the many versions of it in NumPy for terrains and textures.
"""

import numpy as np

sizes = {"small": {"n": 48}, "large": {"n": 640}}
gradients = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


def fade(t):
    return t * t * t * (t * (t * 6 - 15) + 10)


def slope(number, x, y):
    g = gradients[number % 4]
    return g[:, :, 0] * x + g[:, :, 1] * y


def octave(n, frequency, table):
    line = np.linspace(0, frequency, n, endpoint=False)
    x, y = np.meshgrid(line, line)
    xi, yi = x.astype(int), y.astype(int)
    xf, yf = x - xi, y - yi
    xi, yi = xi % 256, yi % 256
    left, right = table[xi], table[xi + 1]
    n00, n10 = slope(table[left + yi], xf, yf), slope(table[right + yi], xf - 1, yf)
    n01, n11 = slope(table[left + yi + 1], xf, yf - 1), slope(table[right + yi + 1], xf - 1, yf - 1)
    u, v = fade(xf), fade(yf)
    above, below = n00 + u * (n10 - n00), n01 + u * (n11 - n01)
    return above + v * (below - above)


def main(n):
    rng = np.random.default_rng(3)
    table = np.arange(256)
    rng.shuffle(table)
    table = np.concatenate([table, table])
    height = np.zeros((n, n))
    for number in range(5):
        height += octave(n, 4 * 2**number, table) / 2**number
    bands = np.digitize(height, [-0.4, -0.1, 0.1, 0.4])
    return height, np.bincount(bands.ravel(), minlength=5)
