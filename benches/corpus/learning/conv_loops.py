"""Convolution of a batch of images with channels last, one place of the output after the other.

Source: NPBench (ETH Zürich), kernel conv2d_bias, after the deep-learning course's reference code.
"""

import numpy as np

sizes = {"small": {"N": 2, "side": 16, "cin": 3, "cout": 8, "K": 3}, "large": {"N": 8, "side": 56, "cin": 3, "cout": 16, "K": 5}}


def inputs(N, side, cin, cout, K):
    rng = np.random.default_rng(42)
    return {
        "x": rng.random((N, side, side, cin), dtype=np.float32),
        "weights": rng.random((K, K, cin, cout), dtype=np.float32),
        "bias": rng.random((cout,), dtype=np.float32),
    }


def main(x, weights, bias):
    K = weights.shape[0]
    N = x.shape[0]
    H_out = x.shape[1] - K + 1
    W_out = x.shape[2] - K + 1
    output = np.empty((N, H_out, W_out, weights.shape[3]), dtype=np.float32)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(x[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return output + bias
