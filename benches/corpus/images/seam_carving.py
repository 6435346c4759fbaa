"""Seams of least energy, found row by row and taken out of an image.

Source: S. Avidan, A. Shamir (2007); Princeton COS 226's assignment in NumPy.
"""

import numpy as np

sizes = {"small": {"h": 40, "w": 60, "seams": 5}, "large": {"h": 200, "w": 300, "seams": 25}}


def energy(image):
    dx = np.roll(image, -1, axis=1) - np.roll(image, 1, axis=1)
    dy = np.roll(image, -1, axis=0) - np.roll(image, 1, axis=0)
    return np.sqrt((dx**2 + dy**2).sum(axis=2))


def main(h, w, seams):
    rng = np.random.default_rng(4)
    y, x = np.mgrid[0:h, 0:w]
    image = np.stack([np.sin(x / 9.0), np.cos(y / 7.0), np.sin((x + y) / 11.0)], axis=2) * 100 + rng.normal(0, 5, (h, w, 3))
    costs = []
    for _ in range(seams):
        M = energy(image)
        n = M.shape[1]
        back = np.zeros(M.shape, dtype=int)
        for i in range(1, h):
            left = np.concatenate(([np.inf], M[i - 1, :-1]))
            right = np.append(M[i - 1, 1:], np.inf)
            options = np.array([left, M[i - 1], right])
            choice = np.argmin(options, axis=0)
            back[i] = np.arange(n) + choice - 1
            M[i] += np.min(options, axis=0)
        j = int(np.argmin(M[-1]))
        costs.append(M[-1, j])
        mask = np.ones((h, n), dtype=bool)
        for i in range(h - 1, -1, -1):
            mask[i, j] = False
            j = int(back[i, j])
        image = image[mask].reshape(h, n - 1, 3)
    return image, costs
