"""Contrast: histogram equalisation, gamma, Otsu's threshold and clipping of a colour image in bytes.

Source: R. Gonzalez, R. Woods, "Digital Image Processing", chapters 3 and 10.
"""

import numpy as np

sizes = {"small": {"n": 96}, "large": {"n": 1024}}


def inputs(n):
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:n, 0:n] / n
    base = np.stack([60 + 80 * x, 40 + 90 * y, 90 + 60 * x * y], axis=-1)
    return {"image": np.clip(base + rng.normal(0, 12, (n, n, 3)), 0, 255).astype(np.uint8)}


def otsu(gray):
    hist = np.bincount(gray.ravel(), minlength=256)
    p = hist / hist.sum()
    omega = np.cumsum(p)
    mu = np.cumsum(p * np.arange(256))
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mu[-1] * omega - mu) ** 2 / (omega * (1 - omega))
    return int(np.nanargmax(between))


def main(image):
    gray = (np.dot(image[..., :3].astype(int), [299, 587, 114]) // 1000).astype(np.uint8)
    hist, bins = np.histogram(gray.flatten(), 256, (0, 256))
    cdf = hist.cumsum()
    masked = np.where(cdf > 0, cdf, cdf.max())
    table = ((cdf - masked.min()) * 255 / (cdf.max() - masked.min())).clip(0, 255).astype(np.uint8)
    equalised = table[gray]
    gamma = ((np.arange(256) / 255) ** (1 / 2.2) * 255).astype(np.uint8)
    brighter = gamma[image]
    threshold = otsu(gray)
    binary = np.where(gray > threshold, 255, 0).astype(np.uint8)
    channels = [np.histogram(brighter[:, :, c], bins=32, range=(0, 255))[0] for c in range(3)]
    low, high = np.percentile(gray, (2, 98))
    stretched = np.clip((gray.astype(float) - low) / (high - low), 0, 1)
    return equalised, threshold, binary, channels, stretched
