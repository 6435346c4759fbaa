"""LeNet's forward pass on a batch of images, with windows by sliding_window_view and pooling by reshape.

Source: Y. LeCun et al. (1998); Stanford CS231n, assignment 2 (convolutional networks in NumPy); NPBench's kernel lenet.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

sizes = {"small": {"batch": 2, "side": 28}, "large": {"batch": 32, "side": 44}}


def inputs(batch, side):
    rng = np.random.default_rng(42)

    def w(*shape):
        return rng.random(shape, dtype=np.float32) - np.float32(0.5)

    after = ((side - 4) // 2 - 4) // 2
    return {"x": w(batch, 1, side, side), "c1": w(6, 1, 5, 5), "c2": w(16, 6, 5, 5), "f1": w(16 * after * after, 120), "f2": w(120, 84), "f3": w(84, 10)}


def conv(x, w):
    windows = sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def main(x, c1, c2, f1, f2, f3):
    x = pool(np.maximum(conv(x, c1), 0))
    x = pool(np.maximum(conv(x, c2), 0))
    x = x.reshape(x.shape[0], -1)
    x = np.maximum(x @ f1, 0)
    x = np.maximum(x @ f2, 0)
    logits = x @ f3
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), logits.argmax(axis=1)
