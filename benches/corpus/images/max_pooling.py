"""Max pooling of images by blocks of 2 × 2, with the places of the maxima, and the gradient that goes back through them.

Source: Stanford's CS231n, assignment on convolutional networks ("max_pool_backward"); NumPy's users' answers on unpooling.
"""

import numpy as np

sizes = {"small": {"images": 2, "channels": 3, "n": 24}, "large": {"images": 8, "channels": 16, "n": 128}}


def inputs(images, channels, n):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 50, (images, channels, n, n)).astype(np.float32)
    return {"x": x, "slope": rng.random((images, channels, n // 2, n // 2)).astype(np.float32)}


def blocks(x):
    images, channels, n, m = x.shape
    parted = x.reshape(images, channels, n // 2, 2, m // 2, 2)
    return parted.transpose(0, 1, 2, 4, 3, 5).reshape(images, channels, n // 2, m // 2, 4)


def unpooled(slope, place):
    images, channels, n, m = slope.shape
    parted = np.zeros((images, channels, n, m, 4), slope.dtype)
    np.put_along_axis(parted, place[..., None], slope[..., None], axis=-1)
    parted = parted.reshape(images, channels, n, m, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return parted.reshape(images, channels, 2 * n, 2 * m)


def main(x, slope):
    parted = blocks(x)
    place = parted.argmax(axis=-1)
    pooled = parted.max(axis=-1)
    back = unpooled(slope, place)
    shares = np.bincount(place.ravel(), minlength=4)
    return pooled, place, back, back.sum(axis=(2, 3)), shares
