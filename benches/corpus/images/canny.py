"""Canny's edges: Gaussian and Sobel filters, thinning by direction, two thresholds joined by a growing mask.

Source: J. Canny (1986); R. Szeliski, "Computer Vision", section 7.2; NumPy course exercises.
"""

import numpy as np

sizes = {"small": {"n": 64}, "large": {"n": 512}}


def inputs(n):
    y, x = np.mgrid[0:n, 0:n]
    rng = np.random.default_rng(1)
    image = 80.0 + 100 * ((x - n / 2) ** 2 + (y - n / 2) ** 2 < (n / 3) ** 2) + 40 * ((x // 16 + y // 16) % 2)
    return {"image": image + rng.normal(0, 4, (n, n))}


def convolve(image, kernel):
    k = kernel.shape[0] // 2
    padded = np.pad(image, k, mode="reflect")
    out = np.zeros_like(image)
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


def dilate(mask):
    p = np.pad(mask, 1)
    out = np.zeros_like(mask)
    for i in range(3):
        for j in range(3):
            out |= p[i : i + mask.shape[0], j : j + mask.shape[1]]
    return out


def main(image):
    ax = np.arange(-2, 3)
    g = np.exp(-(ax**2) / 2)
    smooth = convolve(image, np.outer(g, g) / g.sum() ** 2)
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=float)
    gx, gy = convolve(smooth, sobel), convolve(smooth, sobel.T)
    magnitude = np.hypot(gx, gy)
    angle = np.rad2deg(np.arctan2(gy, gx)) % 180
    p = np.pad(magnitude, 1)
    c = p[1:-1, 1:-1]
    thin = np.zeros_like(c)
    directions = [
        ((angle < 22.5) | (angle >= 157.5), p[1:-1, 2:], p[1:-1, :-2]),
        ((angle >= 22.5) & (angle < 67.5), p[2:, 2:], p[:-2, :-2]),
        ((angle >= 67.5) & (angle < 112.5), p[2:, 1:-1], p[:-2, 1:-1]),
        ((angle >= 112.5) & (angle < 157.5), p[2:, :-2], p[:-2, 2:]),
    ]
    for where, one, other in directions:
        keep = where & (c >= one) & (c >= other)
        thin[keep] = c[keep]
    strong = thin > 0.4 * thin.max()
    weak = thin > 0.1 * thin.max()
    edges = strong
    count = -1
    while edges.sum() != count:
        count = edges.sum()
        edges = dilate(edges) & weak
    return magnitude, edges.sum() > 0, smooth
