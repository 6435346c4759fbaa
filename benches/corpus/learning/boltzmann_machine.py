"""A restricted Boltzmann machine by contrastive divergence on bars in little images.

Source: G. Hinton, "A Practical Guide to Training Restricted Boltzmann Machines" (2010).
"""

import numpy as np

sizes = {"small": {"side": 5, "hidden": 12, "epochs": 3}, "large": {"side": 16, "hidden": 128, "epochs": 4}}


def bars(rng, count, side):
    v = np.zeros((count, side, side))
    rows = rng.random((count, side)) < 0.25
    across = rng.random(count) < 0.5
    v[across] = rows[across][:, :, None]
    v[~across] = rows[~across][:, None, :]
    return v.reshape(count, -1)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def main(side, hidden, epochs, batch=50, rate=0.1, momentum=0.5):
    rng = np.random.default_rng(33)
    data = bars(rng, 500, side)
    W = 0.01 * rng.standard_normal((side * side, hidden))
    a, b = np.zeros(side * side), np.zeros(hidden)
    dW = np.zeros_like(W)
    errors = np.zeros(epochs)
    for epoch in range(epochs):
        rng.shuffle(data)
        for v0 in np.split(data, len(data) // batch):
            h0 = sigmoid(v0 @ W + b)
            sample = (h0 > rng.random(h0.shape)).astype(float)
            v1 = sigmoid(sample @ W.T + a)
            h1 = sigmoid(v1 @ W + b)
            dW = momentum * dW + rate * (v0.T @ h0 - v1.T @ h1) / batch
            W += dW
            a += rate * (v0 - v1).mean(axis=0)
            b += rate * (h0 - h1).mean(axis=0)
            errors[epoch] += np.sum((v0 - v1) ** 2)
    return W, a, b, errors


tolerance = 1e-6
