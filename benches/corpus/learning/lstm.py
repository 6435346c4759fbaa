"""A long short-term memory over a batch of sequences, four gates in one product.

Source: S. Hochreiter, J. Schmidhuber (1997); Stanford CS231n, assignment 3 (rnn_layers.py).
"""

import numpy as np

sizes = {"small": {"N": 4, "T": 20, "D": 16, "H": 32}, "large": {"N": 64, "T": 80, "D": 64, "H": 128}}


def inputs(N, T, D, H):
    rng = np.random.default_rng(3)
    return {
        "x": rng.standard_normal((N, T, D)),
        "Wx": rng.standard_normal((D, 4 * H)) / np.sqrt(D),
        "Wh": rng.standard_normal((H, 4 * H)) / np.sqrt(H),
        "b": rng.standard_normal(4 * H),
    }


def sigmoid(x):
    pos_mask = x >= 0
    neg_mask = x < 0
    z = np.zeros_like(x)
    z[pos_mask] = np.exp(-x[pos_mask])
    z[neg_mask] = np.exp(x[neg_mask])
    top = np.ones_like(x)
    top[neg_mask] = z[neg_mask]
    return top / (1 + z)


def main(x, Wx, Wh, b):
    N, T, _ = x.shape
    H = Wh.shape[0]
    h = np.zeros((N, T, H))
    prev_h = np.zeros((N, H))
    c = np.zeros((N, H))
    for t in range(T):
        a = x[:, t, :] @ Wx + prev_h @ Wh + b
        i, f, o = sigmoid(a[:, :H]), sigmoid(a[:, H : 2 * H]), sigmoid(a[:, 2 * H : 3 * H])
        g = np.tanh(a[:, 3 * H :])
        c = f * c + i * g
        prev_h = o * np.tanh(c)
        h[:, t, :] = prev_h
    return h, c
