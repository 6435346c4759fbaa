"""A network of two layers that learns three spirals, by gradients written by hand.

Source: Stanford CS231n, "Putting it together: minimal neural network case study".
"""

import numpy as np

sizes = {"small": {"N": 60, "h": 32, "steps": 30}, "large": {"N": 700, "h": 200, "steps": 60}}


def inputs(N, h, steps, D=2, K=3):
    rng = np.random.default_rng(0)
    X = np.zeros((N * K, D))
    y = np.zeros(N * K, dtype="int64")
    for j in range(K):
        ix = range(N * j, N * (j + 1))
        r = np.linspace(0.0, 1, N)
        t = np.linspace(j * 4, (j + 1) * 4, N) + rng.standard_normal(N) * 0.2
        X[ix] = np.c_[r * np.sin(t), r * np.cos(t)]
        y[ix] = j
    return {"X": X, "y": y, "h": h, "steps": steps}


def main(X, y, h, steps, K=3, step_size=1.0, reg=1e-3):
    rng = np.random.default_rng(1)
    D = X.shape[1]
    W = 0.01 * rng.standard_normal((D, h))
    b = np.zeros((1, h))
    W2 = 0.01 * rng.standard_normal((h, K))
    b2 = np.zeros((1, K))
    num_examples = X.shape[0]
    losses = []
    for _ in range(steps):
        hidden_layer = np.maximum(0, np.dot(X, W) + b)
        scores = np.dot(hidden_layer, W2) + b2
        exp_scores = np.exp(scores)
        probs = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
        correct_logprobs = -np.log(probs[range(num_examples), y])
        losses.append(np.sum(correct_logprobs) / num_examples + 0.5 * reg * np.sum(W * W) + 0.5 * reg * np.sum(W2 * W2))
        dscores = probs
        dscores[range(num_examples), y] -= 1
        dscores /= num_examples
        dW2 = np.dot(hidden_layer.T, dscores)
        db2 = np.sum(dscores, axis=0, keepdims=True)
        dhidden = np.dot(dscores, W2.T)
        dhidden[hidden_layer <= 0] = 0
        dW = np.dot(X.T, dhidden)
        db = np.sum(dhidden, axis=0, keepdims=True)
        dW2 += reg * W2
        dW += reg * W
        W += -step_size * dW
        b += -step_size * db
        W2 += -step_size * dW2
        b2 += -step_size * db2
    predicted = np.argmax(np.dot(np.maximum(0, np.dot(X, W) + b), W2) + b2, axis=1)
    return losses, W, W2, np.mean(predicted == y) > 0.4


tolerance = 1e-6
