"""A bilateral filter by shifted copies, and non-local means in a small neighbourhood.

Source: C. Tomasi, R. Manduchi (1998); A. Buades et al. (2005); computational-photography courses.
"""

import numpy as np

sizes = {"small": {"n": 40, "radius": 2}, "large": {"n": 240, "radius": 3}}


def box(a, r):
    c = np.pad(a, ((r + 1, r), (r + 1, r)), mode="wrap").cumsum(0).cumsum(1)
    k = 2 * r + 1
    return (c[k:, k:] - c[:-k, k:] - c[k:, :-k] + c[:-k, :-k]) / k**2


def main(n, radius, sigma_s=2.0, sigma_r=0.2, h=0.15):
    rng = np.random.default_rng(0)
    clean = np.kron(rng.random((8, 8)), np.ones((n // 8, n // 8)))
    image = clean + rng.normal(0, 0.05, clean.shape)
    bilateral, norm = np.zeros_like(image), np.zeros_like(image)
    means, total = np.zeros_like(image), np.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            shifted = np.roll(image, (dy, dx), axis=(0, 1))
            difference = (shifted - image) ** 2
            w = np.exp(-(dx**2 + dy**2) / (2 * sigma_s**2)) * np.exp(-difference / (2 * sigma_r**2))
            bilateral += w * shifted
            norm += w
            w = np.exp(-box(difference, 1) / h**2)
            means += w * shifted
            total += w
    bilateral /= norm
    means /= total
    return bilateral, means, np.mean((bilateral - clean) ** 2) < np.mean((image - clean) ** 2)
